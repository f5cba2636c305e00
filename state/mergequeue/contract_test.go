package mergequeue

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// A request with files in its way lets others land first for as long as it has waited, between ten seconds and ten minutes.
func TestPassed(t *testing.T) {
	for _, c := range []struct{ waited, pause time.Duration }{
		{0, 10 * time.Second}, {10 * time.Second, 10 * time.Second}, {time.Minute, time.Minute}, {10 * time.Minute, 10 * time.Minute}, {time.Hour, 10 * time.Minute},
	} {
		r := Request{Status: Pending, InTheWay: true, SubmittedAt: now, UpdatedAt: state.At(now.Add(c.waited))}
		for after, want := range map[time.Duration]bool{0: true, c.pause - 1: true, c.pause: false, -1: false} {
			if got := r.Passed(state.At(r.UpdatedAt.Add(after))); got != want {
				t.Errorf("after %v of waiting, %v later: %v", c.waited, after, got)
			}
		}
		r.Status = Merging
		if r.Passed(r.UpdatedAt) {
			t.Error("one that is being merged is passed")
		}
		r.Status, r.InTheWay = Pending, false
		if r.Passed(r.UpdatedAt) {
			t.Error("one that nothing is in the way of is passed")
		}
	}
}

// An end is announced once, and only when its mail has a name.
func TestUnannounced(t *testing.T) {
	for _, c := range []struct {
		status  Status
		failure Failure
		want    bool
	}{
		{Merged, "", true}, {Conflicted, FailTests, true}, {Dropped, FailTests, true}, {Superseded, FailTests, true},
		{Dropped, "", false}, {Superseded, "", false}, {Pending, FailTests, false}, {Merging, "", false},
	} {
		r := Request{Status: c.status, Failure: c.failure, NoticeName: "n"}
		if got := r.Unannounced(); got != c.want {
			t.Errorf("%s with %q: %v", c.status, c.failure, got)
		}
		if r.Notified = true; r.Unannounced() {
			t.Errorf("%s: it was announced already", c.status)
		}
		if r = (Request{Status: c.status, Failure: c.failure}); r.Unannounced() {
			t.Errorf("%s: its mail has no name", c.status)
		}
	}
}

// A deep queue is deep until half of it is gone.
func TestIsDeep(t *testing.T) {
	for _, c := range []struct {
		waiting int
		was     bool
		want    bool
	}{{10, false, false}, {11, false, true}, {10, true, true}, {6, true, true}, {5, true, false}, {6, false, false}} {
		if got := IsDeep(c.waiting, 10, c.was); got != c.want {
			t.Errorf("%d of 10, deep before %v: %v", c.waiting, c.was, got)
		}
	}
}

func TestHoldSummary(t *testing.T) {
	for n, want := range map[int]string{1: "a", 3: "a, b, c", 4: "a, b, c and 1 more", 60: "a, b, c and 57 more"} {
		h := Hold{Paths: []string{"a", "b", "c", "d"}[:min(n, 4)], Count: n}
		if got := h.Summary(); got != want {
			t.Errorf("%d files: %q", n, got)
		}
	}
}

func TestStacks(t *testing.T) {
	stack := []state.MergeID{"mr-a", "mr-b", "mr-c"}
	all := []Request{{ID: "mr-a", Status: Merging, Stack: stack}, {ID: "mr-x", Status: Merged, Stack: []state.MergeID{"mr-x", "mr-y"}}}
	with := StackedWith(all)
	if len(with) != 3 || !slices.Equal(with["mr-b"], []state.MergeID{"mr-a", "mr-c"}) {
		t.Errorf("they are stacked with %v", with)
	}
	r := Request{Candidate: "one", StackTip: "tip"}
	if got := r.LandingCommit(); got != "tip" {
		t.Errorf("a stack lands %q", got)
	}
	if r.StackTip = ""; r.LandingCommit() != "one" {
		t.Errorf("one alone lands %q", r.LandingCommit())
	}
}

// What a file may not say is refused, each field for itself.
func TestCheck(t *testing.T) {
	hash := strings.Repeat("a", 40)
	good := func() Request {
		r := request("tt-1", 1)
		r.ID, r.Status, r.Seq = "mr-1", Pending, state.MaxCounter
		r.Held = &Hold{Change: "c", Paths: []string{"p"}, Onto: hash, Candidate: strings.Repeat("b", 64)}
		return r
	}
	r := good()
	if err := check("mr-1", &r); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*Request){
		"name": func(r *Request) { r.ID = "mr-2" }, "status": func(r *Request) { r.Status = "odd" }, "seq": func(r *Request) { r.Seq = 0 },
		"large seq": func(r *Request) { r.Seq = state.MaxCounter + 1 }, "bead": func(r *Request) { r.BeadID = "" }, "assignment": func(r *Request) { r.AssignmentID = "" },
		"source": func(r *Request) { r.SourceBranch = "" }, "source option": func(r *Request) { r.SourceBranch = "-f" }, "target option": func(r *Request) { r.TargetBranch = "-f" },
		"short hash": func(r *Request) { r.Head = "aaaa" }, "no hash": func(r *Request) { r.Base = strings.Repeat("z", 40) },
		"held for nothing": func(r *Request) { r.Held.Change = "" }, "held files": func(r *Request) { r.Held.Paths = nil },
		"held onto": func(r *Request) { r.Held.Onto = "x" }, "held candidate": func(r *Request) { r.Held.Candidate = "x" },
	} {
		r := good()
		change(&r)
		if check("mr-1", &r) == nil {
			t.Errorf("%s: a bad one was taken", what)
		}
	}
}

// The log hears of what changed, and of nothing else.
func TestTold(t *testing.T) {
	with := func(status Status, held, allowed string) *Request {
		r := &Request{ID: "mr-1", Status: status, Allowed: allowed}
		if held != "" {
			r.Held = &Hold{Change: held, Paths: []string{"p"}, Count: 1}
		}
		return r
	}
	for _, c := range []struct {
		before, after *Request
		kind          string
	}{
		{nil, with(Pending, "", ""), "mr.submitted"}, {with(Pending, "", ""), with(Merging, "", ""), "mr.merging"}, {with(Pending, "", ""), with(Pending, "", ""), ""},
		{with(Pending, "", ""), with(Pending, "c", ""), "mr.held"}, {with(Pending, "c", ""), with(Pending, "d", ""), "mr.held"},
		{with(Pending, "c", ""), with(Pending, "c", ""), ""}, {with(Pending, "c", ""), with(Pending, "c", "c"), "mr.allowed"},
		{with(Pending, "c", "c"), with(Merging, "c", "c"), "mr.merging"},
	} {
		e, is := eventOf(c.before, c.after)
		if !is {
			e = event.Event{}
		}
		if is != (c.kind != "") || e.Type != c.kind {
			t.Errorf("%+v → %+v: %q, want %q", c.before, c.after, e.Type, c.kind)
		}
	}
}

// The last landing is the one that moved the target last; what the target held before did not.
func TestLastLandedOfTarget(t *testing.T) {
	landed := func(id string, minute int) Request {
		return Request{ID: state.MergeID(id), Status: Merged, TargetBranch: "main", Onto: "o", MergedSHA: "m", UpdatedAt: state.At(now.Add(time.Duration(minute) * time.Minute))}
	}
	conflicted, nothing := landed("mr-c", 9), landed("mr-n", 9)
	conflicted.Status, nothing.MergedSHA = Conflicted, ""
	other := landed("mr-o", 8)
	other.TargetBranch = "next"
	all := []Request{landed("mr-1", 1), landed("mr-3", 3), landed("mr-2", 2), conflicted, nothing, other}
	if q := LastLanded(all, "main"); q == nil || q.ID != "mr-3" {
		t.Errorf("on main: %+v", q)
	}
	if q := LastLanded(all, ""); q == nil || q.ID != "mr-o" {
		t.Errorf("anywhere: %+v", q)
	}
}
