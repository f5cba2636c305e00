package definition

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// minimal is the least that is valid; its three agents are in lines 3 to 5.
const minimal = `agents:
  agents:
    - {name: mayor, role: mayor}
    - {name: witness, role: witness}
    - {name: polecat-alpha, role: polecat}
`

func mustParse(t *testing.T, text string) *Definition {
	t.Helper()
	def, problems := Parse("chipset.yaml", []byte(text))
	problems = slices.DeleteFunc(problems, func(p Problem) bool { return strings.HasPrefix(p.Path, "evaluation.gates.") }) // see TestClassicDefinition
	if len(problems) > 0 {
		t.Fatalf("problems in a good definition:\n%s\n%s", problems.Error(), text)
	}
	return def
}

func readTestdata(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// wantDefaults is what every rig gets that decides nothing.
func wantDefaults() *Definition {
	return &Definition{
		Topology: Topology{Name: "mayor-witness-polecat", Entries: []AgentEntry{
			{Name: "mayor", Role: RoleMayor, Count: 1, Line: 3},
			{Name: "witness", Role: RoleWitness, Count: 1, Line: 4},
			{Name: "polecat-alpha", Role: RolePolecat, Count: 1, Line: 5},
		}},
		Dispatch: Dispatch{Strategy: StrategySling, MaxParallel: 10, BatchThreshold: 3, FormulaSupport: true},
		GUPP: GUPP{
			Thresholds: Thresholds{
				StallDetection: 300 * time.Second, NudgeInterval: 120 * time.Second,
				RestartThreshold: 600 * time.Second, SlowStart: 60 * time.Second,
			},
			Limits: Limits{MaxRestarts: 3, RestartCooldown: 60 * time.Second, MaxAttempts: 3, MaxConflicts: 10},
		},
		Rig:    Rig{Name: "rig", BeadPrefix: "ri", Tick: 2 * time.Second, Patrol: 10 * time.Second},
		Worker: Worker{Default: "claude", Permissions: "ask", Grace: 5 * time.Second}, Sandbox: "auto",
		Worktree: Worktree{Timeout: 10 * time.Minute},
		Merge:    Merge{TestTimeout: 20 * time.Minute, OnConflict: OnConflictRework, MaxWaiting: 10, Batch: 1, Protect: protectedPaths()},
		Mail:     Mail{Retention: 24 * time.Hour, MaxSize: 65536},
		Limits:   Allowance{Beads: 20, Depth: 3, Mail: 200, Commands: 20_000, Log: 256 << 20, Disk: 20 << 30, Tasks: 4096},
		Notify:   Notify{Digest: true},
		Audit:    Audit{Every: time.Hour, Ref: "chipset/audit"},
	}
}

func TestDefaults(t *testing.T) {
	got := mustParse(t, minimal)
	if diff := cmp.Diff(wantDefaults(), got, cmpopts.IgnoreUnexported(Definition{})); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestNotify(t *testing.T) {
	got := mustParse(t, minimal+"notify: {terminal: true, command: [a, 1], webhook: \"https://ntfy.sh/x\", quiet: 22:30-07:00, digest: false}\n").Notify
	want := Notify{Terminal: true, Command: []string{"a", "1"}, Webhook: "https://ntfy.sh/x", Quiet: Hours{22*time.Hour + 30*time.Minute, 7 * time.Hour}}
	if diff := cmp.Diff(want, got); diff != "" || !got.Any() {
		t.Error(diff)
	}
	if nothing := mustParse(t, minimal).Notify; nothing.Any() {
		t.Errorf("without a section it tells by %+v", nothing)
	}
}

// Quiet hours begin and end on their minutes, also past midnight.
func TestHours(t *testing.T) {
	night, lunch := Hours{22 * time.Hour, 7 * time.Hour}, Hours{12 * time.Hour, 13 * time.Hour}
	for text, want := range map[string][2]bool{
		"00:00": {true, false}, "06:59": {true, false}, "07:00": {false, false}, "12:00": {false, true},
		"12:59": {false, true}, "13:00": {false, false}, "21:59": {false, false}, "22:00": {true, false},
	} {
		at, err := time.Parse("15:04", text)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]bool{night.Contains(at), lunch.Contains(at)}; got != want || (Hours{}).Contains(at) {
			t.Errorf("%s: night and lunch %v, want %v", text, got, want)
		}
	}
}

func TestSectionsWithoutValuesAreNotSet(t *testing.T) {
	got := mustParse(t, minimal+"rig:\n  tick:\nheader:\nworker: {presets: }\ngupp: {}\n")
	if diff := cmp.Diff(wantDefaults(), got, cmpopts.IgnoreUnexported(Definition{})); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestClassicDefinition(t *testing.T) {
	def, problems := Parse("chipset.yaml", readTestdata(t, "classic.yaml"))
	var idle []string
	for _, problem := range problems {
		if problem.Severity == SeverityError || !strings.Contains(problem.Message, "no effect") {
			t.Errorf("%v", problem)
		}
		idle = append(idle, problem.Path)
	}
	if got, want := strings.Join(idle, " "), "evaluation.gates.pre_deploy[0] evaluation.gates.pre_deploy[1] evaluation.gates.pre_deploy[2]"; got != want {
		t.Errorf("named as without effect:\n%s\nwant\n%s", got, want)
	}
	if len(def.Skills.Required) != 4 || len(def.Skills.Recommended) != 2 || len(def.Skills.All()) != 6 {
		t.Errorf("skills: %+v", def.Skills)
	}
	ids := agentIDs(def)
	want := []string{"mayor", "witness", "refinery", "polecat-alpha", "polecat-bravo", "polecat-charlie", "polecat-delta", "polecat-echo"}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	if got := def.Communication.Channels[3]; got.Type != ChannelHandoff || got.Path != "state/merge-queue" {
		t.Errorf("fourth channel: %+v", got)
	}
	if got := def.Evaluation.Gates.PreDeploy[1]; got != (Gate{"gupp_response_time", 30, "warn"}) {
		t.Errorf("second gate: %+v", got)
	}
	if def.Rig.Name != "town-works" || def.Rig.BeadPrefix != "tw" || def.Worker.Default != "claude" || def.MergeDefined {
		t.Errorf("derived: %+v %+v MergeDefined %t", def.Rig, def.Worker, def.MergeDefined)
	}
	if diff := cmp.Diff(wantDefaults().GUPP, def.GUPP); diff != "" {
		t.Errorf("gupp (-want +got):\n%s", diff)
	}
}

func TestEveryKnob(t *testing.T) {
	def := mustParse(t, minimal+`
dispatch: {strategy: auto_claim, max_parallel: 30, batch_threshold: 1, formula_support: false}
gupp:
  thresholds: {stall_detection: 500ms, nudge_interval: 200ms, restart_threshold: 2s, slow_start: 0}
  limits: {max_restarts_per_bead: 0, restart_cooldown: 1s, max_attempts_per_bead: 5, max_conflicts_per_bead: 2}
rig: {name: "Ünïcode rig", bead_prefix: 007, tick: 50ms, patrol: 100ms}
worker:
  default: careful
  permissions: full
  grace: 2
  presets:
    careful:
      command: [my-agent, --sleep, 5, true]
      prompt: file
      timeout: 0
      env: {CI: 1, EMPTY: , _x9: "a=b"}
      stall_detection: 15m
      permissions: {ask: [], full: [--yes]}
    claude: {timeout: 2h}
    line: {command: "a | b"}
merge: {target: release/1.x, remote: origin, test: true, test_timeout: 30, on_conflict: block, push_branches: true, max_waiting: 3, batch: 8, protect: [a/, "*.lock"]}
worktree: {copy: [.env, ./conf//local/], link: [web/node_modules], submodules: true, lfs: true, setup: [npm, ci], setup_when: [package-lock.json], timeout: 90}
mail: {retention: 1h30m, max_size: 32KiB}
budget: {bead: {money: 2.5, attempts: 4}, convoy: {tokens: 5000000}, day: {time: 8h}}
prices: {gpt-5: {in: 1, out: 2.5, cached: 0}}
audit: {every: 10m, ref: history}
`)
	want := wantDefaults()
	want.Dispatch = Dispatch{Strategy: StrategyAutoClaim, MaxParallel: 30, BatchThreshold: 1}
	want.GUPP = GUPP{
		Thresholds: Thresholds{500 * time.Millisecond, 200 * time.Millisecond, 2 * time.Second, 0},
		Limits:     Limits{0, time.Second, 5, 2},
	}
	want.Rig = Rig{"Ünïcode rig", "007", 50 * time.Millisecond, 100 * time.Millisecond}
	want.Worker = Worker{Default: "careful", Permissions: "full", Grace: 2 * time.Second, Presets: []WorkerPreset{
		{
			Name: "careful", Command: Command{Argv: []string{"my-agent", "--sleep", "5", "true"}}, Prompt: "file", Timeout: new(time.Duration(0)),
			Env: map[string]string{"CI": "1", "EMPTY": "", "_x9": "a=b"}, StallDetection: 15 * time.Minute,
			Permissions: map[string][]string{"ask": {}, "full": {"--yes"}}, Line: 17,
		},
		{Name: "claude", Timeout: new(2 * time.Hour), Line: 24},
		{Name: "line", Command: Command{Line: "a | b"}, Line: 25},
	}}
	want.Merge = Merge{"release/1.x", "origin", Command{Line: "true"}, 30 * time.Second, OnConflictBlock, true, 3, 8, []string{"a/", "*.lock"}}
	want.MergeDefined = true
	want.Worktree = Worktree{Copy: []string{".env", "conf/local"}, Link: []string{"web/node_modules"}, Submodules: true, LFS: true,
		Setup: Command{Argv: []string{"npm", "ci"}}, SetupWhen: []string{"package-lock.json"}, Timeout: 90 * time.Second}
	want.Mail = Mail{90 * time.Minute, 32768}
	want.Budget = Budget{Bead: Bounds{Money: 2.5, Attempts: 4}, Convoy: Bounds{Tokens: 5_000_000}, Day: Bounds{Time: 8 * time.Hour}}
	want.Prices = map[string]Price{"gpt-5": {In: 1, Out: 2.5, Cached: new(0.0)}}
	want.Audit = Audit{10 * time.Minute, "history"}
	if diff := cmp.Diff(want, def, cmpopts.IgnoreUnexported(Definition{})); diff != "" {
		t.Errorf("definition (-want +got):\n%s", diff)
	}
	if preset, ok := def.Worker.Preset("claude"); !ok || *preset.Timeout != 2*time.Hour {
		t.Errorf("Preset(claude) = %+v, %t", preset, ok)
	}
	if _, ok := def.Worker.Preset("codex"); ok {
		t.Error("Preset(codex) was found in a file that has none")
	}
}

func TestThresholdsKeepTheirProportion(t *testing.T) {
	def := mustParse(t, minimal+"gupp: {thresholds: {stall_detection: 1s}}\n")
	want := Thresholds{time.Second, 400 * time.Millisecond, 2 * time.Second, 200 * time.Millisecond}
	if def.GUPP.Thresholds != want || def.Rig.Patrol != 100*time.Millisecond {
		t.Errorf("got %+v, patrol %s", def.GUPP.Thresholds, def.Rig.Patrol)
	}
}

func TestMergeDefined(t *testing.T) {
	for text, want := range map[string]bool{"": false, "merge:\n": true, "merge: {}\n": true, "merge: {target: main}\n": true} {
		def := mustParse(t, minimal+text)
		if def.MergeDefined != want || !def.Merge.Test.IsZero() {
			t.Errorf("%q: MergeDefined = %t, test %+v", text, def.MergeDefined, def.Merge.Test)
		}
	}
}

func TestCommandForms(t *testing.T) {
	parse := func(line string) ([]string, error) {
		if strings.Contains(line, "'") {
			return nil, errors.New("reached EOF without closing quote '")
		}
		return strings.Fields(line), nil
	}
	for _, test := range []struct {
		yaml string
		want Command
	}{
		{`""`, Command{}},
		{`"  "`, Command{}},
		{`[]`, Command{}},
		{`make test`, Command{Line: "make test", Argv: []string{"make", "test"}}},
		{`[make, "test: all"]`, Command{Argv: []string{"make", "test: all"}}},
		{"|\n    cd x\n    make\n", Command{Line: "cd x\nmake\n", Argv: []string{"cd", "x", "make"}}},
	} {
		def, problems := ParseWith("f", []byte(minimal+"merge:\n  test: "+test.yaml+"\n"), Options{ParseCommand: parse})
		if len(problems) > 0 {
			t.Errorf("%s: %v", test.yaml, problems)
			continue
		}
		if diff := cmp.Diff(test.want, def.Merge.Test, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.yaml, diff)
		}
	}
	for _, section := range []string{"merge: {test: \"it's\"}", "worker: {default: \"it's\"}", "worker: {presets: {x: {command: \"it's\"}}}"} {
		_, problems := ParseWith("f", []byte(minimal+section+"\n"), Options{ParseCommand: parse})
		if len(problems) != 1 || problems[0].Line != 6 || !strings.Contains(problems[0].Message, "closing quote") {
			t.Errorf("%s: %v", section, problems)
		}
	}
}

func TestAliases(t *testing.T) {
	def := mustParse(t, `agents:
  agents:
    - {name: mayor, role: mayor, skills: &all [one, two]}
    - {name: witness, role: witness, skills: *all}
    - {name: polecat-pool, role: polecat, count: 2, skills: *all}
`)
	if got := def.AgentsOf(RolePolecat)[1].Skills; len(got) != 2 || got[1] != "two" {
		t.Errorf("skills through an alias: %v", got)
	}
}

// TestAliasBomb holds the reader to a bound on what a small file stands for.
func TestAliasBomb(t *testing.T) {
	bomb := "agents:\n  agents:\n    - &a {name: x, role: crew, skills: &s [" + strings.Repeat("s,", 5000) + "]}\n" +
		strings.Repeat("    - *a\n", 5000)
	_, problems := Parse("bomb", []byte(bomb))
	last := Problem{}
	for _, problem := range problems {
		if strings.Contains(problem.Message, "values") {
			last = problem
		}
	}
	if last.Line == 0 {
		t.Errorf("no problem names the bound: %v", problems)
	}
	_, problems = Parse("cycle", []byte("agents: &a\n  agents: [*a, *a]\n  topology: *a\n"))
	if problems.Err() == nil {
		t.Error("an alias of itself was accepted")
	}
}

func TestReportIsBounded(t *testing.T) {
	_, problems := Parse("junk", []byte(strings.Repeat("x: 1\n", 100_000)))
	if len(problems) != maxProblems+1 || !strings.Contains(problems[maxProblems].Message, "the rest is not shown") {
		t.Errorf("%d problems, last %v", len(problems), problems[len(problems)-1])
	}
}

func TestProblems(t *testing.T) {
	_, problems := Parse("chipset.yaml", []byte(`agents:
  agents:
    - {name: mayor, role: mayer}
    - {name: witness, role: witness}
    - {name: polecat-alpha, role: polecat}
dispatch: {strategy: round-robin}
`))
	want := `chipset.yaml:2:3: agents: the topology requires exactly 1 mayor, found none
chipset.yaml:3:27: agents.agents[0].role: unknown role "mayer" (did you mean "mayor"?)
chipset.yaml:6:22: warning: dispatch.strategy: round-robin is carried out as sling: the polecat that is idle gets the work (write sling)`
	if got := problems.Error(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if len(problems.Errors()) != 2 || len(problems.Warnings()) != 1 {
		t.Errorf("%d errors, %d warnings", len(problems.Errors()), len(problems.Warnings()))
	}
	var first Problem
	if err := fmt.Errorf("validate: %w", problems.Err()); !errors.As(err, &first) || first.Path != "agents" {
		t.Errorf("errors.As found %+v", first)
	}
	if problems.Warnings().Err() != nil {
		t.Error("warnings alone are an error")
	}
}

func TestLookPath(t *testing.T) {
	opts := Options{
		LookPath: func(file string) (string, error) {
			if file == "there" || file == "sh" {
				return "/bin/" + file, nil
			}
			return "", errors.New("not found")
		},
		ParseCommand: func(line string) ([]string, error) { return strings.Fields(line), nil },
	}
	for _, test := range []struct {
		yaml, want string
	}{
		{"", `f:1:1: warning: worker: the command "claude" was not found on this machine`},
		{"worker: {default: sh}\nmerge: {test: there now}", ""},
		{"worker: {default: there}", ""},
		{"worker: {default: ./bin/agent}", ""},
		{"worker: {default: gone --now}", `f:6:19: warning: worker.default: the command "gone" was not found on this machine`},
		{"worker: {default: gone, presets: {gone: {command: there}}}", ""},
		{"worker: {default: cluade}", `f:6:19: warning: worker.default: no preset is called "cluade": it is taken for a command (did you mean "claude"?)`},
		{"worker: {default: there, presets: {x: {command: [gone]}}}", `f:6:49: warning: worker.presets.x.command: the command "gone" was not found on this machine`},
		{"worker: {default: sh}\nmerge: {test: [gone, there]}", `f:7:15: warning: merge.test: the command "gone" was not found on this machine`},
		{"worker: {default: claude, presets: {claude: {command: there}}}", ""},
		{"worker: {default: claude, presets: {claude: {timeout: 1h}}}", `f:6:19: warning: worker.default: the command "claude" was not found on this machine`},
	} {
		def, problems := ParseWith("f", []byte(minimal+test.yaml+"\n"), opts)
		if got := problems.Error(); got != test.want || def == nil {
			t.Errorf("%s\n got %s\nwant %s", test.yaml, got, test.want)
		}
	}
}

func TestDefaultWorker(t *testing.T) {
	for provider, want := range map[string]string{
		"claude_code": "claude", "claude": "claude", "codex": "codex", "gemini": "gemini", "gemini-cli": "gemini",
		"opencode": "opencode", "aider": "aider", "cursor": "gemini",
	} {
		def := mustParse(t, minimal+"runtime: {providers: [{name: "+provider+"}, {name: gemini_cli, capabilities: [tool_use]}]}\n")
		if def.Worker.Default != want {
			t.Errorf("%s: default worker %s, want %s", provider, def.Worker.Default, want)
		}
	}
}
