package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/gastown-chipset/chipset/chipset/git/gittest"
)

// jsonCall is a command line that TestEveryCommandSpeaksJSON runs. $NAME stands for what an earlier
// one gave back.
type jsonCall struct {
	line string
	code int
	// keep is the name under which the id or name in the answer is kept.
	keep string
}

// jsonCalls hold every command of the table at least once, in an order in which most succeed.
func jsonCalls() []jsonCall {
	return []jsonCall{
		{line: `init --worker sh --test true --polecats 2`}, {line: `init`, code: codeConflict},
		{line: `work add HOSTILE -d true --allow-empty`, keep: "A"}, {line: `work add "Second" -d true --allow-empty --accept "it is there" --label x`, keep: "B"},
		{line: `work add "Third" -d "exit 1"`, keep: "C"}, {line: `work add x -p P9`, code: codeUsage},
		{line: `work list`}, {line: `work list --status nope`, code: codeUsage}, {line: `work show $A`}, {line: `work show nope`, code: codeNotFound},
		{line: `work edit $A -p P1`}, {line: `work claim $A`, code: codeConflict}, {line: `work cancel $C --reason no`}, {line: `work reopen $C`},
		{line: `spend --by bead`}, {line: `spend --by month`, code: codeUsage}, {line: `work export`}, {line: `work import issues.jsonl`}, {line: `work import nothere`, code: codeNotFound},
		{line: `convoy create "a name" $A $B`, keep: "V"}, {line: `convoy list`}, {line: `convoy show $V`},
		{line: `sling $A polecat-alpha`}, {line: `sling $A polecat-bravo`, code: codeConflict}, {line: `unsling $A`},
		{line: `hook set polecat-alpha $A`}, {line: `hook activate --as polecat-alpha`}, {line: `hook touch note --as polecat-alpha`},
		{line: `hook show polecat-alpha`}, {line: `hook list`}, {line: `hook complete --as polecat-alpha`}, {line: `hook clear polecat-alpha`},
		{line: `mail send mayor --subject HOSTILE --body HOSTILE`, keep: "M"}, {line: `mail send polecat-alpha mayor nobody -s x`, code: codeNotFound},
		{line: `mail send human -s x --as mayor`, keep: "H"}, {line: `mail send --batch`}, {line: `mail inbox mayor`}, {line: `mail read $H`}, {line: `mail peek mayor/$M`}, {line: `mail trace mayor/$M`},
		{line: `mail reply $H --body y`}, {line: `mail forward $H polecat-alpha`}, {line: `mail wait --timeout 20ms`, code: codeTimeout}, {line: `mail search HOSTILE`}, {line: `mail archive --older-than 0s`},
		{line: `nudge send polecat-alpha --type health_check --respond`}, {line: `nudge show polecat-alpha`}, {line: `nudge wait --as polecat-alpha`}, {line: `nudge respond --as polecat-alpha`},
		{line: `handoff write --summary HOSTILE --as polecat-alpha`}, {line: `handoff show polecat-alpha`}, {line: `prime --as polecat-alpha`},
		{line: `request answer HOSTILE --as polecat-alpha`}, {line: `request plan --body x --as polecat-alpha`},
		{line: `request permission x --as polecat-alpha`}, {line: `idle --as polecat-alpha`},
		{line: `done --as polecat-alpha`, code: codeConflict}, {line: `fail --reason x --as polecat-alpha`, code: codeConflict}, {line: `block --reason x --as polecat-alpha`, code: codeConflict},
		{line: `agents`}, {line: `agents list`}, {line: `agents show polecat-alpha`}, {line: `agents set polecat-alpha --capability go`},
		{line: `agents remove polecat-alpha`, code: codeConflict},
		{line: `validate`}, {line: `mayor --timeout 1ms`, code: codeTimeout}, {line: `polecat polecat-alpha --timeout 1ms`, code: codeTimeout},
		{line: `refinery --timeout 1ms`, code: codeTimeout}, {line: `witness --timeout 1ms`, code: codeTimeout},
		{line: `up --until-idle --timeout 100s`, code: codeWaiting}, {line: `down`}, {line: `resume`},
		{line: `status`}, {line: `status --health`}, {line: `why $A`}, {line: `why $C`}, {line: `log`}, {line: `tail $A`}, {line: `diff $A`}, {line: `inbox`},
		{line: `queue list`}, {line: `queue show mr-nope`, code: codeNotFound}, {line: `queue diff mr-nope`, code: codeNotFound}, {line: `queue retry mr-nope`, code: codeNotFound},
		{line: `queue drop mr-nope --reason x`, code: codeNotFound}, {line: `approve 99`, code: codeNotFound}, {line: `deny 99`, code: codeNotFound},
		{line: `answer $C "do it"`}, {line: `reopen $C`, code: codeConflict}, {line: `permissions list`}, {line: `permissions revoke pm-0`, code: codeNotFound},
		{line: `doctor`}, {line: `doctor --rules`}, {line: `trust`, code: codeConflict}, {line: `board`, code: codeUsage},
		{line: `runtime list`}, {line: `runtime show claude`}, {line: `plugin install claude --to plugin`}, {line: `plugin uninstall claude --from plugin`},
		{line: `audit commit`}, {line: `audit log`}, {line: `audit verify`}, {line: `audit track`}, {line: `version`}, {line: `help`}, {line: `help work`},
		{line: `mcp`, code: codeUsage}, {line: `client-hook claude Stop`, code: codeUsage}, {line: `attach mayor`, code: codeUsage}, {line: `man .`, code: codeUsage}, {line: `completion bash`, code: codeUsage},
		{line: `bridge nanobot nothere`, code: codeNotFound}, {line: `bridge claude-team nothere`, code: codeNotFound}, {line: `bridge claude-tasks nothere`, code: codeNotFound},
		{line: `simulate --polecats 2 --beads 2`}, {line: `bench --nosuch`, code: codeUsage}, {line: `nosuch`, code: codeUsage}, {line: `demo extra`, code: codeUsage},
	}
}

// hostile is text that a terminal obeys.
const hostile = "red\x1b[31m\a\u202e"

// TestEveryCommandSpeaksJSON runs every command of the table with --json in a rig. What it prints is
// JSON, and so is its error; every key stands in docs/json.md, and nothing of it moves a terminal.
func TestEveryCommandSpeaksJSON(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a hundred processes")
	}
	defer gittest.Isolate()()
	dir := gittest.Repo(t)
	token := filepath.Join(dir, "config", "chipset", "person-token")
	if err := errors.Join(os.MkdirAll(filepath.Dir(token), 0o700), os.WriteFile(token, []byte("of the test"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "issues.jsonl"), []byte(`{"id":"x-1","title":"T","status":"open","priority":1,"issue_type":"task"}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	documented := documentedKeys(t)
	kept, run := map[string]string{}, map[string]bool{}
	for _, call := range jsonCalls() {
		words := splitWords(call.line)
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "HOSTILE", hostile)
			for name, value := range kept {
				words[i] = strings.ReplaceAll(words[i], "$"+name, value)
			}
		}
		found, _, err := testTree().Find(words)
		if err == nil {
			run[plainName(found)] = true
		}
		out, errs, code := chipsetJSON(t, dir, words)
		if code != call.code {
			t.Errorf("%s: exit %d, want %d\n%s%s", call.line, code, call.code, out, errs)
		}
		checkJSON(t, call, documented, out, errs)
		if call.keep != "" {
			kept[call.keep] = idIn(t, out)
		}
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		if name := plainName(cmd); !cmd.HasSubCommands() && !run[name] {
			t.Errorf("%s: no call with --json is in jsonCalls", name)
		}
	}
	walk(testTree())
}

func chipsetJSON(t *testing.T, dir string, words []string) (out, errs []byte, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "chipset", append(words, "--json")...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "CHIPSET_PERSON_TOKEN=of the test")
	cmd.Stdin = strings.NewReader(`{"to":"mayor","subject":"one"}` + "\n")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return stdout.Bytes(), stderr.Bytes(), code
}

// checkJSON holds what a command printed to docs/json.md.
func checkJSON(t *testing.T, call jsonCall, documented map[string]bool, out, errs []byte) {
	t.Helper()
	if strings.ContainsAny(string(out)+string(errs), "\x1b\a\u202e") {
		t.Errorf("%s: a terminal would obey\n%q\n%q", call.line, out, errs)
	}
	if call.code == codeOK && len(out) == 0 && call.line != "log" && !strings.HasPrefix(call.line, "tail") {
		t.Errorf("%s: no answer", call.line)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var v any
		if err := dec.Decode(&v); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Errorf("%s: %v in\n%s", call.line, err, out)
			return
		}
		if !strings.HasPrefix(call.line, "simulate") { // docs/simulation.md says what its report holds
			checkKeys(t, call.line, documented, v)
		}
	}
	if call.code == codeOK {
		return
	}
	lines := strings.Split(strings.TrimSpace(string(errs)), "\n")
	var problem jsonError
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &problem); err != nil || problem.Code != call.code || problem.Error == "" {
		t.Errorf("%s: the error %q: %v", call.line, errs, err)
	}
}

func checkKeys(t *testing.T, line string, documented map[string]bool, v any) {
	t.Helper()
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			checkKeys(t, line, documented, e)
		}
	case map[string]any:
		for key, e := range v {
			if !documented[key] {
				t.Errorf("%s: the key %q is not in docs/json.md", line, key)
				documented[key] = true // said once
			}
			checkKeys(t, line, documented, e)
		}
	}
}

// documentedKeys are the words in backticks of docs/json.md.
func documentedKeys(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-zA-Z_]+)`").FindAllSubmatch(text, -1) {
		keys[string(m[1])] = true
	}
	return keys
}

// idIn is the id or the name in an answer.
func idIn(t *testing.T, out []byte) string {
	t.Helper()
	m := regexp.MustCompile(`"(?:id|name)": "([^"]+)"`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("no id and no name in %s", out)
	}
	return string(m[1])
}
