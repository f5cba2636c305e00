package flow

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles/mayor"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

const alpha state.AgentID = "polecat-alpha"

// later is when something is due.
var later = state.At(noon.Add(time.Hour))

func someBead(s bead.Status, a state.AssignmentID) *bead.Bead {
	b := &bead.Bead{ID: "tt-1", Title: "a task", Description: "Do it.", Acceptance: "It is done.", Status: s, Priority: bead.P2, AssignmentID: a,
		Branch: "polecat/tt-1", Assignments: 1, Attempts: 1, Conflicts: 2, Restarts: 3, Unended: 4, CloseReason: "why", CreatedAt: noon, UpdatedAt: noon, Gen: 7}
	if a != "" {
		b.Assignee = alpha
	}
	return b
}

func someHook(s hook.Status, a state.AssignmentID) hook.Hook {
	h := hook.Hook{AgentID: alpha, Gen: 3, Status: s, LastActivity: noon}
	if s != hook.Empty {
		h.WorkItem = &hook.WorkItem{AssignedAt: noon, AssignmentID: a, BeadID: "tt-1", Title: "a task"}
	}
	if s == hook.Active || s == hook.Completed {
		h.WorkItem.Session = "ses-1"
	}
	return h
}

func someRequest(s mergequeue.Status) *mergequeue.Request {
	return &mergequeue.Request{ID: "mr-1", Seq: 1, BeadID: "tt-1", AssignmentID: "as-1", AgentID: alpha, SourceBranch: "polecat/tt-1", TargetBranch: "main", Head: "head",
		Base: "base", Status: s, Stage: mergequeue.StageTest, Onto: "t0", Candidate: "c0", Tested: true, Stack: []state.MergeID{"mr-1", "mr-0"}, StackTip: "s0",
		MergedSHA: "m0", Failure: mergequeue.FailTests, Reason: "red", Waiting: "waits", InTheWay: true, Attempts: 1, SubmittedAt: noon, UpdatedAt: later,
		NoticeName: "name", Notified: true}
}

func refusing(name string, err error) func(Effect) error {
	return func(e Effect) error {
		if e.Name() == name {
			return err
		}
		return nil
	}
}

// tooLarge refuses what is not short.
func tooLarge(e Effect) error {
	if m, ok := e.(Send); ok && !m.Short {
		return state.ErrTooLarge
	}
	return nil
}

// taken is the name that another message has.
func taken(n mail.Name) func(Effect) error {
	return func(e Effect) error {
		if m, ok := e.(Send); ok && m.As == n {
			return state.ErrExists
		}
		return nil
	}
}

// dispatchScene puts a bead on a hook.
func dispatchScene(name string) string {
	return play(func() (*world, func(bool) (Sequence, func())) {
		w := &world{bead: someBead(bead.Open, ""), hook: someHook(hook.Empty, "")}
		switch name {
		case "urgent, and long":
			w.bead.Priority, w.bead.Description, w.bead.Acceptance = bead.P1, strings.Repeat("x", maxAssignmentText+1), ""
		case "as long as may be":
			w.bead.Description = strings.Repeat("x", maxAssignmentText)
		case "too large":
			w.refuse = tooLarge
		case "the name is taken":
			w.refuse = taken(mail.NameAt(noon, "mayor"))
		case "nobody reads it":
			w.refuse = refusing("mail work_assignment", state.ErrNotFound)
		case "the mailbox fails":
			w.refuse = refusing("mail work_assignment", errors.New("no space left on device"))
		case "the hook is taken":
			w.hook = someHook(hook.Pending, "as-2")
		case "the bead is slung":
			w.bead = someBead(bead.Hooked, "as-2")
		case "the bead is gone":
			w.bead = nil
		}
		rec := NewDispatch(someBead(bead.Open, ""), alpha, "mayor", "as-1", noon)
		if name == "the name is nonsense" {
			rec.MailName = "nonsense"
		}
		w.dispatch = rec
		return w, func(first bool) (Sequence, func()) {
			d := &Dispatch{Begun: first}
			return d, func() {
				d.Record, d.Hooked, d.Bead = w.dispatch, w.hook.Assignment(), bead.Bead{}
				if w.bead != nil {
					d.Bead = *w.bead
				}
				if name == "the worker is faster" && d.Record.Stage == dispatch.Launched {
					w.bead.Status, d.Bead.Status = bead.InProgress, bead.InProgress
					w.refuse = refusing("mail work_assignment", state.ErrNotFound)
				}
			}
		}
	})
}

// retireScene ends an attempt.
func retireScene(name string) string {
	return play(func() (*world, func(bool) (Sequence, func())) {
		w := &world{bead: someBead(bead.InProgress, "as-1"), hook: someHook(hook.Active, "as-1")}
		outcome := retire.Done
		rec := retire.Record{AssignmentID: "as-1", AgentID: alpha, Summary: "what was done", Reason: strings.Repeat("r", 4)}
		switch name {
		case "failed":
			outcome = retire.Fail
		case "blocked":
			outcome, w.bead.Title = retire.Block, ""
		case "empty":
			rec.Empty, rec.Summary = true, " "
		case "empty, with a word":
			rec.Empty = true
		case "before its worker began":
			w.bead.Status = bead.Hooked
		case "too large":
			w.refuse = tooLarge
		case "the names are taken":
			w.refuse = taken(mail.NameAt(noon, alpha))
		}
		rec.Outcome = outcome
		rec, err := NewRetire(rec, &w.hook, w.bead, noon)
		if err != nil {
			panic(err)
		}
		w.retire = rec
		if name == "taken away" || name == "taken away with its hook" || name == "taken from a session" {
			w.bead = someBead(bead.Open, "")
		}
		if name == "taken away with its hook" {
			w.hook = someHook(hook.Empty, "")
		}
		return w, func(bool) (Sequence, func()) {
			r := &Retirement{Mayor: "mayor", Witness: "witness", Target: "main", Now: noon, Session: strings.HasSuffix(name, "a session")}
			return r, func() {
				if name == "taken away while the work is secured" && w.retire.Stage == retire.Committed {
					w.bead.AssignmentID = "as-2"
				}
				r.Record, r.Bead, r.Active = w.retire, *w.bead, w.hook.Status == hook.Active && w.hook.Assignment() == w.retire.AssignmentID
			}
		}
	})
}

// stackOfTwo is what the refinery makes of two requests that are rebased one upon the other.
func stackOfTwo() *refinery.Stack {
	s := refinery.State{Phase: refinery.Rebase, Work: refinery.Work{ID: "mr-1", Onto: "t1"}}
	first, second := someRequest(mergequeue.Merging), someRequest(mergequeue.Pending)
	second.ID, second.Seq, second.BeadID, second.Waiting, second.InTheWay = "mr-2", 2, "tt-2", "", false
	other := someBead(bead.Done, "as-1")
	other.ID = "tt-2"
	for _, candidate := range []string{"c1", "c2"} {
		s = refinery.Decide(s, refinery.Facts{Now: noon, Self: "refinery", Queue: []mergequeue.Request{*first, *second}, Policy: refinery.Policy{Batch: 2},
			Beads:  map[state.BeadID]bead.Bead{"tt-1": *someBead(bead.Done, "as-1"), "tt-2": *other},
			Result: refinery.Result{Kind: refinery.Rebased, Onto: "t1", Candidate: candidate}}).Next
	}
	return s.Work.Stack
}

// landScene lands a request, or two.
func landScene(name string) string {
	return play(func() (*world, func(bool) (Sequence, func())) {
		first := someRequest(mergequeue.Pending)
		w := &world{bead: someBead(bead.Done, "as-1"), requests: []*mergequeue.Request{first}}
		land := refinery.Land{Request: "mr-1", Onto: "t1", Candidate: "c1", Tested: true, Push: name == "over a remote"}
		switch name {
		case "two":
			second := someRequest(mergequeue.Merging)
			second.ID = "mr-2" // one bead stands for both
			w.requests, land.Candidate, land.Stack = append(w.requests, second), "c2", stackOfTwo()
		case "landed, and the bead is cancelled":
			first.Status, first.Onto, first.Candidate, first.Stack, first.StackTip = mergequeue.Merging, "t1", "c1", nil, ""
			w.bead.Status, w.landed = bead.Cancelled, true
		case "dropped":
			first.Status = mergequeue.Dropped
		case "the bead is taken away":
			w.bead.AssignmentID = "as-2"
		case "the target moved":
			w.refuse = refusing(MoveTarget{}.Name(), errors.New("moved"))
		case "held before":
			land.Candidate = "t1"
		}
		return w, func(bool) (Sequence, func()) {
			var candidates []string
			for _, layer := range Layers(land) {
				candidates = append(candidates, layer.Candidate)
			}
			l := &Landing{By: "refinery", Land: land, Now: noon, Landed: w.landed}
			return l, func() {
				l.Layers = nil
				for i, q := range w.requests {
					l.Layers = append(l.Layers, Layer{Request: *q, Bead: *w.bead, Candidate: candidates[i]})
				}
			}
		}
	})
}

// steps are the moves of a person and the mayor.
func steps() map[string]Step {
	held := someRequest(mergequeue.Pending)
	held.Held = &mergequeue.Hold{Change: "h1", Paths: []string{"a", "b"}, Count: 2}
	block, _ := Drop(held, "no good", "human")
	bare, _ := Drop(held, "", "human")
	return map[string]Step{
		"rework":                Rework(mayor.Reopen{Bead: "tt-1", Assignment: "as-1", From: bead.Done, Note: "red", Charge: mayor.ChargeConflict, ReadyAt: later, MR: "mr-1"}, "mayor"),
		"rework without a word": Rework(mayor.Reopen{Bead: "tt-1", Assignment: "as-1", From: bead.Failed}, "mayor"),
		"block":                 Block(mayor.Block{Bead: "tt-1", Assignment: "as-1", From: bead.Failed, Reason: "often", Charge: mayor.ChargeAttempt}, "mayor"),
		"unsling":               Unsling("tt-1", "human"),
		"cancel":                Cancel("tt-1", "no more", "human"),
		"reopen":                Reopen("tt-1", "as-1", "again", "human"),
		"reopen without a word": Reopen("tt-1", "", "", "human"),
		"deny":                  Deny(held, "not that", "human"),
		"take back":             TakeBack(mayor.TakeBack{Bead: "tt-1", Assignment: "as-1", Agent: alpha, ReadyAt: later}, "mayor"),
		"take back at once":     TakeBack(mayor.TakeBack{Bead: "tt-1", Assignment: "as-1", Agent: alpha}, "mayor"),
		"drop":                  block,
		"drop without a word":   bare,
		"what can't be":         {BeadID: "tt-1", From: []bead.Status{bead.Merged}, To: bead.Open},
	}
}

// interveneScene makes a step with what follows from it.
func interveneScene(name string) string {
	name, where, _ := strings.Cut(name, " @ ")
	return play(func() (*world, func(bool) (Sequence, func())) {
		w := &world{bead: someBead(bead.Status(where), "as-1"), hook: someHook(hook.Active, "as-1"), requests: []*mergequeue.Request{someRequest(mergequeue.Conflicted)}}
		if where == string(bead.Open) {
			w.bead, w.hook = someBead(bead.Open, ""), someHook(hook.Empty, "")
		}
		before, gen := w.bead.AssignmentID, w.bead.Gen
		return w, func(bool) (Sequence, func()) {
			i := &Intervention{Step: steps()[name], Assignment: before, Assignee: alpha, Taken: w.bead.Gen > gen}
			return i, func() { i.Hooked, i.Request = w.hook.Assignment(), w.requests[0] }
		}
	})
}

// beadMatrix plays each change of a bead from every status, for the assignment of the bead and another one.
func beadMatrix(name string) string {
	changes := map[string]BeadChange{"hook": HookBead{dispatch.Record{AgentID: alpha, AssignmentID: "as-1", Branch: "polecat/tt-1-2"}},
		"give back": GiveBack{dispatch.Record{AssignmentID: "as-1"}}, "merge": MergeBead{BeadID: "tt-1", Assignment: "as-1", MR: "mr-1"},
		"revive": Revive{MR: *someRequest(mergequeue.Conflicted), By: "human"},
		"done":   BeadDone{retire.Record{AssignmentID: "as-1", Outcome: retire.Done}},
		"failed": BeadDone{retire.Record{AssignmentID: "as-1", Outcome: retire.Fail, Reason: "no luck"}},
		"empty":  BeadDone{retire.Record{AssignmentID: "as-1", Outcome: retire.Done, Empty: true}}}
	for step, s := range steps() {
		changes[step] = s
	}
	var m matrix
	for _, status := range bead.Statuses() {
		for _, a := range []state.AssignmentID{"as-1", "as-2"} {
			b := someBead(status, a)
			for range 22 {
				b.ReworkNotes = append(b.ReworkNotes, "note")
			}
			try(&m, fmt.Sprintf("%s %s", status, a), b, func(b *bead.Bead) error { return changes[name].Change(b, later) })
		}
	}
	return fmt.Sprintf("of %s\n%s", changes[name].Bead(), &m)
}

// hookMatrix plays each change of a hook from every status.
func hookMatrix(name string) string {
	changes := map[string]HookChange{"set": SetHook{Record: dispatch.Record{AgentID: alpha, AssignmentID: "as-1", BeadID: "tt-1", CreatedAt: noon}, Title: "a task"},
		"clear": ClearHook{Agent: alpha, Assignment: "as-1"}, "complete": CompleteHook{retire.Record{AgentID: alpha, AssignmentID: "as-1"}}}
	var m matrix
	for _, status := range []hook.Status{hook.Empty, hook.Pending, hook.Active, hook.Completed} {
		for _, a := range []state.AssignmentID{"as-1", "as-2"} {
			h := someHook(status, a)
			try(&m, fmt.Sprintf("%s %s", status, a), &h, func(h *hook.Hook) error { return changes[name].Change(h, later) })
		}
	}
	return m.String()
}

// requestMatrix plays each change of a request from every status.
func requestMatrix(name string) string {
	long := strings.Repeat("r", MaxRequestText+1)
	_, drop := Drop(someRequest(mergequeue.Pending), "no good", "human")
	changes := map[string]RequestChange{"begin": Begin{MR: "mr-1"}, "begin on a tip": Begin{MR: "mr-1", Onto: "t1"},
		"rebase": Advance{MR: "mr-1", Onto: "t1"}, "test": Advance{MR: "mr-1", Onto: "t1", Test: &refinery.RunTest{Candidate: "c1"}},
		"test of one":  Advance{MR: "mr-1", Onto: "t1", Test: &refinery.RunTest{Candidate: "c1", Stack: stackOfTwo().First(1)}},
		"test of two":  Advance{MR: "mr-1", Onto: "t1", Test: &refinery.RunTest{Candidate: "c2", Stack: stackOfTwo()}},
		"conflicted":   Conflicted{refinery.MarkConflicted{Request: "mr-1", Failure: mergequeue.FailRefused, Reason: long}, "refinery"},
		"requeued":     Requeued{refinery.Requeue{Request: "mr-1", Waiting: long, InTheWay: true}},
		"requeued for": Requeued{refinery.Requeue{Request: "mr-1"}},
		"held":         Held{refinery.Hold{Request: "mr-1", Change: &mergequeue.Hold{Change: "h1"}}},
		"waits":        Waits{refinery.SetWaiting{Request: "mr-1", Waiting: long}},
		"waits on":     Waits{refinery.SetWaiting{Request: "mr-1", Waiting: "waits"}},
		"ended":        Ended{MR: "mr-1", To: mergequeue.Superseded, Reason: "gone"}, "supersede": Supersede{MR: "mr-1"}, "put back": PutBack{MR: "mr-1"},
		"stop waiting": StopWaiting{MR: "mr-1"}, "drop": drop, "allow": Allow{MR: "mr-1", Held: "h1"},
		"announce":      AnnounceLanding{MR: "mr-1", Onto: "t1", Candidate: "c1", Land: refinery.Land{Candidate: "c1", Tested: true}},
		"announce push": AnnounceLanding{MR: "mr-1", Onto: "t1", Candidate: "c1", Land: refinery.Land{Candidate: "c1", Push: true}},
		"merged":        MarkMerged{MR: "mr-1", By: "refinery", Nth: 2, Held: "h0", Unknown: "why"}}
	e := changes[name]
	var m matrix
	for _, status := range []mergequeue.Status{mergequeue.Pending, mergequeue.Merging, mergequeue.Merged, mergequeue.Conflicted, mergequeue.Superseded, mergequeue.Dropped} {
		q := someRequest(status)
		for _, again := range []string{"", " again"} {
			try(&m, string(status)+again, q, func(q *mergequeue.Request) error { return e.Change(q, noon) })
		}
		q = someRequest(status)
		q.Held, q.Onto, q.Waiting = &mergequeue.Hold{Change: "h1"}, q.Candidate, ""
		try(&m, string(status)+" without commits", q, func(q *mergequeue.Request) error { return e.Change(q, noon) })
	}
	return fmt.Sprintf("of %s\n%s", e.Request(), &m)
}

// rules are what may begin, and how a request ends whose bead went another way.
func rules(string) string {
	w := &world{}
	for _, s := range bead.Statuses() {
		b := someBead(s, "as-1")
		e, over := EndOf(someRequest(mergequeue.Pending), b)
		w.say("%s: sling: %v; its request: %t %+v; mail %s", s, Ready(b, nil), over, e, BlockID("as-1", b))
	}
	e, over := EndOf(someRequest(mergequeue.Pending), nil)
	w.say("gone: %t %+v", over, e)
	waits := someBead(bead.Open, "")
	waits.BlockedBy = []state.BeadID{"tt-2", "tt-3"}
	w.say("it waits: %v", Ready(waits, map[state.BeadID]*bead.Bead{"tt-2": someBead(bead.Merged, ""), "tt-3": someBead(bead.Done, "")}))
	for _, a := range []agent.Agent{{ID: "a", Role: agent.Mayor}, {ID: "b", Role: agent.Polecat, Status: agent.Retired}, {ID: "c", Role: agent.Polecat}} {
		w.say("agent %s: %v", a.ID, AcceptsWork(&a))
	}
	for _, s := range []hook.Status{hook.Empty, hook.Pending, hook.Active, hook.Completed} {
		h := someHook(s, "as-1")
		other := retire.Record{AssignmentID: "as-1", Session: "ses-2"}
		_, err := NewRetire(retire.Record{AssignmentID: "as-1"}, &h, someBead(bead.Done, "as-1"), noon)
		w.say("hook %s: %v; end: %v; of another session: %v; of none: %v; record: %v", s, Free(&h), CheckAttempt(&retire.Record{AssignmentID: "as-1"}, &h),
			CheckAttempt(&other, &h), CheckAttempt(&retire.Record{}, &h), err)
	}
	long := strings.Repeat("r", MaxReason+1)
	h := someHook(hook.Active, "as-1")
	rec, err := NewRetire(retire.Record{AssignmentID: "as-1", Reason: long, Summary: long}, &h, someBead(bead.Hooked, "as-1"), noon)
	w.say("record: %s, %v", changed(retire.Record{}, rec), err)
	for _, stage := range []dispatch.Stage{"", dispatch.Stored, dispatch.Launched, dispatch.Confirmed} {
		w.say("dispatch %s: taken back: on its hook %t, not there %t, of another %t", stage, MayTakeBack(&dispatch.Record{AssignmentID: "as-1", Stage: stage}, "as-1", "as-1"),
			MayTakeBack(&dispatch.Record{AssignmentID: "as-1", Stage: stage}, "", "as-1"), MayTakeBack(&dispatch.Record{AssignmentID: "as-2", Stage: stage}, "", "as-1"))
	}
	for _, err := range []error{state.ErrConflict, state.ErrNotFound, state.ErrCorrupt, state.ErrExists, state.ErrTooLarge, errors.New("EIO")} {
		w.say("%v: mail %t, short mail %t, bead %t, hook %t, request %t, target %t", err, Decides(Send{}, err), Decides(Send{Short: true}, err), Decides(GiveBack{}, err),
			Decides(ClearHook{}, err), Decides(Supersede{}, err), Decides(MoveTarget{}, err))
	}
	announce := AnnounceLanding{MR: "mr-1", Onto: "t1", Candidate: "c1", Land: refinery.Land{Candidate: "c1", Tested: true}}
	for name, other := range map[string]func(q *mergequeue.Request){"": func(*mergequeue.Request) {}, "status": func(q *mergequeue.Request) { q.Status = mergequeue.Pending },
		"stage": func(q *mergequeue.Request) { q.Stage = mergequeue.StagePush }, "onto": func(q *mergequeue.Request) { q.Onto = "t2" },
		"candidate": func(q *mergequeue.Request) { q.Candidate, q.StackTip = "c2", "c1" }, "stack": func(q *mergequeue.Request) { q.StackTip = "c2" },
		"tested": func(q *mergequeue.Request) { q.Tested = false }} {
		q := someRequest(mergequeue.Merging)
		if err := announce.Change(q, noon); err != nil {
			w.say("announced: %v", err)
		}
		other(q)
		if err := announce.Change(q, noon); errors.Is(err, state.ErrUnchanged) != (name == "") {
			w.say("announced with another %q: %v", name, err)
		}
	}
	for _, name := range []string{"nonsense", string(mail.NameAt(later, "mayor")), string(mail.NameAt(later, "witness"))} {
		w.say("%s: %s, then %s", name, fixedName(name, "mayor", noon), nextName(mail.NameAt(noon, "mayor"), "mayor"))
	}
	return w.out.String()
}
