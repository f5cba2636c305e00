package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestFlagsRefuseBadValues gives every flag of every command that counts or measures time values that
// mean nothing: exit 2, and one line that names the flag and the value.
func TestFlagsRefuseBadValues(t *testing.T) {
	a, _, errs := newTestApp(t)
	tried := 0
	try := func(cmd *cobra.Command, flag, value string) {
		t.Helper()
		example, _, _ := strings.Cut(cmd.Example[strings.Index(cmd.Example, cmd.CommandPath()):], "\n")
		example, _, _ = strings.Cut(example, " > ")
		words := append(splitWords(example)[1:], fmt.Sprintf("--%s=%s", flag, value))
		errs.Reset()
		code := execute(t.Context(), words, fresh(a))
		line, _, _ := strings.Cut(errs.String(), "\n")
		if tried++; code != codeUsage || !strings.HasPrefix(line, "chipset: "+commandName(cmd)+": ") || !strings.Contains(line, value) || !strings.Contains(line, flag) {
			t.Errorf("%s: exit %d, %q", strings.Join(words, " "), code, line)
		}
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		if cmd.HasSubCommands() || cmd.Hidden {
			return
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			switch f.Value.Type() {
			case "duration":
				try(cmd, f.Name, "-5s")
				try(cmd, f.Name, "soon")
			case "int":
				try(cmd, f.Name, "-1")
				try(cmd, f.Name, "many")
			case "bool":
				try(cmd, f.Name, "perhaps")
			}
		})
	}
	walk(testTree())
	if tried < 60 {
		t.Errorf("only %d flags were tried", tried)
	}
}

// TestBadNamesAreRefused gives commands names that nothing has: each is refused in one line that
// names the value, and with a fixed list, what is allowed.
func TestBadNamesAreRefused(t *testing.T) {
	a, out, errs := newTestApp(t)
	if code := execute(t.Context(), []string{"work", "add", "a bead"}, fresh(a)); code != codeOK {
		t.Fatalf("work add: exit %d: %s", code, errs)
	}
	id := strings.TrimSpace(out.String())
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"up --timeout x", codeUsage, `up: --timeout "x" is not a duration such as 90s or 1h30m`},
		{"up --polecats 99", codeUsage, "up: polecat count out of range: 99 is not between 1 and 30"},
		{"up --polecats 0", codeUsage, "up: polecat count out of range: 0 is not between 1 and 30"},
		{"up --log-format xml", codeUsage, `--log-format "xml" is not text or json`},
		{"polecat nosuch", codeNotFound, `no agent "nosuch"`},
		{"log --bead nosuch", codeNotFound, `no bead "nosuch"`},
		{"log --agent nosuch", codeNotFound, `no agent "nosuch"`},
		{"log --type nosuch", codeUsage, `no events of type "nosuch"`},
		{"log --since nosuch", codeUsage, `"nosuch" is not a duration such as 1h`},
		{"log --limit x", codeUsage, `log: --limit "x" is not a whole number`},
		{"tail nosuch", codeNotFound, `no agent or bead "nosuch"`},
		{"diff nosuch", codeNotFound, `no bead "nosuch"`},
		{"why nosuch", codeNotFound, `no bead "nosuch"`},
		{"work add x -p P9", codeUsage, `work add: --priority "P9" is not P1, P2 or P3`},
		{"work show a/b", codeUsage, `work show: invalid ID: "a/b"`},
		{"agent hook", codeUsage, "agent hook: missing subcommand: one of show"},
		{"mail sned", codeUsage, `mail: unknown command "sned"`},
		{"work add x --blocked-by nosuch", codeNotFound, `no bead "nosuch"`},
		{"work list --status nosuch", codeUsage, `--status "nosuch" is not one of open, hooked, in_progress`},
		{"queue list --status nosuch", codeUsage, `--status "nosuch" is not one of pending, merging`},
		{"queue show nosuch", codeNotFound, `no merge request "nosuch"`},
		{"convoy show nosuch", codeNotFound, `no convoy "nosuch"`},
		{"convoy create x nosuch", codeNotFound, `no bead "nosuch"`},
		{"sling nosuch", codeNotFound, `no bead "nosuch"`},
		{"sling " + id + " nosuch", codeNotFound, `no agent "nosuch"`},
		{"sling " + id + " mayor", codeConflict, "mayor: is a mayor"},
		{"unsling " + id, codeConflict, id + ": is open"},
		{"hook set polecat-alpha nosuch", codeNotFound, `no bead "nosuch"`},
		{"mail send nosuch -s x", codeNotFound, `no agent "nosuch"`},
		{"mail send mayor -s x --type nosuch", codeUsage, `unknown type "nosuch"`},
		{"mail send mayor -s x --priority nosuch", codeUsage, `unknown priority "nosuch" (urgent, normal, low)`},
		{"mail send mayor -s x --deadline -5s", codeUsage, `"-5s" is neither a duration`},
		{"mail wait --type nosuch", codeUsage, `--type "nosuch" is not one of work_assignment`},
		{"mail wait --from nosuch", codeNotFound, `no agent "nosuch"`},
		{"mail inbox nosuch", codeNotFound, `no agent "nosuch"`},
		{"mail archive --older-than -5s", codeUsage, `"-5s" is not a duration`},
		{"nudge send mayor", codeUsage, "nudge send: --type is required"},
		{"nudge send mayor --type nosuch", codeUsage, `"nosuch" is not a type of nudge`},
		{"status --as nosuch", codeNotFound, `no agent "nosuch"`},
		{"idle --reason nosuch", codeUsage, `"nosuch" is not a reason to be idle`},
		{"resume nosuch", codeNotFound, "no pause of nosuch"},
		{"runtime show no-such-worker", codeNotFound, `"no-such-worker" is neither a preset nor a command on PATH`},
		{"runtime show claude --permissions nosuch", codeUsage, `"nosuch" is not ask, edit or full`},
		{"plugin install nosuch", codeUsage, `no client "nosuch": claude, codex, gemini`},
		{"prime --format xml", codeUsage, `"xml" is not text or json`},
		{"man nosuch", codeNotFound, `no directory "nosuch"`},
		{"completion tcsh", codeUsage, `"tcsh" is not bash, zsh or fish`},
		{"init --worker no-such-worker", codeUsage, `"no-such-worker" is neither a preset nor a command on PATH`},
		{"init --permissions nosuch", codeUsage, `"nosuch" is not one of ask, edit, full`},
		{"validate --schema chipset.yaml", codeUsage, "validate: --schema checks nothing"},
		{"validate nosuch", codeNotFound, "nosuch: not found"},
		{"reopen nosuch", codeNotFound, `no bead "nosuch"`},
	} {
		errs.Reset()
		code := execute(t.Context(), splitWords(c.line), fresh(a))
		line, rest, _ := strings.Cut(errs.String(), "\n")
		if code != c.code || !strings.HasPrefix(line, "chipset: ") || !strings.Contains(line, c.want) || rest != "" && !strings.HasPrefix(rest, "hint: ") {
			t.Errorf("%s: exit %d, want %d with %q in\n%s", c.line, code, c.code, c.want, errs)
		}
	}
	if bytes.Contains(errs.Bytes(), []byte("warning")) {
		t.Errorf("warnings beside an error: %s", errs)
	}
}
