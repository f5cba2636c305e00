package mayor

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/backlog"
	"github.com/gastown-chipset/chipset/roles/rolestest"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

// TestTranscripts plays testdata/*.txt. The line "decide" asks for a decision: the
// state that follows, and the actions. Facts stay until they are stated again;
// "reset" forgets them all.
func TestTranscripts(t *testing.T) {
	rolestest.Run(t, func(t *testing.T, seen rolestest.Seen, transcript string) string {
		s := newStage()
		return rolestest.Paragraphs(t, transcript, func(lines []string, _ bool) string {
			decisions := ""
			for _, line := range lines {
				if line == "decide" {
					decisions = s.decide(t, seen)
				} else if err := s.fact(line); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
			}
			return decisions
		})
	})
}

// stage is what a transcript has stated so far.
type stage struct {
	state State
	Facts
}

var noon = state.At(time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC))

func newStage() *stage {
	return &stage{state: Idle, Facts: Facts{Now: noon, Session: "se-now", Backlog: backlog.New(), Retired: map[state.AssignmentID]retire.Record{},
		Policy: Policy{Mayor: "mayor", Witness: "witness", MaxParallel: 10, MaxAttempts: 3, MaxConflicts: 2, MaxRestarts: 3,
			RestartCooldown: time.Minute, ReworkConflicts: true}}}
}

func (s *stage) decide(t *testing.T, seen rolestest.Seen) string {
	var out strings.Builder
	d := Decide(s.state, s.Facts)
	rolestest.Faults(t, seen, &d)
	s.state = d.Next
	fmt.Fprintln(&out, d.Next)
	for _, line := range rolestest.Show(&d, show) {
		fmt.Fprintln(&out, "  "+line)
	}
	s.Mail, s.Nudges = nil, nil // handled
	return out.String()
}

// options are the words of a line that are no name: key=value, or a flag.
type options map[string]string

func (o options) has(key string) bool { _, ok := o[key]; return ok }

func (o options) number(key string, otherwise int) int {
	if n, err := strconv.Atoi(o[key]); err == nil {
		return n
	}
	return otherwise
}

func (o options) ago(key string) state.Time {
	d, _ := time.ParseDuration(o[key])
	return state.At(noon.Add(-d))
}

// fact states one line: noun, name, options, and behind | free text.
func (s *stage) fact(line string) error {
	line, text, _ := strings.Cut(line, "|")
	words := strings.Fields(line)
	if len(words) == 0 {
		return fmt.Errorf("no fact")
	}
	noun, name := words[0], ""
	words = words[1:]
	if len(words) > 0 && !strings.Contains(words[0], "=") {
		name, words = words[0], words[1:]
	}
	o := options{}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		o[key] = value
	}
	text = strings.TrimSpace(text)
	switch noun {
	case "reset":
		*s = *newStage()
	case "policy":
		return s.policy(name, o)
	case "polecat":
		s.polecat(name, o)
	case "bead":
		s.bead(name, o, text)
	case "request":
		s.request(name, o, text)
	case "retired":
		s.Retired[state.AssignmentID(name)] = retire.Record{AssignmentID: state.AssignmentID(name), Outcome: retire.Outcome(o["outcome"]),
			Stage: retire.Stage(o["stage"]), Empty: o.has("empty"), Reason: text}
	case "unconfirmed":
		s.Unconfirmed = append(s.Unconfirmed, dispatch.Record{BeadID: state.BeadID(name), AgentID: state.AgentID(o["to"]), AssignmentID: state.AssignmentID(o["as"])})
	case "starting":
		s.Starting = true
	case "confirmed":
		s.Unconfirmed = nil
	case "convoy":
		s.convoy(name, o)
	case "mail":
		s.mail(name, o, text)
	case "nudge":
		s.Nudges = append(s.Nudges, nudge.Nudge{From: state.AgentID(name), Type: nudge.Type(o["type"]), Timestamp: noon, RequiresResponse: o.has("respond")})
	default:
		return fmt.Errorf("unknown fact %q", noun)
	}
	return nil
}

func (s *stage) policy(name string, o options) error {
	p := &s.Policy
	switch name {
	case "auto_claim":
		p.AutoClaim = true
	case "on_conflict=block", "block":
		p.ReworkConflicts = false
	case "":
	default:
		return fmt.Errorf("unknown policy %q", name)
	}
	p.MaxParallel = o.number("max_parallel", p.MaxParallel)
	p.BatchThreshold = o.number("batch", p.BatchThreshold)
	return nil
}

func (s *stage) polecat(name string, o options) {
	id := state.AgentID("polecat-" + name)
	p := Polecat{ID: id, Corrupt: o.has("corrupt"), Live: !o.has("dead"), Retired: o.has("retired"), Stalled: o.has("stalled"),
		Hook: hook.Hook{AgentID: id, Status: hook.Empty}}
	for _, st := range []hook.Status{hook.Pending, hook.Active, hook.Completed} {
		if o.has(string(st)) {
			b, a, _ := strings.Cut(o[string(st)], "/")
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

func (s *stage) bead(name string, o options, text string) {
	b := bead.Bead{ID: state.BeadID(name), Title: "title of " + name, Status: bead.Open, Priority: bead.P2, CreatedAt: o.ago("age"),
		AssignmentID: state.AssignmentID(o["as"]), ConvoyID: state.ConvoyID(o["convoy"]), Attempts: o.number("attempts", 0),
		Conflicts: o.number("conflicts", 0), Restarts: o.number("restarts", 0), CloseReason: text}
	if o["as"] != "" {
		b.Assignee, b.Branch = state.AgentID("polecat-"+o["on"]), "polecat/"+name
	}
	for key := range o {
		if bead.Status(key).Known() {
			b.Status = bead.Status(key)
		}
		if p := bead.Priority(key); p == bead.P1 || p == bead.P3 {
			b.Priority = p
		}
	}
	if o["needs"] != "" {
		for dep := range strings.SplitSeq(o["needs"], ",") {
			b.BlockedBy = append(b.BlockedBy, state.BeadID(dep))
		}
	}
	if d, err := time.ParseDuration(o["ready_in"]); err == nil {
		at := state.At(noon.Add(d))
		b.ReadyAt = &at
	}
	if o.has("gone") {
		s.Backlog.Remove(b.ID)
		return
	}
	s.Backlog.Put(b)
}

func (s *stage) request(name string, o options, text string) {
	r := mergequeue.Request{ID: state.MergeID(name), BeadID: state.BeadID(o["of"]), AssignmentID: state.AssignmentID(o["as"]),
		Status: mergequeue.Pending, Failure: mergequeue.Failure(o["failure"]), Reason: text}
	for _, st := range []mergequeue.Status{mergequeue.Merging, mergequeue.Merged, mergequeue.Conflicted, mergequeue.Superseded} {
		if o.has(string(st)) {
			r.Status = st
		}
	}
	s.Queue = put(s.Queue, r, func(r *mergequeue.Request) string { return string(r.ID) })
}

func (s *stage) convoy(name string, o options) {
	c := convoy.Convoy{ID: state.ConvoyID(name)}
	c.Progress, _ = strconv.ParseFloat(o["progress"], 64)
	for id := range strings.SplitSeq(o["of"], ",") {
		c.BeadIDs = append(c.BeadIDs, state.BeadID(id))
	}
	if o.has("completed") {
		at := noon
		c.CompletedAt = &at
	}
	s.Backlog.PutConvoy(c)
}

// mail is from NAME; its own name counts up.
func (s *stage) mail(from string, o options, text string) {
	at := state.At(noon.Add(time.Duration(len(s.Mail)) * time.Second))
	m := mail.Message{From: state.AgentID(from), To: "mayor", Type: mail.Type(o["type"]), Subject: text, Body: "body", Timestamp: at, Thread: o["thread"]}
	if o["bead"] != "" || o.has("session") {
		m.Ref = &mail.Ref{BeadID: state.BeadID(o["bead"]), AssignmentID: state.AssignmentID(o["as"]), Session: state.SessionID(o["session"])}
	}
	l := Letter{Entry: mail.Entry{Name: mail.NameAt(at, m.From), Message: m}}
	if o["recommend"] != "" {
		l.Escalation = &Escalation{Kind: "stall", Severity: "alert", Recommend: o["recommend"]}
	}
	s.Mail = append(s.Mail, l)
}

// show is one action on one line.
func show(a roles.Action) string {
	switch a := a.(type) {
	case HealDispatch:
		return fmt.Sprintf("heal dispatch of %s", a.Bead)
	case Sling:
		return fmt.Sprintf("sling %s to %s", a.Bead, a.Agent)
	case ClearHook:
		return fmt.Sprintf("clear hook of %s (%s)%s", a.Agent, a.Assignment, mark(a.Verify, " verify"))
	case Reopen:
		return fmt.Sprintf("reopen %s (%s) from %s charge=%s%s%s: %s", a.Bead, a.Assignment, a.From, a.Charge,
			mark(!a.ReadyAt.IsZero(), " ready in "+a.ReadyAt.Sub(noon.Time).String()), mark(a.MR != "", " supersede "+string(a.MR)), a.Note)
	case TakeBack:
		return fmt.Sprintf("take back %s (%s) from %s", a.Bead, a.Assignment, a.Agent)
	case FinishFor:
		return fmt.Sprintf("finish for %s", a.Agent)
	case Block:
		return fmt.Sprintf("block %s (%s) from %s charge=%s: %s", a.Bead, a.Assignment, a.From, a.Charge, a.Reason)
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
