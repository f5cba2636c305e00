package flow

import (
	"errors"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

var noon = state.At(time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC))

// TestBeginIsAnew: nothing of an earlier try is left in a request that begins, so that nobody passes it for that.
func TestBeginIsAnew(t *testing.T) {
	q := mergequeue.Request{ID: "mr-1", Status: mergequeue.Pending, Waiting: "a.txt would be overwritten", InTheWay: true, SubmittedAt: noon, UpdatedAt: noon}
	e := Begin{MR: q.ID, Onto: "t0"}
	if err := e.Change(&q, noon); err != nil {
		t.Fatal(err)
	}
	if q.Waiting != "" || q.Attempts != 1 {
		t.Errorf("%+v", q)
	}
	hold := Held{refinery.Hold{Request: q.ID, Change: &mergequeue.Hold{Change: "h1"}}}
	if err := hold.Change(&q, noon); err != nil || q.Status != mergequeue.Pending || q.Passed(noon) {
		t.Errorf("%v: %+v", err, q)
	}
}

// TestAllow: the person's word counts for the very change, while the request may still land.
func TestAllow(t *testing.T) {
	held := func(s mergequeue.Status) mergequeue.Request {
		return mergequeue.Request{ID: "mr-1", Status: s, Held: &mergequeue.Hold{Change: "h1"}}
	}
	for name, tt := range map[string]struct {
		q      mergequeue.Request
		change string
		want   error
	}{
		"that change":    {held(mergequeue.Pending), "h1", nil},
		"another change": {held(mergequeue.Pending), "h2", state.ErrConflict},
		"dropped":        {held(mergequeue.Dropped), "h1", state.ErrConflict},
		"superseded":     {held(mergequeue.Superseded), "h1", state.ErrConflict},
		"not held":       {mergequeue.Request{ID: "mr-1", Status: mergequeue.Pending}, "", state.ErrConflict},
	} {
		if err := (Allow{MR: tt.q.ID, Held: tt.change}).Change(&tt.q, noon); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
		if allowed := tt.q.Allowed == "h1"; allowed != (tt.want == nil) {
			t.Errorf("%s: allowed is %q", name, tt.q.Allowed)
		}
	}
}
