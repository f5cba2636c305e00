package mayor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/backlog"
	"github.com/gastown-chipset/chipset/roles/rolestest"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/retire"
)

// TestTranscripts plays testdata/*.txt. Each ---- asks for a decision: the state
// that follows, and the actions. Facts stay until they are stated again; "reset"
// forgets them all.
func TestTranscripts(t *testing.T) {
	rolestest.Run(t, func(t *testing.T, seen rolestest.Seen) rolestest.Stage {
		s := newStage()
		s.decided = func(d *roles.Decision[State]) { rolestest.Faults(t, seen, d) }
		return s
	})
}

// stage is what a transcript has stated so far.
type stage struct {
	state State
	Facts
	// decided gets each decision.
	decided func(*roles.Decision[State])
}

var noon = state.At(time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC))

func newStage() *stage {
	return &stage{state: Idle, Facts: Facts{Now: noon, Mended: map[pause.Scope]bool{}, Session: "se-now", Backlog: backlog.New(), Retired: map[state.AssignmentID]retire.Record{},
		Policy: Policy{Mayor: "mayor", Witness: "witness", MaxParallel: 10, MaxAttempts: 3, MaxConflicts: 2, MaxRestarts: 3,
			RestartCooldown: time.Minute, ReworkConflicts: true, Client: client}}}
}

// client is the scope of a worker; claude is the rig's own.
func client(worker string) pause.Scope {
	if worker == "" {
		worker = "claude"
	}
	return pause.Client(worker)
}

// paused is a pause that begins now, or what became of one: pause SCOPE KIND [until=D]
// [ramping=N] [admitted=B,…] [waiting=B,…] [tried=B,…] [mended] | pause SCOPE over.
func (s *stage) paused(l rolestest.Line) error {
	scope := pause.Scope(l.Word(0))
	s.Pauses = slices.DeleteFunc(s.Pauses, func(p pause.Pause) bool { return p.Scope == scope })
	delete(s.Mended, scope)
	if l.Word(1) == "over" {
		return nil
	}
	wait, err := time.ParseDuration(l.Options["until"])
	if err != nil {
		return err
	}
	list := func(name string) (beads []state.BeadID) {
		for b := range strings.SplitSeq(l.Options[name], ",") {
			if b != "" {
				beads = append(beads, state.BeadID(b))
			}
		}
		return beads
	}
	f := fault.New(fault.Kind(l.Word(1)), "the reason")
	p := pause.Pause{Scope: scope, Status: pause.Paused, Class: f.Class, Kind: f.Kind, Since: s.Now, Until: state.At(s.Now.Add(wait)),
		Width: l.Number("ramping", 0), Admitted: list("admitted"), Waiting: list("waiting")}
	if p.Width > 0 {
		p.Status = pause.Ramping
	}
	if p.Kind == fault.Budget {
		p.Check = pause.CheckBudget
	}
	for _, b := range list("tried") {
		p.Tried = append(p.Tried, pause.Try{BeadID: b})
	}
	s.Pauses = append(s.Pauses, p)
	s.Mended[scope] = l.Has("mended")
	return nil
}

// Decide returns the next state and the actions.
func (s *stage) Decide() []string {
	d := Decide(s.state, s.Facts)
	s.decided(&d)
	s.state = d.Next
	out := []string{fmt.Sprint(d.Next)}
	for _, line := range rolestest.Show(&d, show) {
		out = append(out, "  "+line)
	}
	s.Mail, s.Nudges = nil, nil // handled
	return out
}

// Happen states one line.
func (s *stage) Happen(l rolestest.Line) error {
	switch l.Noun {
	case "reset":
		decided := s.decided
		*s = *newStage()
		s.decided = decided
	case "policy":
		return s.policy(l)
	case "polecat":
		s.polecat(l)
	case "bead":
		if l.Has("gone") {
			s.Backlog.Remove(state.BeadID(l.Word(0)))
		} else {
			s.Backlog.Put(l.Bead(noon))
		}
	case "request":
		s.Queue = put(s.Queue, l.Request(state.Time{}), func(r *mergequeue.Request) string { return string(r.ID) })
	case "retired":
		as := state.AssignmentID(l.Word(0))
		s.Retired[as] = retire.Record{AssignmentID: as, Outcome: retire.Outcome(l.Options["outcome"]),
			Stage: retire.Stage(l.Options["stage"]), Empty: l.Has("empty"), Reason: l.Text}
		if kind := l.Options["fault"]; kind != "" {
			rec := s.Retired[as]
			rec.Fault = fault.New(fault.Kind(kind), l.Text)
			s.Retired[as] = rec
		}
	case "pause":
		return s.paused(l)
	case "unconfirmed":
		s.Unconfirmed = append(s.Unconfirmed, dispatch.Record{BeadID: state.BeadID(l.Word(0)), AgentID: state.AgentID(l.Options["to"]), AssignmentID: l.Assignment()})
	case "starting":
		s.Starting = true
	case "confirmed":
		s.Unconfirmed = nil
	case "convoy":
		s.convoy(l)
	case "mail":
		s.mail(l)
	case "after":
		d, err := l.Duration()
		s.Now = state.At(s.Now.Add(d))
		return err
	case "nudge":
		s.Nudges = append(s.Nudges, l.Nudge(noon))
	default:
		return fmt.Errorf("unknown fact %q", l.Noun)
	}
	return nil
}

func (s *stage) policy(l rolestest.Line) error {
	p := &s.Policy
	switch l.Word(0) {
	case "auto_claim":
		p.AutoClaim = true
	case "block":
		p.ReworkConflicts = false
	case "":
	default:
		return fmt.Errorf("unknown policy %q", l.Word(0))
	}
	p.MaxParallel = l.Number("max_parallel", p.MaxParallel)
	p.BatchThreshold = l.Number("batch", p.BatchThreshold)
	return nil
}

func (s *stage) polecat(l rolestest.Line) {
	id := "polecat-" + l.Agent()
	p := Polecat{ID: id, Corrupt: l.Has("corrupt"), Live: !l.Has("dead"), Retired: l.Has("retired"), Stalled: l.Has("stalled"), Session: l.Has("session"),
		Hook: hook.Hook{AgentID: id, Status: hook.Empty}}
	for _, st := range []hook.Status{hook.Pending, hook.Active, hook.Completed} {
		if l.Has(string(st)) {
			b, a, _ := strings.Cut(l.Options[string(st)], "/")
			p.Hook.Status, p.Hook.WorkItem = st, &hook.WorkItem{BeadID: state.BeadID(b), AssignmentID: state.AssignmentID(a)}
		}
	}
	s.Polecats = put(s.Polecats, p, func(p *Polecat) string { return string(p.ID) })
}

func put[T any](list []T, v T, name func(*T) string) []T {
	for i := range list {
		if name(&list[i]) == name(&v) {
			list[i] = v
			return list
		}
	}
	return append(list, v)
}

func (s *stage) convoy(l rolestest.Line) {
	c := convoy.Convoy{ID: state.ConvoyID(l.Word(0))}
	c.Progress, _ = strconv.ParseFloat(l.Options["progress"], 64)
	for id := range strings.SplitSeq(l.Options["of"], ",") {
		c.BeadIDs = append(c.BeadIDs, state.BeadID(id))
	}
	if l.Has("completed") {
		at := noon
		c.CompletedAt = &at
	}
	s.Backlog.PutConvoy(c)
}

// mail arrives a second after the last one.
func (s *stage) mail(l rolestest.Line) {
	letter := Message{Entry: l.Mail("mayor", state.At(noon.Add(time.Duration(len(s.Mail))*time.Second)))}
	if recommend := l.Options["recommend"]; recommend != "" {
		letter.Escalation = &Escalation{Kind: "stall", Severity: "alert", Recommend: recommend}
	}
	s.Mail = append(s.Mail, letter)
}

// show is one action on one line.
func show(a roles.Action) string {
	switch a := a.(type) {
	case HealDispatch:
		return fmt.Sprintf("heal dispatch of %s", a.Bead)
	case Sling:
		return fmt.Sprintf("sling %s to %s", a.Bead, a.Agent)
	case TakeOver:
		return fmt.Sprintf("take over %s from the hook of %s: %s", a.Bead, a.Agent, a.Title)
	case Admit:
		return fmt.Sprintf("admit %v to %s", a.Beads, a.Scope)
	case Lift:
		return fmt.Sprintf("lift %s", a.Scope)
	case ClearHook:
		return fmt.Sprintf("clear hook of %s (%s)%s", a.Agent, a.Assignment, mark(a.Verify, " verify"))
	case Reopen:
		return fmt.Sprintf("reopen %s (%s) from %s charge=%s%s%s: %s", a.Bead, a.Assignment, a.From, a.Charge,
			mark(!a.ReadyAt.IsZero(), " ready in "+a.ReadyAt.Sub(noon.Time).String()), mark(a.MR != "", " supersede "+string(a.MR)), a.Note)
	case TakeBack:
		return fmt.Sprintf("take back %s (%s) from %s%s", a.Bead, a.Assignment, a.Agent, mark(!a.ReadyAt.IsZero(), " ready in "+a.ReadyAt.Sub(noon.Time).String()))
	case FinishFor:
		return fmt.Sprintf("finish for %s", a.Agent)
	case Block:
		return fmt.Sprintf("block %s (%s) from %s charge=%s%s: %s", a.Bead, a.Assignment, a.From, a.Charge, mark(a.Unhooked, " unhooked"), a.Reason)
	case Supersede:
		return fmt.Sprintf("supersede %s of %s", a.MR, a.Bead)
	case MakeConvoy:
		return fmt.Sprintf("make convoy of %v", a.Beads)
	case UpdateConvoy:
		return fmt.Sprintf("update convoy %s to %.2f%s", a.ID, a.Progress, mark(a.Complete, " complete"))
	}
	return fmt.Sprintf("unknown %#v", a)
}

func mark(on bool, s string) string {
	if on {
		return s
	}
	return ""
}
