package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

const faultyRig = `agents:
  agents:
    - {name: mayor, role: mayor}
    - {name: witness, role: witness}
    - {name: refinery, role: refinery}
    - {name: polecat-pool, role: polecat, count: 1}
rig: {name: test-rig, bead_prefix: tt}
worker: {default: sh}
merge: {target: main, test: "true"}
`

var errFault = errors.New("no space left on device")

// failing makes the first action of a type fail, before it is carried out or after.
type failing struct {
	kind string
	late bool
	// tried are the types of all actions so far, spent is true once it has struck.
	tried []string
	spent bool
	// struck is the action that failed.
	struck roles.Action
}

// faulty is a role in which a fault strikes.
type faulty[S, F any] struct {
	role[S, F]
	*failing
}

func (f faulty[S, F]) do(ctx context.Context, a roles.Action) error {
	kind := fmt.Sprintf("%T", a)
	f.tried = append(f.tried, kind)
	strikes := kind == f.kind && !f.spent
	if strikes {
		f.spent, f.struck = true, a
		if !f.late {
			return errFault
		}
	}
	if err := f.role.do(ctx, a); err != nil {
		return err
	}
	if strikes {
		return errFault
	}
	return nil
}

// besieged is a rig in which one agent has mail and nudges to answer, then has to end.
type besieged struct {
	*testing.T
	*failing
	rig  *rig.Rig
	tick func(context.Context) (Next, error)
	at   time.Time
}

func (b *besieged) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// besiege makes the rig of an agent.
func besiege(t *testing.T, id state.AgentID, f *failing) *besieged {
	b := &besieged{T: t, failing: f, at: time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)}
	dir := gittest.Repo(t)
	gittest.Write(t, dir, ".chipset/chipset.yaml", faultyRig)
	var err error
	b.rig, err = rig.Init(t.Context(), rig.InitOptions{Dir: dir, Clock: b.clock})
	b.must(err)
	if id == "mayor" {
		_, err = b.rig.Beads.Add(bead.Bead{Title: "one"}, "tt", b.rig.Clock.Now())
		b.must(err)
	}
	b.begin(id)
	for _, m := range []mail.Message{
		{From: state.Human, Type: mail.Coordination, Subject: "how is it going?"},
		{From: alpha, Type: mail.PermissionRequest, Subject: "may I?"},
		{From: state.Human, Type: mail.ShutdownRequest, Subject: "end", Ref: &mail.Ref{Session: "se-now"}},
	} {
		if m.From == id {
			continue
		}
		m.To = id
		_, err := b.rig.Sender.Send(t.Context(), m)
		b.must(err)
	}
	_, err = b.rig.Slot(id).Send(t.Context(), nudge.Nudge{From: state.Human, Type: nudge.SyncRequest, RequiresResponse: true}, b.rig.Clock.Now())
	b.must(err)
	return b
}

func (b *besieged) clock() time.Time {
	b.at = b.at.Add(time.Millisecond)
	return b.at
}

// begin makes a process of the agent.
func (b *besieged) begin(id state.AgentID) {
	a := Agent{Rig: b.rig, ID: id, Session: "se-now", Say: b.Logf}
	switch id {
	case "mayor":
		b.tick = through(NewMayor(a), b.failing)
	case "witness":
		w, _ := NewWitness(a).(*witnessRunner)
		b.tick = through(w, b.failing)
	case "refinery":
		b.tick = through(NewRefinery(a), b.failing)
	default:
		p := NewPolecat(a)
		b.Cleanup(p.Close)
		b.tick = through(p, b.failing)
	}
}

// runner is a role with what every runner has.
type runner[S, F any] interface {
	role[S, F]
	common() *base
}

func (b *base) common() *base { return b }

func through[S, F any](r runner[S, F], f *failing) func(context.Context) (Next, error) {
	return func(ctx context.Context) (Next, error) { return tick(ctx, r.common(), role[S, F](faulty[S, F]{r, f})) }
}

// run ticks until the agent ends, and returns what is on the disk then.
func (b *besieged) run(id state.AgentID) string {
	b.Helper()
	for range 8 {
		spent := b.spent
		next, err := b.tick(b.Context())
		struck := b.spent && !spent // a later round of the same tick may have made up for it
		switch {
		case err != nil && (!struck || !errors.Is(err, errFault)):
			b.Fatalf("the fault has struck: %t; the tick says %v", struck, err)
		case err != nil:
			b.checkUnretired(id)
		}
		if err == nil && next.Finished {
			return b.standing()
		}
		b.at = b.at.Add(policy.StartGrace)
	}
	b.Fatalf("it does not end: %v", b.tried)
	return ""
}

// checkUnretired: what an effect that failed was for still waits.
func (b *besieged) checkUnretired(id state.AgentID) {
	b.Helper()
	switch a := b.struck.(type) {
	case roles.Send:
		e, err := b.rig.Mailbox(id).Get(mail.Name(a.Message.InReplyTo))
		if err != nil || e.Read {
			b.Errorf("%s is read, but its answer is not sent (%v)", a.Message.InReplyTo, err)
		}
	case roles.Nudge:
		unseen, _, err := b.rig.Slot(id).Unseen()
		if err != nil || !slices.ContainsFunc(unseen, func(n nudge.Nudge) bool { return n.From == a.To }) {
			b.Errorf("the nudge of %s is seen, but not answered (%v)", a.To, err)
		}
	}
}

// standing is what the agents have: mail, nudges, beads.
func (b *besieged) standing() string {
	b.Helper()
	var out []string
	for _, id := range []state.AgentID{"mayor", "witness", "refinery", alpha, state.Human} {
		all, _, err := b.rig.Mailbox(id).Unread()
		b.must(err)
		for i := range all {
			out = append(out, fmt.Sprintf("%s has %s of %s: %s", id, all[i].Type, all[i].From, all[i].Subject))
		}
		unseen, _, err := b.rig.Slot(id).Unseen()
		b.must(err)
		for i := range unseen {
			out = append(out, fmt.Sprintf("%s has a %s of %s", id, unseen[i].Type, unseen[i].From))
		}
		if h, err := b.rig.Hooks.Get(string(id)); err == nil && id == alpha {
			out = append(out, "its hook is "+string(h.Status))
		}
	}
	beads, _, err := b.rig.Beads.All()
	b.must(err)
	for i := range beads {
		out = append(out, fmt.Sprintf("bead %s is %s, %d assignments", beads[i].Title, beads[i].Status, beads[i].Assignments))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// TestFaultInEveryAction: whichever action fails, before it has done anything or
// after, nothing is retired whose effect is not durable, and once the fault is gone
// the next ticks do everything exactly once.
func TestFaultInEveryAction(t *testing.T) {
	for _, id := range []state.AgentID{"mayor", "witness", "refinery", alpha} {
		t.Run(string(id), func(t *testing.T) {
			t.Parallel()
			whole := besiege(t, id, &failing{})
			want := whole.run(id)
			slices.Sort(whole.tried)
			kinds := slices.Compact(whole.tried)
			for _, shared := range []string{"roles.Send", "roles.Nudge", "roles.MarkRead", "roles.MarkSeen", "roles.Finish"} {
				if !slices.Contains(kinds, shared) {
					t.Errorf("%s is not tried, only %v", shared, kinds)
				}
			}
			for _, kind := range kinds {
				for _, late := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, after it: %t", kind, late), func(t *testing.T) {
						if got := besiege(t, id, &failing{kind: kind, late: late}).run(id); got != want {
							t.Errorf("it comes to\n%s\nand without the fault to\n%s", got, want)
						}
					})
				}
			}
		})
	}
}

// TestCallsFailInTicks: whichever call on a file of the state fails, the tick says so or makes up for it, and the next ticks
// do everything exactly once.
func TestCallsFailInTicks(t *testing.T) {
	refusals := &gittest.Refusals{Within: "/execute/"}
	for _, id := range []state.AgentID{"mayor", "witness", "refinery", alpha} {
		t.Run(string(id), func(t *testing.T) {
			b := besiege(t, id, &failing{})
			dir, begin := b.rig.Dir, b.at
			failed := false
			refusals.Sweep(t, gittest.Play{World: dir, Standing: b.standing, Do: func() (_ any, err error) {
				if !failed {
					b.at = begin
					if b.rig, err = rig.Open(t.Context(), dir, b.clock); err != nil {
						return nil, err
					}
					b.begin(id)
				}
				for range 8 {
					next, err := b.tick(t.Context())
					if failed = err != nil; failed || next.Finished {
						return nil, err
					}
					b.at = b.at.Add(policy.StartGrace)
				}
				return nil, errors.New("it does not end")
			}}, ".chipset/state")
		})
	}
}
