package event

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/state"
)

// examples are one event of every type, with every field that a type can have.
func examples() []Event {
	w := Work{Bead: "gt-a", Assignment: "as-a", Session: "ses-a"}
	r := Request{ID: "mr-gt-a", Bead: "gt-a", Assignment: "as-a"}
	m := Mail{Owner: "mayor", Name: "n.json", From: "human", Type: "coordination", Subject: "s", Work: w}
	read := Reading{Reader: "mayor", Owner: "human", Name: "n.json", How: "prompt", Work: w}
	n := Nudge{From: "human", To: "mayor", Type: "abort", Message: "m", Work: w}
	in := Incident{ID: "in-a", Agent: "polecat-alpha", Work: Work{Bead: "gt-a", Assignment: "as-a"}, Kind: "stalled", Detail: "d"}
	all := []Event{
		CardChanged("human", "mayor"), AgentRegistered("mayor", "mayor"), AgentRetired("mayor", "why"), AgentStarted("mayor", "ses-a", 1), AgentStopped("mayor", "ses-a"),
		BeadAdded("human", "gt-a", "open", "t"), BeadEdited("human", "gt-a", "title"), BranchNotPushed("polecat-alpha", w, "p"),
		ClientKeptGoing("polecat-alpha", w), ClientStoppedEarly("polecat-alpha", w),
		ConvoyCompleted("mayor", "cv-a", "n"), ConvoyCreated("mayor", "cv-a", "n"),
		DispatchConfirmed("mayor", "polecat-alpha", Work{Bead: "gt-a", Assignment: "as-a"}), DispatchStored("mayor", "polecat-alpha", Work{Bead: "gt-a", Assignment: "as-a"}),
		DispatchUndone("mayor", "polecat-alpha", Work{Bead: "gt-a", Assignment: "as-a"}, "why"),
		FolderCleared("human", "run"), HandoffWritten("polecat-alpha", w, "stamp", "s"), HookCorrupt("polecat-alpha", "p"),
		IncidentOpened(in, "warning"), IncidentRaised(in, "warning", "critical"), IncidentResolved(in, "critical", "over"),
		MailArchived("human", "mayor", "n.json"), MailHandled(m), MailInjected(read), MailSeen(read), MailQuarantined("mayor", &state.Corruption{Path: "p", Reason: "r"}),
		MailSent(m), MailStale("mayor", "n.json", "why"), MailUndeliverable("mayor", "human", w, "t"),
		RequestAllowed(r, "f"), RequestHeld(r, "f"), RequestLeftOut("refinery", r, "why"), RequestRebased("refinery", r, "t"), RequestRestored("refinery", r, "t"), RequestSubmitted("polecat-alpha", r, "t"), RequestTested("refinery", r, "t"),
		NudgeInjected(n), NudgeSeen(n), NudgeSent(n),
		PermissionDecided("human", "pm-a", "approve", "r"), PermissionRemembered("polecat-alpha", "pm-a", "approve", "r"), PermissionRevoked("human", "pm-a", "r"),
		ProgressNotWritten("polecat-alpha", w, "p"), QueueBlocked("refinery", "mr-gt-a", "why"), QueueUnblocked("refinery"),
		RetireUnfinished("polecat-alpha", w, "p"), RigCreated("rig-a", "dir"), ScopePaused("rig", "disk_full", "why"), ScopeResumed("rig", "disk_full"), SessionNotForgotten("polecat-alpha", "ses-a", "p"), Warning("mayor", w, "p", "t"),
		WorkerExited("polecat-alpha", w, "t"), WorkerResumed("polecat-alpha", w, "t"), WorkerSalvaged("polecat-alpha", w, "ref", "t"), WorkerStarted("polecat-alpha", w, "t"),
		WorkerStopped("polecat-alpha", w, "t"), WorkerTotals("polecat-alpha", w, "t", []byte(`{}`)),
		WorktreeMended("polecat-alpha", "t"), WorktreeNotReleased("polecat-alpha", w, "p"),
	}
	for _, to := range []string{"open", "hooked", "in_progress", "done", "merged", "closed", "failed", "blocked", "cancelled"} {
		all = append(all, BeadMoved("mayor", BeadMove{Bead: "gt-a", Assignment: "as-a", Assignee: "polecat-alpha", From: "x", To: to, Why: "why"}))
	}
	for _, step := range []HookStep{HookSet, HookActivated, HookCompleted, HookCleared} {
		all = append(all, HookMoved("polecat-alpha", w, HookMove{Step: step, Owner: "polecat-alpha", From: "a", To: "b", Note: "n"}))
	}
	for _, step := range []HookStep{HookLent, HookResumed, HookReturned, HookTouched} {
		all = append(all, HookMoved("polecat-alpha", w, HookMove{Step: step, Owner: "polecat-alpha", From: "active", To: "active", Note: "n"}))
	}
	for _, to := range []string{"pending", "merging", "merged", "conflicted", "superseded", "dropped"} {
		all = append(all, RequestMoved("refinery", r, "x", to, "t"))
	}
	for _, stage := range []string{"published", "committed", "recorded", "submitted", "reported", "completed", "released", "stale"} {
		all = append(all, RetireReached("polecat-alpha", w, stage, "t"))
	}
	return all
}

// fields are the fields of an event beside type, time and agent, as its JSON names them.
func fields(e *Event) string {
	var names []string
	for _, f := range []struct {
		name string
		set  bool
	}{{"bead_id", e.Bead != ""}, {"assignment_id", e.Assignment != ""}, {"session", e.Session != ""}, {"subject", e.Subject != ""},
		{"from", e.From != ""}, {"to", e.To != ""}, {"text", e.Text != ""}, {"totals", e.Extra["totals"] != nil}} {
		if f.set {
			names = append(names, "`"+f.name+"`")
		}
	}
	return strings.Join(names, ", ")
}

// The table in docs/state.md has each type with the fields that its constructor fills in.
func TestTypesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/state.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+(?:\\.[a-z_]+)?)` \\| [^|]+ \\| ([^|]*) \\|$").FindAllStringSubmatch(section(string(page), "### Types of events"), -1) {
		rows[row[1]] = row[2]
	}
	var types []string
	for _, e := range examples() {
		types = append(types, e.Type)
		if has, want := rows[e.Type], fields(&e); has != want {
			t.Errorf("%s: docs/state.md names the fields %s, the constructor fills in %s", e.Type, has, want)
		}
	}
	slices.Sort(types)
	if !slices.Equal(types, Types()) {
		t.Errorf("the constructors make\n%v\nTypes returns\n%v", types, Types())
	}
	if len(rows) != len(types) {
		t.Errorf("docs/state.md has %d types, there are %d", len(rows), len(types))
	}
}

// section is a page from a heading to the next one.
func section(page, heading string) string {
	_, rest, _ := strings.Cut(page, heading+"\n")
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

// Events are made here and nowhere else.
func TestNoEventIsMadeElsewhere(t *testing.T) {
	literal := regexp.MustCompile(`\bevent\.Event\{[^}]`)
	err := filepath.WalkDir("../..", func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		if at := literal.FindString(string(data)); at != "" {
			t.Errorf("%s makes an event of its own: call a constructor of state/event", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
