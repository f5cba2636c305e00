package clients

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/process"
)

// TestEveryClient: what a list may rely on. Its own folder tests the rest of each.
func TestEveryClient(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range All() {
		name := c.Preset.Name
		if seen[name] || c.About.Title == "" || c.Reader == nil || c.Plugin != nil && c.Plugin.Name != name {
			t.Errorf("%s: %+v", name, c)
		}
		seen[name] = true
		folder := name
		if c.Preset.Prompt == agentcli.PromptScript {
			folder = "command"
		}
		if _, err := os.Stat(filepath.Join("..", folder, folder+"_test.go")); err != nil {
			t.Errorf("%s is not tested: %v", name, err)
		}
	}
}

// TestNothingElsewhere: a client is named in its own folder and in the list, and in no other code, so that
// a change in a client touches one folder. Examples of a help text may name one.
func TestNothingElsewhere(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	exempt := []string{
		"chipset/agentcli/clients/clients.go",
		"chipset/agentcli/agentclitest", // the models behind the clients
		"chipset/definition",            // a leaf, whose presets are data: its TestBuiltinPresetsAgree holds them to this list
		"cmd/chipset/bridge.go",         // the bridges to Claude Code's files are commands with its name
	}
	var words []string
	for _, c := range All() {
		for _, word := range []string{c.Preset.Name, c.Preset.Command[0]} {
			switch word {
			case "sh":
			case "amp", "cursor", "goose": // words of English
				words = append(words, `"`+word+`"`)
			default:
				words = append(words, word)
			}
		}
		exempt = append(exempt, "chipset/agentcli/"+c.Preset.Name)
	}
	named := regexp.MustCompile("(?i)" + strings.Join(words, "|"))
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if slices.Contains(exempt, path) {
			return skip(e)
		}
		if e.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		data, err := os.ReadFile(filepath.Join(root, path))
		for i, line := range strings.Split(string(data), "\n") {
			if !strings.Contains(line, "Example:") && named.MatchString(line) {
				t.Errorf("%s:%d: %s", path, i+1, strings.TrimSpace(line))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// skip is the error that leaves a file or folder out of a walk.
func skip(e fs.DirEntry) error {
	if e.IsDir() {
		return fs.SkipDir
	}
	return nil
}

func TestOf(t *testing.T) {
	tests := []struct {
		preset agentcli.Preset
		want   string
	}{
		{agentcli.Preset{Name: "fast", Command: []string{"/opt/bin/claude", "-p"}}, "claude"},
		{agentcli.Preset{Name: "mine", Command: []string{"cursor-agent"}}, "cursor"},
		{agentcli.Preset{Name: "claude", Command: []string{"./wrapper"}}, "command"},
		{agentcli.Preset{Name: "claude", Command: []string{"./wrapper"}, Client: "codex"}, "codex"},
		{agentcli.Preset{Name: "quiet", Command: []string{"claude"}, Client: "command"}, "command"},
		{agentcli.Preset{Name: "nothing"}, "command"},
	}
	for _, tt := range tests {
		if got := Of(tt.preset).Preset.Name; got != tt.want {
			t.Errorf("%+v is %s, want %s", tt.preset, got, tt.want)
		}
	}
}

func TestInherit(t *testing.T) {
	got := Inherit([]string{"PATH=/bin", "CLAUDECODE=1", "ANTHROPIC_API_KEY=secret", "GEMINI_CLI=1", "CLAUDE_CODE_MESSAGING_TOKEN=secret", "CLAUDE_CODE_MAX_RETRIES=2", "EMPTY"})
	if diff := cmp.Diff([]string{"PATH=/bin", "ANTHROPIC_API_KEY=secret", "CLAUDE_CODE_MAX_RETRIES=2", "EMPTY"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCommandLines(t *testing.T) {
	got := CommandLines([]string{"Bash(npm publish)", "bash(ls)", "run_shell_command(make)", "make all", "Edit(/a/b)"})
	if diff := cmp.Diff([]string{"npm publish", "ls", "make", "make all", "Edit(/a/b)"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestWaits: a client waits for its service before and after the calls of its tools, and not while one runs or once it is through.
// The marks are those of the lines that it printed: w where it waits, f where it has failed and should end.
func TestWaits(t *testing.T) {
	for _, tt := range []struct{ client, recording, want string }{
		{"claude", "finished", "www-ww-"},
		{"claude", "bad-key", "wwfwf"},
		{"codex", "finished", "wwww-ww-"},
		{"codex", "failed", "wwwfwf"},
		{"gemini", "finished", "wwww-ww-"},
		{"gemini", "bad-key", "wwwf"},
		{"opencode", "finished", "w---w---"},
		{"opencode", "bad-key", "wf"},
	} {
		t.Run(tt.client+"/"+tt.recording, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("..", tt.client, "testdata", tt.recording+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(All(), func(c agentcli.Client) bool { return c.Preset.Name == tt.client })
			r := All()[i].Reader()
			mark := func() string {
				switch {
				case !r.Trying().IsZero():
					return "f"
				case r.Waits():
					return "w"
				}
				return "-"
			}
			marks := mark()
			for line := range bytes.Lines(bytes.TrimSpace(data)) {
				r.Line(line)
				marks += mark()
			}
			if r.Resumed(); marks != tt.want || mark() != "w" {
				t.Errorf("%s, then %s in the next run", marks, mark())
			}
		})
	}
	for _, c := range All() {
		if r := c.Reader(); r.Waits() && !slices.Contains([]string{"claude", "codex", "gemini", "opencode", "amp"}, c.Preset.Name) {
			t.Errorf("%s is said to wait", c.Preset.Name)
		}
	}
}

// TestReadersTakeAnything: no output makes a reader panic, and what it quotes is
// bounded and valid.
func TestReadersTakeAnything(t *testing.T) {
	var lines [][]byte
	for _, file := range recordings(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, bytes.Split(bytes.TrimSpace(data), []byte("\n"))...)
	}
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.SampledFrom(All()).Draw(t, "client").Reader()
		cut := &agentcli.Lines{To: r.Line}
		for range rapid.IntRange(0, 12).Draw(t, "lines") {
			line := bytes.Clone(rapid.SampledFrom(lines).Draw(t, "line"))
			if len(line) > 0 && rapid.Bool().Draw(t, "damage") {
				at := rapid.IntRange(0, len(line)-1).Draw(t, "at")
				line = append(line[:at], rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "bytes")...)
			}
			_, _ = cut.Write(append(line, '\n'))
		}
		cut.Flush()
		end := r.End(rapid.IntRange(0, 255).Draw(t, "code"), agentclitest.Recorded())
		checkEnd(t, end, r.Trying())
		if len(end.Reason) > 4<<10 || len(end.Said) > 16<<10 || len(r.Session()) > 128 || strings.HasPrefix(r.Session(), "-") || strings.ContainsAny(r.Session(), "/ \n=") {
			t.Fatalf("%d and %d bytes are quoted, session %q", len(end.Reason), len(end.Said), r.Session())
		}
	})
}

func TestPresetsOf(t *testing.T) {
	def, problems := definition.ParseWith("chipset.yaml", []byte("agents: {agents: [{name: mayor, role: mayor}, {name: witness, role: witness}, {name: p, role: polecat}]}\n"), definition.Options{ParseCommand: process.ParseCommand})
	if problems.Err() != nil {
		t.Fatal(problems)
	}
	def.Worker.Presets = []definition.WorkerPreset{
		{Name: "claude", Timeout: new(time.Duration(0))},
		{Name: "mine", Command: definition.Command{Line: "mine --file={prompt_file}"}},
		{Name: "theirs", Command: definition.Command{Argv: []string{"theirs", "{prompt}"}}, StallDetection: time.Second},
	}
	presets := PresetsOf(def)
	claude, err := agentcli.ResolveWorker("claude", presets)
	if err != nil || claude.Timeout != 0 || len(claude.Command) == 0 || len(claude.Permissions) != 3 {
		t.Errorf("claude %+v, %v", claude, err)
	}
	mine, err := agentcli.ResolveWorker("mine", presets)
	if err != nil || mine.Prompt != agentcli.PromptFile || mine.Timeout != agentcli.DefaultWorkerTimeout {
		t.Errorf("mine %+v, %v", mine, err)
	}
	theirs, err := agentcli.ResolveWorker("theirs", presets)
	if err != nil || theirs.Prompt != agentcli.PromptArg || theirs.StallDetection != time.Second {
		t.Errorf("theirs %+v, %v", theirs, err)
	}
}

// What configures a client is protected by default, but for texts that it only reads.
func TestConfigurationOfClientsIsProtected(t *testing.T) {
	def, problems := definition.Parse("chipset.yaml", []byte("agents: {agents: [{name: mayor, role: mayor}, {name: witness, role: witness}, {name: p, role: polecat}]}"))
	if problems.Err() != nil {
		t.Fatal(problems)
	}
	isProtected := git.MatchPaths(def.Merge.Protect...)
	isText := regexp.MustCompile(`\.md$|ignore$|hints$|rules$`).MatchString
	for _, c := range All() {
		for _, name := range c.Configures {
			if path := strings.ReplaceAll(name, "*", "x"); !isText(path) && !isProtected(path) {
				t.Errorf("%s: %s is not protected", c.Preset.Name, name)
			}
		}
	}
}
