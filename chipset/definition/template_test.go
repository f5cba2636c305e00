package definition

import (
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// TestTemplateShowsTheDefaults: what the template says, and what it leaves to be
// said, come to the same.
func TestTemplateShowsTheDefaults(t *testing.T) {
	def := mustParse(t, string(Template(TemplateOptions{})))
	want := wantDefaults()
	want.MergeDefined = true
	ignore := cmpopts.IgnoreFields(Definition{}, "Topology")
	if diff := cmp.Diff(want, def, ignore, cmpopts.IgnoreUnexported(Definition{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("template (-default +template):\n%s", diff)
	}
	if got := len(def.AgentsOf(RolePolecat)); got != 5 {
		t.Errorf("%d polecats, want 5", got)
	}
}

func TestTemplateTakesItsOptions(t *testing.T) {
	opts := TemplateOptions{
		RigName: "Gas Town", Prefix: "gas", Worker: `agent --say "it's: #1" {prompt}`, Polecats: 30,
		Target: "release/1.x", Test: "make test: # 'all' \\ \"of\" it\nexit 0", Permissions: "full",
		Worktree: Worktree{Copy: []string{".env", "a b/c"}, Link: []string{"node_modules"}, Submodules: true, LFS: true,
			Setup: Command{Line: "npm ci && true"}, SetupWhen: []string{"package-lock.json"}},
	}
	def := mustParse(t, string(Template(opts)))
	got := TemplateOptions{
		def.Rig.Name, def.Rig.BeadPrefix, def.Worker.Default, len(def.AgentsOf(RolePolecat)),
		def.Merge.Target, def.Merge.Test.Line, def.Worker.Permissions, def.Worktree,
	}
	got.Worktree.Timeout = 0
	if diff := cmp.Diff(opts, got); diff != "" {
		t.Errorf("round trip (-want +got):\n%s", diff)
	}
}

// TestTemplateExplainsEveryKnob keeps the template complete when a knob is added.
func TestTemplateExplainsEveryKnob(t *testing.T) {
	text := string(Template(TemplateOptions{}))
	for _, knob := range strings.Fields("name bead_prefix tick patrol topology role count skills default permissions grace presets sandbox allow network read write copy link submodules lfs setup setup_when" +
		" command prompt timeout env stall_detection target remote test test_timeout on_conflict push_branches max_waiting batch protect" +
		" strategy max_parallel batch_threshold formula_support nudge_interval restart_threshold slow_start" +
		" max_restarts_per_bead max_attempts_per_bead max_conflicts_per_bead restart_cooldown retention max_size beads depth mail commands log disk budget money tokens attempts time prices notify terminal desktop webhook quiet digest every ref") {
		if !strings.Contains(text, knob+":") {
			t.Errorf("the template doesn't show %s", knob)
		}
	}
	for i, line := range strings.Split(text, "\n") {
		if utf8.RuneCountInString(line) > 90 && !strings.HasPrefix(line, "# yaml-language-server:") {
			t.Errorf("line %d is too wide: %s", i+1, line)
		}
	}
}

// TestTemplateOfAnything: no name of a directory and no command makes a file that
// says something else.
func TestTemplateOfAnything(t *testing.T) {
	odd := rapid.OneOf(rapid.String(), rapid.StringMatching("[ -~\\x00-\\x1f]*"),
		rapid.SampledFrom([]string{"{test}", "a: b", "# x", "'", `"`, `\`, "- x", "&a", "*a", "!t", "%", "@", "\ufeff", "\xff\xfe", "\u2028", "yes", "null", "~", "1e3", "---"}))
	rapid.Check(t, func(t *rapid.T) {
		opts := TemplateOptions{RigName: odd.Draw(t, "name"), Prefix: odd.Draw(t, "prefix"), Test: odd.Draw(t, "test"), Permissions: odd.Draw(t, "permissions")}
		def, problems := Parse("f", Template(opts))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if def.Rig.Name != CleanName(opts.RigName) {
			t.Fatalf("name %q of %q", def.Rig.Name, opts.RigName)
		}
		if want := strings.TrimSpace(cleanText(strings.TrimSpace(opts.Test))); strings.TrimSpace(def.Merge.Test.Line) != want {
			t.Fatalf("test %q, want %q", def.Merge.Test.Line, want)
		}
	})
}

func TestTemplateWorkers(t *testing.T) {
	for _, preset := range builtinPresets() {
		def := mustParse(t, string(Template(TemplateOptions{Worker: preset})))
		if def.Worker.Default != preset {
			t.Errorf("worker %q, want %q", def.Worker.Default, preset)
		}
	}
	opts := Options{LookPath: exec.LookPath}
	if _, problems := ParseWith("f", Template(TemplateOptions{Worker: "sh"}), opts); len(problems) > 0 {
		t.Error(problems)
	}
}

func TestDetectTest(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"nothing", nil, ""},
		{"go", map[string]string{"go.mod": ""}, "go test ./..."},
		{"cargo", map[string]string{"Cargo.toml": ""}, "cargo test"},
		{"npm", map[string]string{"package.json": `{"scripts": {"test": "jest"}}`}, "npm test"},
		{"npm's own script", map[string]string{"package.json": `{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}`}, ""},
		{"npm without a script", map[string]string{"package.json": `{"scripts": {"build": "x"}}`}, ""},
		{"npm without scripts", map[string]string{"package.json": `{}`}, ""},
		{"npm broken", map[string]string{"package.json": `{"scripts": `}, ""},
		{"npm strange", map[string]string{"package.json": `{"scripts": {"test": 1}}`}, ""},
		{"broken npm, then pytest", map[string]string{"package.json": `{}`, "pytest.ini": ""}, "python3 -m pytest -q"},
		{"pyproject", map[string]string{"pyproject.toml": ""}, "python3 -m pytest -q"},
		{"python with tests", map[string]string{"setup.py": "", "tests": ""}, "python3 -m pytest -q"},
		{"tests of something else", map[string]string{"tests": "", "composer.json": "{}"}, ""},
		{"make first", map[string]string{"go.mod": "", "Makefile": "all: x\n\ntest: all\n\tgo test\n"}, "make test"},
		{"make with several targets", map[string]string{"Makefile": "check test: all\n"}, "make test"},
		{"make, double colon", map[string]string{"Makefile": "test:: all\n"}, "make test"},
		{"make, an assignment", map[string]string{"go.mod": "", "Makefile": "test := x\ntest ::= x\n.PHONY: test\n\techo test: x\n# a test: x\n"}, "go test ./..."},
		{"make without test", map[string]string{"Makefile": "all:\n"}, ""},
		{"the Makefile that make reads", map[string]string{"Makefile": "test:\n", "GNUmakefile": "all:\n"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			has := func(path string) bool { _, ok := test.files[path]; return ok }
			read := func(path string) []byte { return []byte(test.files[path]) }
			if got := DetectTest(has, read); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
