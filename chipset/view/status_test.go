package view

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/chipset/view/screen"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// busy is a rig with something of everything, as its clock stands at rigtest.Noon().
func busy(t *testing.T) *rigtest.Yard {
	f := rigtest.NewYard(t)
	f.Now = rigtest.Noon().Add(-time.Hour)
	f.Hang(f.PutBead("gt-work1", bead.InProgress, func(b *bead.Bead) { b.Title = "Write \x1b[31mthe\x07 README\u202e" }), hook.Active)
	f.PutRequest(f.PutBead("gt-done1", bead.Done, nil), mergequeue.Conflicted, func(q *mergequeue.Request) {
		q.Failure, q.Reason = mergequeue.FailConflict, "conflict in README.md\nand more"
	})
	f.PutRequest(f.PutBead("gt-done2", bead.Done, func(b *bead.Bead) { b.Assignee = bravo }), mergequeue.Pending, nil)
	f.PutRequest(f.PutBead("gt-merg1", bead.Merged, nil), mergequeue.Merged, nil)
	f.PutBead("gt-open1", bead.Open, nil)
	f.PutBead("gt-open2", bead.Open, func(b *bead.Bead) { b.BlockedBy = []state.BeadID{"gt-work1"} })
	f.PutBead("gt-stop1", bead.Blocked, func(b *bead.Bead) { b.CloseReason = "attempt 3 of 3 failed: exit code 3" })
	rigtest.Must(t, f.Convoys.Put("cv-a", convoy.Convoy{ID: "cv-a", Name: "the first", BeadIDs: []state.BeadID{"gt-merg1", "gt-work1"}, CreatedAt: f.At()}))
	rigtest.Must(t, f.Incidents.Put("in-1", incident.Incident{ID: "in-1", AgentID: alpha, AssignmentID: "as-gt-work1", BeadID: "gt-work1",
		Kind: incident.Stalled, Severity: incident.Critical, OpenedAt: f.At(), Detail: "no progress"}))
	_, err := f.Sender.Send(t.Context(), mail.Message{From: "mayor", To: "human", Type: mail.Coordination, Subject: "Look at gt-stop1", Priority: mail.Urgent})
	rigtest.Must(t, err)
	f.Plant("state/work/gt-bad.json", "{")
	f.Now = rigtest.Noon()
	return f
}

func TestStatusText(t *testing.T) {
	f := busy(t)
	f.Run("mayor", alpha)
	s, err := GetStatus(t.Context(), f.Rig)
	rigtest.Must(t, err)
	var out strings.Builder
	rigtest.Must(t, s.WriteText(&out, screen.Options{}))
	got := out.String()
	for _, want := range []string{
		"yard  " + f.Dir,
		"lands on   main  " + f.Tip()[:10] + "  first",
		"tested by  make check",
		"Agents  2 of 5 running",
		"gt-work1 (1h 0m, progress 1h 0m ago) Write [31mthe README",
		"○  refinery       not running  idle",
		"Beads  2 open (1 ready), 1 in progress, 2 done, 1 blocked, 1 merged",
		"Needs you  3 decisions",
		"blocked  gt-stop1 Title of gt-stop1: attempt 3 of 3 failed: exit code 3",
		"chipset reopen 2, or chipset answer 2 TEXT, or chipset work cancel gt-stop1",
		"1  mr-gt-done1  conflict  1h 0m  conflict in README.md  Title of gt-done1",
		"2  mr-gt-done2  pending   1h 0m  behind mr-gt-done1  Title of gt-done2",
		"cv-a  [##########----------]  1/2  the first",
		"critical  polecat-alpha  stalled  1h 0m  gt-work1 no progress",
		"1h 0m  mayor  Look at gt-stop1",
		"! refinery is not running: nothing lands",
		"! state/work/gt-bad.json: not valid JSON",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, no := range []string{"mayor is not running", "\x1b", "\x07", "\u202e"} {
		if strings.Contains(got, no) {
			t.Errorf("%q in\n%s", no, got)
		}
	}
}

// Mail about what needs the person is counted, but not listed again.
func TestStatusListsNoMailAboutNeeds(t *testing.T) {
	f := rigtest.NewYard(t)
	f.PutBead("gt-stop1", bead.Blocked, nil)
	send := func(subject string, ref *mail.Ref) string {
		_, err := f.Sender.Send(t.Context(), mail.Message{From: "mayor", To: "human", Type: mail.Coordination, Subject: subject, Ref: ref})
		rigtest.Must(t, err)
		s, err := GetStatus(t.Context(), f.Rig)
		rigtest.Must(t, err)
		var out strings.Builder
		rigtest.Must(t, s.WriteText(&out, screen.Options{}))
		_, mails, _ := strings.Cut(out.String(), "Your mail  ")
		mails, _, _ = strings.Cut(mails, "\n\n")
		return mails
	}
	if got, want := send("gt-stop1 is blocked", &mail.Ref{BeadID: "gt-stop1"}), "1 unread, all about what needs you: chipset mail inbox\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := send("gt-other was retired", &mail.Ref{BeadID: "gt-other"}), "2 unread: chipset mail inbox\n  0s  mayor  gt-other was retired\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestStatusFitsTheTerminal(t *testing.T) {
	f := busy(t)
	s, err := GetStatus(t.Context(), f.Rig)
	rigtest.Must(t, err)
	for _, width := range []int{40, 80, 132} {
		var out strings.Builder
		rigtest.Must(t, s.WriteText(&out, screen.Options{Width: width}))
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width && !strings.Contains(line, "chipset mail inbox") {
				t.Errorf("%d columns at width %d: %q", n, width, line)
			}
		}
	}
	var out strings.Builder
	rigtest.Must(t, s.WriteText(&out, screen.Options{Width: 80, Colour: true}))
	if !strings.Contains(out.String(), "\x1b[31mcritical\x1b[0m") || strings.Contains(out.String(), "\x1b[31mthe") {
		t.Errorf("colours:\n%q", out.String())
	}
}

func TestStatusJSON(t *testing.T) {
	for name, f := range map[string]*rigtest.Yard{"fresh": rigtest.NewYard(t), "busy": busy(t)} {
		s, err := GetStatus(t.Context(), f.Rig)
		rigtest.Must(t, err)
		data, err := state.Encode(s)
		rigtest.Must(t, err)
		if strings.Contains(string(data), "null") {
			t.Errorf("%s: null in %s", name, data)
		}
		var back struct {
			Agents []struct {
				ID   string `json:"id"`
				Hook string `json:"hook"`
				Bead string `json:"bead_id"`
			} `json:"agents"`
			Queue []struct {
				ID   string `json:"id"`
				Wait string `json:"wait"`
			} `json:"queue"`
		}
		rigtest.Must(t, json.Unmarshal(data, &back))
		if len(back.Agents) != 6 || name == "busy" && (len(back.Queue) != 2 || back.Queue[1].Wait != "behind mr-gt-done1") {
			t.Errorf("%s: %+v", name, back)
		}
	}
}

func TestStatusWarnsOfWorkNobodyDoes(t *testing.T) {
	f := rigtest.NewYard(t)
	f.Hang(f.PutBead("gt-aaaaa", bead.InProgress, nil), hook.Active)
	f.Plant(f.Hooks.Path(string(bravo)), "{")
	s, err := GetStatus(t.Context(), f.Rig)
	rigtest.Must(t, err)
	all := strings.Join(s.Warnings, "\n")
	if !strings.Contains(all, "the rig is not running: chipset up starts it") || strings.Contains(all, "mayor") || strings.Contains(all, "polecat-alpha") {
		t.Errorf("of a rig that is down: %s", all)
	}
	f.Run("refinery")
	s, err = GetStatus(t.Context(), f.Rig)
	rigtest.Must(t, err)
	all = strings.Join(s.Warnings, "\n")
	for _, want := range []string{"mayor is not running", "1 polecat not running although there is work on the hook: polecat-alpha (gt-aaaaa)", "the hook of polecat-bravo is missing or can't be read"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in %s", want, all)
		}
	}
}

func TestStatusOfManyBrokenRecords(t *testing.T) {
	f := rigtest.NewYard(t)
	for i := range 500 {
		f.Plant(f.Beads.Path(fmt.Sprintf("gt-b%d", i)), "{")
	}
	s, err := GetStatus(t.Context(), f.Rig)
	rigtest.Must(t, err)
	if len(s.Needs) != 1 || len(s.Warnings) != 4 || s.Warnings[3] != "497 unreadable files left out: chipset doctor lists them" {
		t.Errorf("%d needs, warnings %q", len(s.Needs), s.Warnings)
	}
}

// A mailbox that is a link is a warning, and everything else is shown.
func TestStatusWithAMailboxThatIsALink(t *testing.T) {
	f := rigtest.NewYard(t)
	for _, id := range []state.AgentID{bravo, state.Human} {
		at := f.Tree.Abs(mail.Dir.Join(string(id)))
		rigtest.Must(t, os.RemoveAll(at))
		rigtest.Must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		rigtest.Must(t, os.Symlink(t.TempDir(), at))
	}
	s, err := GetStatus(t.Context(), f.Rig)
	rigtest.Must(t, err)
	got := strings.Join(s.Warnings, "\n")
	for _, id := range []state.AgentID{bravo, state.Human} {
		if want := "state/mail/" + string(id) + ": it is a symbolic link, not a folder"; strings.Count(got, want) != 1 {
			t.Errorf("not once %q in\n%s", want, got)
		}
	}
	if len(s.Agents) < 5 {
		t.Errorf("%d agents", len(s.Agents))
	}
}

func TestBusyFirst(t *testing.T) {
	t.Parallel()
	s := Status{Agents: []AgentStatus{
		{ID: "human", Role: agent.Human, BeadID: "gt-1"}, {ID: "mayor", Role: agent.Mayor},
		{ID: "alpha", BeadID: "gt-2"}, {ID: "bravo"}, {ID: "charlie"},
	}}
	s.Agents[4].Asks = []mail.Name{"one"}
	var got string
	for _, a := range s.BusyFirst() {
		got += string(a.ID) + " "
	}
	if want := "alpha charlie mayor bravo "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
