package actor

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// told are the subjects of the person's mail about limits.
func told(t *testing.T, f *rigtest.Yard) []string {
	t.Helper()
	all, _, err := f.Mailbox(state.Human).List()
	rigtest.Must(t, err)
	var subjects []string
	for i := range all {
		if strings.HasPrefix(all[i].ID, "limit:") {
			subjects = append(subjects, all[i].Subject)
		}
	}
	return subjects
}

func TestWorkerAddsFewBeads(t *testing.T) {
	f := rigtest.NewYard(t)
	f.Def.Limits.Beads, f.Def.Limits.Depth = 2, 2
	b := f.PutBead("gt-work", bead.InProgress, nil)
	f.Hang(b, hook.Active)
	worker := &Actor{Rig: f.Rig, ID: b.Assignee, Session: "ses-1", Assignment: b.AssignmentID}
	for i := range 5 {
		added, err := worker.AddBead(t.Context(), bead.Bead{Title: fmt.Sprint("found ", i)})
		switch {
		case i < 2 && (err != nil || added.FoundIn != b.ID):
			t.Fatalf("%d: %+v, %v", i, added, err)
		case i >= 2 && !errors.Is(err, state.ErrConflict):
			t.Fatalf("%d: %v", i, err)
		}
	}
	person := &Actor{Rig: f.Rig, ID: state.Human}
	for range 5 {
		added, err := person.AddBead(t.Context(), bead.Bead{Title: "of the person"})
		if err != nil || added.FoundIn != "" {
			t.Fatal(added, err)
		}
	}
	if got := told(t, f); len(got) != 1 || !strings.Contains(got[0], "gt-work has added 2 beads") {
		t.Errorf("the person was told %q", got)
	}

	// A bead of a bead of a bead adds none.
	for _, step := range [][2]state.BeadID{{"gt-one", "gt-none"}, {"gt-two", "gt-one"}, {"gt-three", "gt-two"}} {
		f.PutBead(step[0], bead.Open, func(b *bead.Bead) { b.FoundIn = step[1] })
	}
	for id, fits := range map[state.BeadID]bool{"gt-one": true, "gt-two": false, "gt-three": false} {
		next := bead.Bead{}
		worker := *worker
		worker.Assignment = ""
		h := b
		h.ID = id
		f.Hang(h, hook.Active)
		if err := worker.placeFound(t.Context(), &next); (err == nil) != fits {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestWorkerSendsLittleMail(t *testing.T) {
	f := rigtest.NewYard(t)
	f.Def.Limits.Mail = 3
	b := f.PutBead("gt-work", bead.InProgress, nil)
	f.Hang(b, hook.Active)
	worker := &Actor{Rig: f.Rig, ID: b.Assignee, Session: "ses-1", Assignment: b.AssignmentID}
	send := func(a *Actor, to string) error {
		_, err := a.SendMail(t.Context(), mail.Message{Subject: "x"}, to)
		return err
	}
	for i, to := range []string{"mayor", "human", "mayor", "mayor", "human"} {
		if err := send(worker, to); (err == nil) != (i < 3) || err != nil && !errors.Is(err, state.ErrConflict) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, errs := worker.SendAll(t.Context(), []mail.Message{{Subject: "x", To: "mayor"}}); !errors.Is(errs[0], state.ErrConflict) {
		t.Errorf("in a batch: %v", errs)
	}
	rigtest.Must(t, send(&Actor{Rig: f.Rig, ID: state.Human}, "mayor"))
	if got := told(t, f); len(got) != 1 {
		t.Errorf("the person was told %q", got)
	}
}
