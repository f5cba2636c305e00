package run

import (
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/notify"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// newTeller is a teller of a rig with a blocked bead, and what it sends.
func newTeller(t *testing.T, f *rigtest.Yard, def definition.Notify) (*teller, *[]string) {
	t.Helper()
	var sent []string
	send := func(n notify.Notice) { sent = append(sent, n.Text) }
	f.PutBead("gt-stuck", bead.Blocked, func(b *bead.Bead) { b.CloseReason = "which licence?" })
	return &teller{p: &Process{Rig: f.Rig}, def: &def, send: send, began: f.At(), told: f.At()}, &sent
}

func look(t *testing.T, r *teller) {
	t.Helper()
	needs, err := view.Needs(t.Context(), r.p.Rig)
	rigtest.Must(t, err)
	rigtest.Must(t, r.tell(t.Context(), needs, false))
	rigtest.Must(t, r.digest(t.Context(), true, false))
}

// What comes in quiet hours is told at their end if it still stands, once.
func TestQuietHours(t *testing.T) {
	f := rigtest.NewYard(t)
	f.Now = time.Date(2026, 3, 5, 23, 0, 0, 0, time.Local)
	r, sent := newTeller(t, f, definition.Notify{Quiet: definition.Hours{From: 22 * time.Hour, To: 7 * time.Hour}})
	f.PutBead("gt-brief", bead.Blocked, nil)
	look(t, r)
	f.PutBead("gt-brief", bead.Cancelled, nil)
	f.Now = f.Now.Add(7 * time.Hour)
	if look(t, r); len(*sent) > 0 {
		t.Errorf("at night: %q", *sent)
	}
	f.Now = f.Now.Add(time.Hour)
	look(t, r)
	if look(t, r); len(*sent) != 1 || !strings.Contains((*sent)[0], "gt-stuck") {
		t.Errorf("in the morning: %q", *sent)
	}
}

// A digest is told once after work, when the rig has been idle for a moment, and not in quiet hours.
func TestDigest(t *testing.T) {
	f := rigtest.NewYard(t)
	f.Now = time.Date(2026, 3, 5, 20, 0, 0, 0, time.Local)
	r, sent := newTeller(t, f, definition.Notify{Digest: true, Quiet: definition.Hours{From: 21 * time.Hour, To: 22 * time.Hour}})
	look(t, r)
	f.Now = f.Now.Add(time.Minute)
	if look(t, r); len(*sent) != 1 {
		t.Errorf("without work: %q", *sent)
	}
	r.busy = true
	look(t, r)
	if f.Now = f.Now.Add(stillness / 2); len(*sent) != 1 {
		t.Errorf("at once: %q", *sent)
	}
	f.Now = f.Now.Add(time.Hour)
	if look(t, r); len(*sent) != 1 {
		t.Errorf("in quiet hours: %q", *sent)
	}
	f.Now = f.Now.Add(time.Hour)
	look(t, r)
	if look(t, r); len(*sent) != 2 || (*sent)[1] != "0 beads landed, 0 attempts failed, 1 decision waits for you: chipset inbox" {
		t.Errorf("after work: %q", *sent)
	}

	// Each tells what came since the one before.
	for i, want := range []string{"1 bead landed", "0 beads landed"} {
		if r.busy = true; i == 0 {
			at := f.At()
			f.PutBead("gt-landed", bead.Merged, func(b *bead.Bead) { b.ClosedAt = &at })
		}
		look(t, r)
		f.Now = f.Now.Add(stillness + time.Second)
		if look(t, r); len(*sent) != 3+i || !strings.HasPrefix((*sent)[2+i], want+",") {
			t.Errorf("digest %d: %q", 3+i, *sent)
		}
	}
}

// A digest of the night is sent in the morning, once: by the rig that held it back, or by the next one.
func TestDigestOfTheNight(t *testing.T) {
	quiet := definition.Notify{Digest: true, Quiet: definition.Hours{From: 22 * time.Hour, To: 7 * time.Hour}}
	for _, again := range []bool{false, true} {
		f := rigtest.NewYard(t)
		f.Now = time.Date(2026, 3, 5, 23, 0, 0, 0, time.Local)
		r, sent := newTeller(t, f, quiet)
		look(t, r)
		for _, id := range []state.BeadID{"gt-one", "gt-two"} { // the second after the first was summed up
			f.Now = f.Now.Add(time.Hour)
			at := f.At()
			f.PutBead(id, bead.Merged, func(b *bead.Bead) { b.ClosedAt = &at })
			r.busy = true
			look(t, r)
			f.Now = f.Now.Add(stillness + time.Second)
			rigtest.Must(t, r.digest(t.Context(), true, id == "gt-two"))
		}
		if len(*sent) > 0 {
			t.Errorf("at night: %q", *sent)
		}
		f.Now = f.Now.Add(time.Hour)
		if again {
			r = &teller{p: r.p, def: &quiet, send: r.send, began: f.At(), told: f.At()}
			_, r.owes = r.owed()
			rigtest.Must(t, r.digest(t.Context(), true, true))
			if len(*sent) > 0 {
				t.Errorf("by the next rig, at night: %q", *sent)
			}
		}
		f.Now = f.Now.Add(6 * time.Hour)
		rigtest.Must(t, r.digest(t.Context(), true, false))
		rigtest.Must(t, r.digest(t.Context(), true, true))
		if len(*sent) != 1 || !strings.HasPrefix((*sent)[0], "2 beads landed,") {
			t.Errorf("in the morning: %q", *sent)
		}
		other := &teller{p: r.p, def: &quiet, send: r.send, began: f.At(), told: f.At(), owes: true}
		rigtest.Must(t, other.digest(t.Context(), true, false))
		if len(*sent) != 1 {
			t.Errorf("twice: %q", *sent)
		}
	}
}
