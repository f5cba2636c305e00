package execute

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/retire"
	"github.com/gastown-chipset/chipset/state/wording"
)

// fakeClient makes the rig's worker a program that prints what Claude Code prints, one
// script for each run, and writes down how it was called.
func fakeClient(t *testing.T, more string, runs ...string) (k *kennel, calls func() []string) {
	t.Helper()
	dir := t.TempDir()
	program := "n=$(($(cat " + dir + "/n 2>/dev/null || echo 0) + 1)); echo $n > " + dir + "/n; echo \"$*\" >> " + dir + "/calls; cat > " + dir + "/prompt-$n; . " + dir + "/run-$n\n"
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("claude", "#!/bin/sh\n"+program)
	for i, run := range runs {
		write(fmt.Sprintf("run-%d", i+1), run)
	}
	k = newKennel(t, "")
	text := strings.Replace(polecatRig, "worker: {default: sh,", fmt.Sprintf("worker: {presets: {actor: {command: [\"%s/claude\"]%s}}, default: actor,", dir, more), 1)
	k.write(".chipset/chipset.yaml", text) // for other processes
	def, problems := definition.Parse("chipset.yaml", []byte(text))
	if problems.Err() != nil {
		t.Fatal(problems)
	}
	k.rig.Def = def
	letWrite(k.rig)
	return k, func() []string {
		data, err := os.ReadFile(filepath.Join(dir, "calls"))
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
			prompt, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("prompt-%d", i+1)))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, line+"\n"+string(prompt))
		}
		return all
	}
}

const (
	begins   = `echo '{"type":"system","subtype":"init","session_id":"sess-1"}'` + "\n" + speaks
	speaks   = `echo '{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","name":"Bash"}],"usage":{"input_tokens":1000,"output_tokens":5}}}'` + "\n"
	finished = `echo '{"type":"result","subtype":"success","is_error":false,"result":"I am through.","total_cost_usd":0.5,"modelUsage":{"m":{"inputTokens":2000,"outputTokens":10}}}'` + "\n"
	refused  = `echo '{"type":"result","subtype":"success","is_error":false,"result":"I was not allowed.","permission_denials":[{"tool_name":"Bash"}]}'` + "\n"
	capped   = `echo '{"type":"system","subtype":"notification","key":"stop-hook-block-cap"}'` + "\n" + finished
	overload = `echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":"overloaded"}'` + "\nexit 1\n"
	badKey   = `echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":401,"result":"bad key"}'` + "\nexit 1\n"
	inVain   = `echo '{"type":"system","subtype":"api_retry","attempt":3,"error_status":null}'` + "\nexec sleep 1000\n"
	commits  = "echo one > one.txt; git add -A; git commit -qm one\n"
)

// TestClientEndings: the exit code of an agent's client is the least that is known
// about its end.
func TestClientEndings(t *testing.T) {
	tests := []struct {
		name    string
		runs    []string
		more    string
		outcome retire.Outcome
		reason  string
	}{
		{"a commit and a clean end", []string{begins + commits + finished}, "", retire.Done, ""},
		{"a change and a clean end", []string{begins + "echo one > one.txt\n" + finished}, "", retire.Done, ""},
		{"nothing, then the work", []string{begins + finished, speaks + commits + finished}, "", retire.Done, ""},
		{"nothing, ever", []string{begins + finished, speaks + finished, speaks + finished}, "", retire.Fail, "no change"},
		{"refused, then another way", []string{begins + refused, speaks + commits + finished}, "", retire.Done, ""},
		{"refused for good", []string{begins + refused, speaks + refused, speaks + refused}, "", retire.Block, "it was refused what it asked for: Bash: I was not allowed."},
		{"refused, and never resumed", []string{begins + refused}, ", resumes: 0", retire.Block, "it was refused"},
		{"told to go on too often", []string{begins + commits + capped, speaks + finished}, "", retire.Done, ""},
		{"told to go on too often, every time", []string{begins + commits + capped, speaks + capped}, ", resumes: 1", retire.Fail, "it ended its turn again and again without reporting an end: I am through."},
		{"an overloaded API, then none", []string{begins + overload, speaks + commits + finished}, "", retire.Done, ""},
		{"an API that is overloaded for longer", []string{begins + overload, overload, overload, commits + finished}, ", resumes: 1", retire.Done, ""},
		{"a bad key, then a good one", []string{begins + badKey, speaks + commits + finished}, "", retire.Done, ""},
		{"a bad key, and never resumed", []string{begins + badKey}, ", resumes: 0", retire.Fail, "the model's API does not accept the key (401)"},
		{"a service that it tries to reach forever, then one", []string{begins + inVain, speaks + commits + finished}, ", stall_detection: 2s", retire.Done, ""},
		{"a service that it tries to reach forever", []string{begins + inVain}, ", stall_detection: 2s, resumes: 0", retire.Fail, "the model's API can't be reached"},
		{"ended by TERM", []string{begins + "kill -TERM $$\n", speaks + commits + finished}, "", retire.Done, ""},
		{"ended by KILL", []string{begins + "kill -KILL $$\n", speaks + commits + finished}, ", resumes: 0", retire.Done, ""},
		{"another program behind the name", []string{commits + "echo all is well\n"}, "", retire.Done, ""},
		{"not understood", []string{"echo a Stack Trace\nexit 3\n"}, "", retire.Fail, "exit code 3: a Stack Trace"},
		{"no word for people", []string{begins + "exit 3\n"}, "", retire.Fail, "exit code 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k, calls := fakeClient(t, tt.more, tt.runs...)
			rec := k.sling("do it")
			k.until("it is retired", func() bool {
				k.admit()
				return k.retired(rec.AssignmentID)()
			})
			end := k.record(rec.AssignmentID)
			if end.Reason != "" && tt.outcome == retire.Done || !strings.HasPrefix(end.Reason, tt.reason) || end.Outcome != tt.outcome {
				t.Errorf("ended as %s: %q", end.Outcome, end.Reason)
			}
			if cause := wording.FirstLine(end.Reason); strings.HasSuffix(cause, ":") || strings.Contains(cause, "{") {
				t.Errorf("the cause is %q", cause)
			}
			all := calls()
			if len(all) != len(tt.runs) {
				t.Fatalf("it ran %d times, want %d", len(all), len(tt.runs))
			}
			for i, call := range all {
				resumed := strings.Contains(call, "--resume sess-1") && strings.Contains(call, "still on your hook")
				if resumed != (i > 0) {
					t.Errorf("run %d was called with %q", i+1, call)
				}
			}
			if b := k.bead(rec.BeadID); b.Attempts+b.Restarts != 0 {
				t.Errorf("going on is charged: %s", b.FailureCounts())
			}
		})
	}
}

// TestClientProgress: what the client says can be seen while it runs, and its
// totals stand in the story.
func TestClientProgress(t *testing.T) {
	k, _ := fakeClient(t, "", begins+"touch begun; while [ ! -e go ]; do sleep 0.02; done; rm begun go\n"+commits+finished)
	k.rig.Def.Prices = map[string]definition.Price{"m": {In: 1000, Out: 1000}} // what the client says wins
	rec := k.sling("do it")
	session := k.hook().WorkItem.Session
	k.until("its progress is shown", func() bool {
		if h := k.hook(); h.Status == hook.Active {
			session = h.WorkItem.Session
		}
		return agentcli.ReadProgress(k.rig.Tree, session) != nil
	})
	shown := agentcli.ReadProgress(k.rig.Tree, session)
	if shown.Client != "claude" || shown.ClientSession != "sess-1" || shown.Turns != 1 || shown.Tools != 1 || shown.Tool != "Bash" || shown.TokensIn != 1000 {
		t.Errorf("shown is %+v", shown)
	}
	if _, err := k.rig.Spend.Get(string(rec.AssignmentID)); err != nil {
		t.Errorf("its attempt does not count from its start: %v", err)
	}
	if err := os.WriteFile(filepath.Join(k.rig.Worktree(alpha), "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	k.until("it is retired", k.retired(rec.AssignmentID))
	k.until("the worker is forgotten", func() bool { return k.p.worker == nil })
	if left := agentcli.ReadProgress(k.rig.Tree, session); left != nil {
		t.Errorf("left behind: %+v", left)
	}
	spent, err := k.rig.Spend.Get(string(rec.AssignmentID))
	if err != nil {
		t.Fatal(err)
	}
	if rows := spent.Rows(); len(rows) != 1 || rows[0].Model != "m" || rows[0].Tokens() != 2010 || rows[0].CostUSD.String() != "$0.50" || rows[0].Attempts != 1 || rows[0].Time <= 0 || rows[0].Client != "claude" {
		t.Errorf("recorded is %+v", rows)
	}
	var totals []event.Event
	events, _, _, err := k.rig.Events.Read(event.Position{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Type == "worker.totals" {
			totals = append(totals, e)
		}
	}
	if started := k.story("worker.started"); len(started) != 1 || !strings.HasPrefix(started[0], "actor: ") || !slices.Contains(k.said, fmt.Sprintf("%s: working on %s: a task", alpha, rec.BeadID)) {
		t.Errorf("started: %q; said %q", started, k.said)
	}
	if exited := k.story("worker.exited"); !slices.Equal(exited, []string{"exit code 0"}) {
		t.Errorf("exited: %q", exited)
	}
	if len(totals) != 1 || totals[0].Text != "claude: 1 turn, 1 tool call, 2.0k tokens, $0.50" || len(totals[0].Extra["totals"]) == 0 {
		t.Errorf("the story says %+v", totals)
	}
}

// waiting is a reader whose client waits for its service, or does not.
type waiting struct {
	agentcli.PlainText
	waits bool
}

func (r *waiting) Waits() bool { return r.waits }

// TestQuiet: silence counts while a client waits for its service, and only as long as somebody looks.
func TestQuiet(t *testing.T) {
	w := &worker{talk: &talk{reader: &waiting{waits: true}}}
	for i, step := range []struct {
		progress, tool bool
		elapsed, want  time.Duration
	}{
		{elapsed: time.Second, want: time.Second},
		{elapsed: 2 * time.Second, want: 3 * time.Second},
		{elapsed: time.Hour, want: 3 * time.Second},
		{elapsed: -time.Hour, want: 3 * time.Second},
		{elapsed: time.Second, want: 4 * time.Second},
		{tool: true, elapsed: time.Second},
		{elapsed: time.Second, want: time.Second},
		{progress: true, elapsed: time.Second},
	} {
		w.talk.reader = &waiting{waits: !step.tool}
		if w.countQuiet(step.progress, step.elapsed); w.quiet != step.want {
			t.Errorf("step %d: %s", i, w.quiet)
		}
	}
}

// TestClientEndsUnwatched: the end of a session that nobody saw is judged by its
// transcript, not by its exit code.
func TestClientEndsUnwatched(t *testing.T) {
	tests := []struct {
		name, first, then string
		runs              int
	}{
		{"finished", commits + finished, "", 1},
		{"refused", refused, commits + finished, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k, calls := fakeClient(t, "", begins+"while [ ! -e go ]; do sleep 0.02; done; rm go\n"+tt.first, begins+tt.then)
			rec := k.sling("do it")
			k.until("the session is known", func() bool {
				h := k.hook()
				return h.Status == hook.Active && agentcli.ReadProgress(k.rig.Tree, h.WorkItem.Session) != nil
			})
			job := k.p.worker.job
			if err := os.WriteFile(filepath.Join(k.rig.Worktree(alpha), "go"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			<-job.Done()
			k.crash()
			k.until("it is retired", k.retired(rec.AssignmentID))
			if b := k.bead(rec.BeadID); b.Status != bead.Done {
				t.Errorf("bead is %s: %s", b.Status, b.CloseReason)
			}
			if n := len(calls()); n != tt.runs {
				t.Errorf("it ran %d times, want %d", n, tt.runs)
			}
			k.until("the worker is forgotten", func() bool { return k.p.worker == nil })
			for _, dir := range []string{"prompts", "progress"} {
				if left, err := os.ReadDir(filepath.Join(k.dir, ".chipset/run", dir)); err != nil || len(left) > 0 {
					t.Errorf("left in %s: %v, %v", dir, left, err)
				}
			}
		})
	}
}
