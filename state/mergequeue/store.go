package mergequeue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Dir is the folder of the queue.
const Dir = state.StateDir + "/merge-queue"

// Store is state/merge-queue/.
type Store struct {
	event.Recorder[Request]
	tree *state.Tree
}

// NewStore opens the queue of a tree. It logs new requests and changes of status; log may
// be nil.
func NewStore(t *state.Tree, log *event.Log) Store {
	fields := func(r *Request) []string {
		if !r.movedTarget() {
			return []string{string(r.Status)}
		}
		return []string{string(r.Status), r.TargetBranch, r.UpdatedAt.String()}
	}
	requests := state.NewStore(t, Dir, "merge request", state.LockRecord, check).WithSummaries("2", fields)
	return Store{event.Record(requests, log, eventOf), t}
}

// By returns the store with agent as the author of its events, and with why as their
// text, unless why is "".
func (s Store) By(agent state.AgentID, why string) Store {
	return Store{s.Recorder.By(agent, why), s.tree}
}

// eventOf returns the event of a new request, a new status, or a hold.
func eventOf(before, after *Request) (event.Event, bool) {
	if before == nil {
		return event.RequestSubmitted(after.AgentID, after.Told(), fmt.Sprintf("%s at %s for %s", after.SourceBranch, wording.ShortHash(after.Head), after.TargetBranch)), true
	}
	switch {
	case after.IsHeld() && (before.Held == nil || before.Held.Change != after.Held.Change):
		return event.RequestHeld(after.Told(), after.Held.Summary()), true
	case before.IsHeld() && after.Allowed != before.Allowed:
		return event.RequestAllowed(after.Told(), after.Held.Summary()), true
	case before.Status == after.Status:
		return event.Event{}, false
	}
	return event.RequestMoved("", after.Told(), string(before.Status), string(after.Status), after.why()), true
}

// isHash reports whether s is the full name of a commit.
func isHash(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

func check(name string, r *Request) error {
	switch {
	case string(r.ID) != name:
		return fmt.Errorf("id %q contradicts the file's name", r.ID)
	case len(r.Status.next()) == 0 && r.Status != Merged && r.Status != Superseded && r.Status != Dropped:
		return fmt.Errorf("unknown status %q", r.Status)
	case r.Seq <= 0:
		return fmt.Errorf("seq %d is not positive", r.Seq)
	case r.Seq > state.MaxCounter:
		return fmt.Errorf("seq %d is above the maximum of %d", r.Seq, int64(state.MaxCounter))
	case r.BeadID == "" || r.AssignmentID == "":
		return fmt.Errorf("no bead_id or assignment_id")
	case r.SourceBranch == "" || strings.HasPrefix(r.SourceBranch, "-") || strings.HasPrefix(r.TargetBranch, "-"):
		return fmt.Errorf("a branch is missing or begins with a dash")
	}
	for _, h := range []string{r.Head, r.Base, r.Onto, r.Candidate, r.StackTip, r.MergedSHA} {
		if h != "" && !isHash(h) {
			return fmt.Errorf("%q is not a commit hash", h)
		}
	}
	if h := r.Held; h != nil && (h.Change == "" || len(h.Paths) == 0 || !isHash(h.Onto) || !isHash(h.Candidate)) {
		return fmt.Errorf("held is incomplete or invalid")
	}
	return nil
}

// LastLanded returns the last request that moved its target, or nil. An empty target
// means any.
func LastLanded(all []Request, target string) *Request {
	var last *Request
	for i := range all {
		q := &all[i]
		if q.movedTarget() && (target == "" || q.TargetBranch == target) && (last == nil || q.UpdatedAt.After(last.UpdatedAt.Time)) {
			last = q
		}
	}
	return last
}

// movedTarget reports whether the request's landing moved the target.
func (r *Request) movedTarget() bool {
	return r.Status == Merged && r.Onto != "" && !r.HeldBefore() && r.MergedSHA != ""
}

// LastLanded returns the last request that moved the target, or nil. It uses summaries,
// and ignores requests that can't be read.
func (s Store) LastLanded(target string) (*Request, error) {
	summaries, _, err := s.Summaries()
	if err != nil {
		return nil, err
	}
	name, last := "", ""
	for _, b := range summaries {
		if len(b.Fields) == 3 && b.Fields[1] == target && b.Fields[2] > last {
			name, last = b.Name, b.Fields[2]
		}
	}
	if name == "" {
		return nil, nil
	}
	q, err := s.GetCached(name)
	if err != nil {
		return nil, err
	}
	return &q, nil
}

// Queue returns the requests in FIFO order, and an error for each file that could not be
// read.
func (s Store) Queue() ([]Request, []error, error) {
	all, bad, err := s.All()
	InOrder(all)
	return all, bad, err
}

// Unfinished returns the requests that have not ended or are Unannounced, in FIFO order,
// and an error for each file that could not be read. For repeated calls, its cost does
// not depend on the number of requests that have ended.
func (s Store) Unfinished() ([]Request, []error, error) {
	open, bad, err := s.Select(func(r *Request) bool { return r.Status.Live() || r.Unannounced() })
	InOrder(open)
	return open, bad, err
}

// InOrder sorts requests in FIFO order.
func InOrder(all []Request) {
	slices.SortFunc(all, func(a, b Request) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID)) })
}

// Live returns the requests that have not ended, in FIFO order, and an error for each
// file that could not be read. It is for a process that asks once.
func (s Store) Live() ([]Request, []error, error) {
	summaries, bad, err := s.Summaries()
	var live []Request
	for _, b := range summaries {
		if len(b.Fields) == 0 || !Status(b.Fields[0]).Live() {
			continue
		}
		r, err := s.GetCached(b.Name)
		switch {
		case errors.Is(err, state.ErrNotFound):
		case err != nil:
			bad = append(bad, err)
		case r.Status.Live(): // it may have ended meanwhile
			live = append(live, r)
		}
	}
	InOrder(live)
	return live, bad, err
}

// Submit stores the merge request of an assignment, with the next seq, or returns the
// existing one. Durable when it returns nil.
func (s Store) Submit(ctx context.Context, r Request, now state.Time) (Request, error) {
	lock, err := s.tree.Lock(ctx, state.LockQueue, "queue", Dir)
	if err != nil {
		return r, err
	}
	defer lock.Unlock()
	var seq int64
	n := 1
	there, bad, err := s.Select(func(other *Request) bool {
		if other.BeadID == r.BeadID {
			n++
		}
		seq = max(seq, other.Seq)
		return other.AssignmentID == r.AssignmentID
	})
	if err != nil {
		return r, err
	}
	if len(there) > 0 {
		return there[0], nil
	}
	// Requests that can't be read may have the next numbers.
	r.Seq = seq + 1 + int64(len(bad))
	r.Status, r.SubmittedAt, r.UpdatedAt = Pending, now, now
	for ; ; n++ {
		r.ID = idFor(r.BeadID, n)
		err := s.Create(string(r.ID), r)
		if !errors.Is(err, state.ErrExists) {
			return r, err
		}
	}
}

// Renumber gives a request the next free number, behind all others, if it still has the
// number seq. Durable when it returns nil.
func (s Store) Renumber(ctx context.Context, id state.MergeID, seq int64, now state.Time) error {
	lock, err := s.tree.Lock(ctx, state.LockQueue, "queue", Dir)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	last := int64(0)
	_, bad, err := s.Select(func(r *Request) bool { last = max(last, r.Seq); return false })
	if err != nil {
		return err
	}
	_, err = s.Update(ctx, string(id), func(r *Request) error {
		if r.Seq != seq {
			return state.ErrUnchanged
		}
		r.Seq, r.UpdatedAt = last+1+int64(len(bad)), now
		return nil
	})
	return err
}

func idFor(bead state.BeadID, n int) state.MergeID {
	if n <= 1 {
		return state.MergeID("mr-" + string(bead))
	}
	return state.MergeID(fmt.Sprintf("mr-%s-%d", bead, n))
}
