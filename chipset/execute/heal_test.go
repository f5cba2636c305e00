package execute

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// heal does for a refinery without a process what doctor does.
func (m *mill) heal() error {
	return HealMerges(m.ctx, Agent{Rig: m.rig, ID: "refinery", Session: "ses-doctor", Self: m.r.Self, Say: m.r.Say})
}

// What the target holds is merged, in bead and request, and what it does not hold waits for its turn again, in its order. One
// that says it is merged and is not is named, and keeps no other from being healed.
func TestHealMerges(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: \"true\"\nbatch: 3")
	m.r.Close()
	merging := func(q *mergequeue.Request) {
		q.Status, q.Stage, q.Attempts, q.Onto, q.Candidate, q.Tested = mergequeue.Merging, mergequeue.StageMerge, 1, q.Base, q.Head, true
	}
	merged := func(q *mergequeue.Request) {
		merging(q)
		q.Status, q.MergedSHA = mergequeue.Merged, q.Head
	}
	landed, known, taken, lost := m.submit("landed.txt", "1\n"), m.submit("known.txt", "1\n"), m.submit("taken.txt", "1\n"), m.submit("lost.txt", "1\n")
	pending := m.submit("pending.txt", "1\n")
	stack := []mergequeue.Request{m.submit("1.txt", "1\n"), m.submit("2.txt", "2\n")}
	for _, q := range []mergequeue.Request{landed, known} {
		m.git(m.dir, "merge", "-q", "--no-edit", q.Head)
	}
	m.setRequest(landed.ID, merging)
	m.setRequest(known.ID, func(q *mergequeue.Request) { merged(q); q.Candidate = lost.Head }) // what was tried later
	m.setRequest(taken.ID, merged)
	m.setBead(taken.BeadID, func(b *bead.Bead) { m.must(b.Become(bead.Cancelled, "", m.rig.Clock.Now())) })
	m.setRequest(lost.ID, merged)
	m.half(stack, []state.MergeID{stack[0].ID, stack[1].ID}, 2)

	running, err := m.rig.Claim(m.ctx, "refinery", "ses-runs")
	m.must(err)
	var claimed *rig.ClaimedError
	if err := m.heal(); !errors.As(err, &claimed) {
		t.Errorf("beside a refinery: %v", err)
	}
	running.Unlock()
	m.is(landed, mergequeue.Merging, bead.Done)
	if err := m.heal(); !errors.Is(err, state.ErrConflict) || !strings.Contains(err.Error(), string(lost.ID)) ||
		strings.Contains(err.Error(), string(known.ID)) || strings.Contains(err.Error(), string(taken.ID)) {
		t.Errorf("of what is not on the target: %v", err)
	}
	m.is(landed, mergequeue.Merged, bead.Merged)
	if got := m.is(known, mergequeue.Merged, bead.Merged); got.MergedSHA != known.Head {
		t.Errorf("it landed as %s, not as %s", got.MergedSHA, known.Head)
	}
	m.is(taken, mergequeue.Merged, bead.Cancelled)
	m.is(lost, mergequeue.Merged, bead.Done)
	m.is(pending, mergequeue.Pending, bead.Done)
	var order []state.MergeID
	open, _, err := m.rig.Queue.Unfinished()
	m.must(err)
	for i := range open {
		if q := &open[i]; q.Status == mergequeue.Pending {
			order = append(order, q.ID)
		}
	}
	if want := []state.MergeID{pending.ID, stack[0].ID, stack[1].ID}; !slices.Equal(order, want) {
		t.Errorf("they wait in the order %v, want %v", order, want)
	}
	var back []state.BeadID // in the order in which they came back: a crash in between leaves the oldest in merging
	for _, e := range m.events() {
		if e.Bead == stack[0].BeadID || e.Bead == stack[1].BeadID {
			back = append(back, e.Bead)
		}
	}
	if n := len(back); n < 2 || back[n-2] != stack[1].BeadID || back[n-1] != stack[0].BeadID {
		t.Errorf("they came back in the order %v", back)
	}
	m.must(m.r.backToPending(m.ctx, &lost))
	m.is(lost, mergequeue.Merged, bead.Done)
	for _, dir := range []state.Path{mergequeue.Dir, testRecords} {
		m.spoilt(dir, func() {
			if err := m.heal(); err == nil || strings.Contains(err.Error(), string(lost.ID)) {
				t.Errorf("healed without %s: %v", dir, err)
			}
		})
	}
}

// Whether a push has arrived is not decided while the remote can't be asked.
func TestHealMergesWaitsForTheRemote(t *testing.T) {
	t.Parallel()
	m, remote, _ := withRemote(t, `test: "true"`)
	q := m.submit("one.txt", "1\n")
	m.pushed(q)
	m.r.Close()
	m.must(os.Rename(remote, remote+".away"))
	if err := m.heal(); err == nil {
		t.Error("it is healed")
	}
	m.is(q, mergequeue.Merging, bead.Done)
	m.must(os.Rename(remote+".away", remote))
	m.must(m.heal())
	m.is(q, mergequeue.Merged, bead.Merged)
}
