package agentclitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

// Suite is what every client must pass: the contract of [agentcli.Client], as tests. It is run in
// the client's folder, whose testdata holds what the real program printed.
type Suite struct {
	Client agentcli.Client
	// Begun is the whole command line of a new session with permission edit, Resumed that of a session
	// that is continued, nil where it can't be. A prompt that is an argument is P.
	Begun, Resumed []string
	// Recordings are what the real program printed. "finished" is a session that ended well with
	// more than two lines; "resumed", if there is one, is a second run of that session.
	Recordings []Recording
	// Faults are the ends of the runs in testdata/faults, by their names.
	Faults map[string]Fault
}

// Recording is testdata/NAME.jsonl.
type Recording struct {
	Name string
	// Code is the exit code, End how the run ended; the Reason is how the real one begins.
	Code int
	End  agentcli.End
	// Figures are those of the session.
	Figures agentcli.Figures
}

// PromptFile is the file of the prompt in Suite.Begun and Resumed.
const PromptFile = "/rig/run/s1.prompt"

// Run runs the suite.
func (s Suite) Run(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"preset": s.preset, "command line": s.commandLine, "tools": s.tools, "hooks": s.hooks, "answers": s.answers, "plugin": s.plugin,
		"recordings": s.recordings, "resumed": s.resumed, "gone": s.gone, "cut off": s.cutOff, "faults": s.faults, "quoted faults": s.quotedFaults,
	} {
		t.Run(name, test)
	}
}

// preset: every permission has a meaning, and a worker never runs without end.
func (s Suite) preset(t *testing.T) {
	preset := s.Client.Preset
	if preset.Timeout != time.Hour {
		t.Errorf("time-out %v", preset.Timeout)
	}
	for _, permission := range []string{"", agentcli.PermissionAsk, agentcli.PermissionEdit, agentcli.PermissionFull} {
		if _, err := agentcli.Build(preset, agentcli.PromptInput{Prompt: "P", File: "/p", Permission: permission}); err != nil {
			t.Errorf("permission %q: %v", permission, err)
		}
	}
	if _, err := agentcli.Build(preset, agentcli.PromptInput{Prompt: "P", File: "/p", Permission: "everything"}); !errors.Is(err, agentcli.ErrBadPreset) {
		t.Errorf("an unknown permission: %v", err)
	}
}

// build is the command line before the rig adds to it.
func (s Suite) build(t *testing.T) []string {
	t.Helper()
	run, err := agentcli.Build(s.Client.Preset, agentcli.PromptInput{Prompt: "P", Script: "S", File: PromptFile, Permission: agentcli.PermissionEdit})
	if err != nil {
		t.Fatal(err)
	}
	return run.Argv
}

func (s Suite) commandLine(t *testing.T) {
	kit := agentcli.Kit{Chipset: "/opt/chipset", Identity: []string{"CHIPSET_AGENT=p\"1"}, Permission: agentcli.PermissionEdit, Session: "uuid", Files: "/rig/run/s1."}
	argv := s.build(t)
	before := slices.Clone(argv)
	if diff := cmp.Diff(s.Begun, s.Client.Start(argv, kit).Argv); diff != "" {
		t.Errorf("it begins with %s", diff)
	}
	if resumes := s.Resumed != nil; resumes != s.Client.About.Resume {
		t.Errorf("it resumes: %v, and says %v", resumes, s.Client.About.Resume)
	}
	kit.Resume = "old"
	if got := s.Client.Start(argv, kit).Argv; s.Resumed != nil && !cmp.Equal(got, s.Resumed) {
		t.Errorf("it resumes with %s", cmp.Diff(s.Resumed, got))
	}
	if !slices.Equal(argv, before) {
		t.Errorf("the command line it was given became %q", argv)
	}
}

// handedOver is everything that a client is given beside its prompt.
func handedOver(e agentcli.Equipped) string {
	all := append(append([]string{}, e.Argv...), e.Env...)
	for _, text := range e.Files {
		all = append(all, text)
	}
	return strings.Join(all, "\n")
}

// tools: the rig's server is handed over, and a quotation mark in a name does not break it.
func (s Suite) tools(t *testing.T) {
	kit := agentcli.Kit{Chipset: `/opt/a "b"/chipset`, Identity: []string{"CHIPSET_AGENT=polecat-alpha", "CHIPSET_DIR=/a=b"}, Files: "/rig/s1.", MCP: true}
	e := s.Client.Start(s.build(t), kit)
	all := handedOver(e)
	if got := strings.Contains(all, `/opt/a \"b\"/chipset`) && strings.Contains(all, "/a=b"); got != s.Client.About.MCP {
		t.Errorf("it says that tools can be handed over: %v; it is given %s", s.Client.About.MCP, all)
	}
	for name, text := range e.Files {
		if strings.HasSuffix(name, ".json") && !json.Valid([]byte(text)) {
			t.Errorf("%s is not JSON: %s", name, text)
		}
		if !strings.Contains(strings.Join(append(e.Argv, e.Env...), " "), kit.Files+name) {
			t.Errorf("it is not told about %s: %q %q", name, e.Argv, e.Env)
		}
	}
}

// hooks: a client with hooks is told to ask this very binary, and a plugin of the person's is kept silent.
func (s Suite) hooks(t *testing.T) {
	e := s.Client.Start(s.build(t), agentcli.Kit{Chipset: "/opt/it's/chipset", Files: "/rig/s1.", Hooks: true, Plan: true})
	name, all := s.Client.Preset.Name, handedOver(e)
	if got := strings.Contains(all, "client-hook "+name); got != (s.Client.Hooks != nil) || got != slices.Contains(e.Env, agentcli.HooksHandedOver) {
		t.Errorf("it has hooks: %v; it is told %s, with %q", s.Client.Hooks != nil, all, e.Env)
	}
	if s.Client.Hooks == nil {
		return
	}
	steps := map[agentcli.Event]bool{}
	for _, piece := range strings.Split(all, "client-hook "+name+" ")[1:] {
		event, known := s.Client.Hooks.Events[strings.Fields(piece)[0]]
		if !known {
			t.Errorf("nobody answers %.40s", piece)
		}
		steps[event] = true
	}
	for _, must := range []agentcli.Event{agentcli.SessionStart, agentcli.UserPromptSubmit, agentcli.PreToolUse, agentcli.PostToolUse, agentcli.Stop} {
		if !steps[must] {
			t.Errorf("it is not told to ask at %s", must)
		}
	}
}

// answers: any input is read or refused, silence is silence, and every other answer has its reason in it.
func (s Suite) answers(t *testing.T) {
	h := s.Client.Hooks
	if h == nil {
		return
	}
	if in, err := h.Input(nil); err != nil || in != (agentcli.Input{}) {
		t.Errorf("an event without details: %+v, %v", in, err)
	}
	in, err := h.Input([]byte(`{"session_id":"s","agent_id":"a","tool_name":"unheard_of","tool_input":{"x": 1},"future":{}}`))
	if err != nil || in.Session != "s" || in.AgentID != "a" || in.Tool != (agentcli.Tool{Name: "unheard_of", Given: `{"x":1}`}) {
		t.Errorf("%+v, %v", in, err)
	}
	if _, err := h.Input([]byte(`{"session_id":5}`)); err == nil {
		t.Error("a session that is a number is read")
	}
	for name, event := range h.Events {
		if room := h.Limit(event); room < 4<<10 {
			t.Errorf("%s: mail has %d bytes", name, room)
		}
		if out := h.Output(event, name, agentcli.Answer{}); len(out.Stdout) > 0 || out.Stderr != "" || out.Code != 0 {
			t.Errorf("%s: silence is %+v", name, out)
		}
		a := agentcli.Answer{Context: "because"}
		switch event {
		case agentcli.Stop, agentcli.SubagentStop, agentcli.TeammateIdle, agentcli.TaskCompleted:
			a = agentcli.Answer{GoOn: "because"}
		case agentcli.PreToolUse, agentcli.PermissionRequest:
			a = agentcli.Answer{Deny: "because"}
		default:
		}
		out := h.Output(event, name, a)
		if !strings.Contains(string(out.Stdout)+out.Stderr, "because") || len(out.Stdout) > 0 && !json.Valid(out.Stdout) {
			t.Errorf("%s: %+v is %s", name, a, out.Stdout)
		}
	}
}

// binary is a path that a careless template would break.
const binary = `/opt/the tools/it's "chipset"`

// plugin: its files are filled in, every hook in them is answered, and its command line survives a shell.
func (s Suite) plugin(t *testing.T) {
	p := s.Client.Plugin
	if p == nil {
		return
	}
	dir := filepath.Join(t.TempDir(), "plugin")
	names, err := p.Write(dir, binary, "1.2.3")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	events := 0
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".json") && !json.Valid(data) {
			t.Errorf("%s is not JSON:\n%s", name, data)
		}
		if strings.Contains(string(data), "{{.") {
			t.Errorf("%s was not filled in:\n%s", name, data)
		}
		switch {
		case filepath.Base(name) == "hooks.json":
			events += s.hooksFile(t, data)
		case filepath.Ext(name) == ".js":
			events += s.script(t, data)
		}
	}
	if events < 5 {
		t.Errorf("hooks for %d events", events)
	}
	for _, name := range p.Settings {
		if !slices.Contains(names, name) {
			t.Errorf("its settings need %s, which it has not", name)
		}
	}
}

// script is a plugin that is a program: it has the binary's path as JSON, and the command lines of its hooks.
func (s Suite) script(t *testing.T, data []byte) int {
	path, err := json.Marshal(binary)
	if err != nil || !bytes.Contains(data, path) {
		t.Errorf("it does not call %s, %v:\n%s", path, err, data)
	}
	calls := regexp.MustCompile(`client-hook `+s.Client.Preset.Name+` ([a-z.]+)`).FindAllSubmatch(data, -1)
	for _, call := range calls {
		if _, known := s.Client.Hooks.Events[string(call[1])]; !known {
			t.Errorf("nobody answers %s", call[1])
		}
	}
	return len(calls)
}

func (s Suite) hooksFile(t *testing.T, data []byte) int {
	var file struct {
		Hooks map[string][]struct{ Hooks []struct{ Command string } }
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for name, entries := range file.Hooks {
		if _, known := s.Client.Hooks.Events[name]; !known {
			t.Errorf("nobody answers %s", name)
		}
		out, err := exec.Command("sh", "-c", `for word in `+entries[0].Hooks[0].Command+`; do printf '%s\n' "$word"; done`).Output()
		if want := binary + "\nclient-hook\n" + s.Client.Preset.Name + "\n" + name + "\n"; err != nil || string(out) != want {
			t.Errorf("%s: the shell sees %q, %v", name, out, err)
		}
	}
	return len(file.Hooks)
}

// Play puts a recording of the real program through its reader.
func Play(t testing.TB, r agentcli.Reader, name string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := &agentcli.Lines{To: r.Line}
	if _, err := lines.Write(data); err != nil {
		t.Fatal(err)
	}
	lines.Flush()
}

// recordings: what the real program printed, and what is made of it. The model
// was a stand-in that used one tool and said "Finished.".
func (s Suite) recordings(t *testing.T) {
	for _, want := range s.Recordings {
		t.Run(want.Name, func(t *testing.T) {
			r := s.Client.Reader()
			Play(t, r, want.Name)
			if diff := cmp.Diff(want.Figures, r.Figures()); diff != "" {
				t.Error(diff)
			}
			end := r.End(want.Code, time.Time{})
			if end.Verdict != want.End.Verdict || !strings.HasPrefix(end.Reason, want.End.Reason) || want.End.Said != "" && end.Said != want.End.Said {
				t.Errorf("ended %+v, want %+v", end, want.End)
			}
			if r.Session() == "" {
				t.Error("the session has no name")
			}
		})
	}
}

func (s Suite) has(name string) bool {
	_, err := os.Stat(filepath.Join("testdata", name+".jsonl"))
	return err == nil
}

// resumed: the totals are those of the whole session, and what ended an earlier run says nothing about
// a later one.
func (s Suite) resumed(t *testing.T) {
	if !s.has("resumed") {
		return
	}
	r := s.Client.Reader()
	Play(t, r, "finished")
	before, session := r.Figures(), r.Session()
	r.Resumed()
	if end := r.End(0, time.Time{}); end.Verdict == agentcli.Finished {
		t.Errorf("a run that has not said anything has %s", end.Verdict)
	}
	Play(t, r, "resumed")
	after := r.Figures()
	if r.Session() != session || after.Turns != 4 || after.Tools != 2 || after.TokensOut != 28 ||
		after.TokensIn < 2*before.TokensIn || after.TokensIn > 3*before.TokensIn {
		t.Errorf("%+v in session %s, and after it %+v in %s", before, session, after, r.Session())
	}
	if end := r.End(0, time.Time{}); end.Verdict != agentcli.Finished {
		t.Errorf("ended %+v", end)
	}
}

// gone: a session that the program can't load any more ends like nothing else, and only where one was resumed.
func (s Suite) gone(t *testing.T) {
	if !s.has("gone") {
		if s.Client.About.Resume && s.Client.About.Tried != "" {
			t.Error("it can resume, and testdata/gone.jsonl does not say what it prints when it can't")
		}
		return
	}
	r := s.Client.Reader()
	Play(t, r, "finished")
	r.Resumed()
	Play(t, r, "gone")
	if end := r.End(1, time.Time{}); end.Verdict != agentcli.Gone || end.Reason == "" || !end.Fault.IsZero() {
		t.Errorf("ended %+v", end)
	}
}

// cutOff: a program that was ended in the middle says so by what is missing.
func (s Suite) cutOff(t *testing.T) {
	if !s.has("finished") {
		return
	}
	data, err := os.ReadFile(filepath.Join("testdata", "finished.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	for n := 2; n < len(lines)-1; n++ {
		r := s.Client.Reader()
		for _, line := range lines[:n] {
			r.Line(line)
		}
		if end := r.End(0, time.Time{}); end.Verdict != agentcli.Unfinished {
			t.Errorf("after %d lines: %+v", n, end)
		}
		if end := r.End(143, time.Time{}); end.Verdict == agentcli.Finished {
			t.Errorf("after %d lines and TERM: %+v", n, end)
		}
	}
}
