package polecat

import (
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/retire"
	"github.com/gastown-chipset/chipset/state/wording"
)

// TestReasons: however a worker ends, the first line of the reason names the cause, and is
// what every place shows that has room for one line.
func TestReasons(t *testing.T) {
	t.Parallel()
	overloaded := fault.New(fault.Overloaded, "the model's API is overloaded (529)")
	const json = `{"type":"result","result":"no"}`
	for _, tt := range []struct {
		name    string
		exit    Exit
		outcome retire.Outcome
		want    string
	}{
		{"a code alone", Exit{Code: 6}, retire.Fail, "exit code 6"},
		{"a code and a word", Exit{Code: 6, Tail: "no such table"}, retire.Fail, "exit code 6: no such table"},
		{"a code and many words", Exit{Code: 6, Tail: "compiling\nno such table\n"}, retire.Fail, "exit code 6: no such table"},
		{"a code and JSON", Exit{Code: 6, Tail: json + "\n" + json}, retire.Fail, "exit code 6"},
		{"words before JSON", Exit{Code: 6, Tail: "out of range\n" + json + "\n}\n---"}, retire.Fail, "exit code 6: out of range"},
		{"an error with a hint", Exit{Code: 7, Tail: "chipset: no such bead\nhint: see chipset work list"}, retire.Fail, "exit code 7: chipset: no such bead"},
		{"a long line", Exit{Code: 6, Tail: strings.Repeat("ab ", 400)}, retire.Fail, "exit code 6: " + strings.Repeat("ab ", 100) + "…"},
		{"not found", Exit{Code: 127, Tail: "sh: 1: foo: not found"}, retire.Fail, "exit code 127, a command could not be found or executed: sh: 1: foo: not found"},
		{"not started", Exit{Code: 127, NotStarted: "exec /x: no such file or directory"}, retire.Fail, "the worker could not start: exec /x: no such file or directory"},
		{"a signal", Exit{Code: 137, Signal: "SIGKILL", Tail: "one\ntwo"}, retire.Fail, "killed by SIGKILL: two"},
		{"a time-out", Exit{Code: 143, TimedOut: true, Ran: time.Hour, Tail: "still\ntrying"}, retire.Fail, "timed out after 1h0m0s: trying"},
		{"a time-out in a fault", Exit{Code: 143, TimedOut: true, Ran: time.Hour, Ending: Early, Why: "w", Fault: overloaded}, retire.Fail,
			"timed out after 1h0m0s: the model's API is overloaded (529)"},
		{"a fault", Exit{Code: 1, Ending: Early, Why: overloaded.Reason, Fault: overloaded, Tail: "API Error: 529"}, retire.Fail, "the model's API is overloaded (529)"},
		{"a refused tool", Exit{Ending: Refused, Why: "it was refused what it asked for: Bash", Tail: "I may not."}, retire.Block,
			"it was refused what it asked for: Bash: I may not."},
		{"early", Exit{Ending: Early, Why: "it reached its limit of turns"}, retire.Fail, "it reached its limit of turns"},
		{"early, in JSON", Exit{Ending: Early, Why: "it ended without a result", Tail: json}, retire.Fail, "it ended without a result"},
		{"a session that is gone", Exit{Code: 1, Ending: Gone, Why: "its client can't load the session any more: none"}, retire.Fail,
			"its client can't load the session any more: none"},
		{"a limit", Exit{TimedOut: true, Exceeded: "its worktree takes more than limits.disk"}, retire.Fail, "ended because its worktree takes more than limits.disk"},
		{"clean", Exit{Ending: Clean, Tail: "Finished."}, retire.Done, ""},
	} {
		outcome, reason := tt.exit.Outcome()
		cause := wording.FirstLine(reason)
		if outcome != tt.outcome || cause != strings.TrimSpace(tt.want) {
			t.Errorf("%s: %s %q, want %q", tt.name, outcome, cause, tt.want)
		}
		if strings.HasSuffix(cause, ":") || len(cause) < 200 && wording.Reason(reason) != cause {
			t.Errorf("%s: %q is shown as %q", tt.name, cause, wording.Reason(reason))
		}
		if words := tt.exit.Tail; strings.Contains(words, "\n") && tt.exit.Fault.IsZero() && !strings.HasSuffix(reason, words) {
			t.Errorf("%s: %q holds less than %q", tt.name, reason, words)
		}
	}
}
