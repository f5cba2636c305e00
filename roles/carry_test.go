package roles_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-multierror"
	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
)

// act is an action that is told from every other one.
type act struct{ group, place int }

func (act) IsAction() {}

var errDisk = errors.New("no space left on device")

func count(errs *multierror.Error) int {
	if errs == nil {
		return 0
	}
	return errs.Len()
}

// plan is a decision and how each of its actions ends.
type plan struct {
	roles.Decision[string]
	ends map[act]error
}

func drawPlan(t *rapid.T) plan {
	p := plan{ends: map[act]error{}}
	groups := rapid.IntRange(0, 4).Draw(t, "groups")
	for g := range groups + 1 {
		var group roles.Group
		for i := range rapid.IntRange(0, 4).Draw(t, "actions") {
			a := act{g, i}
			group = append(group, a)
			p.ends[a] = rapid.SampledFrom([]error{nil, nil, nil, errDisk, &state.Conflict{}, &state.Corruption{Path: "x"}}).Draw(t, "end")
		}
		if g < groups {
			p.Groups = append(p.Groups, group)
		} else {
			p.Work = group
		}
	}
	return p
}

// expected are the actions that the rule allows, and the groups that get through.
func (p *plan) expected() (tried []roles.Action, worked bool) {
	for _, g := range append(slices.Clone(p.Groups), p.Work) {
		worked = true
		for _, a := range g {
			tried = append(tried, a)
			if p.ends[a.(act)] != nil {
				worked = false
				break
			}
		}
	}
	return tried, worked
}

// TestTheRule: the first action that fails ends its group and no other one, each
// failure is counted as what it is, and the next state counts once the work is done.
func TestTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		want, worked := p.expected()
		var tried []roles.Action
		out := roles.CarryOut(context.Background(), &p.Decision, func(_ context.Context, a roles.Action) error {
			tried = append(tried, a)
			return p.ends[a.(act)]
		})
		if !slices.Equal(tried, want) || out.Worked != worked {
			t.Fatalf("tried %v, worked %t; want %v, %t", tried, out.Worked, want, worked)
		}
		conflicts, damages, failures := 0, 0, 0
		for _, a := range tried {
			switch err := p.ends[a.(act)]; {
			case errors.Is(err, state.ErrConflict):
				conflicts++
			case errors.Is(err, state.ErrCorrupt):
				damages++
			case err != nil:
				failures++
			}
		}
		got := [3]int{count(out.Conflicts), count(out.Damages), count(out.Failures)}
		if want := [3]int{conflicts, damages, failures}; got != want {
			t.Fatalf("%v conflicts, damages, failures; want %v", got, want)
		}
		if failures > 0 && !errors.Is(out.Failures, errDisk) {
			t.Fatalf("%v hides its cause", out.Failures)
		}
	})
}

// TestCancelled: a context that ends while an action is carried out ends all groups,
// and no state counts.
func TestCancelled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		clear(p.ends)
		all := p.Actions()
		if len(all) == 0 {
			return
		}
		last := rapid.IntRange(1, len(all)).Draw(t, "last")
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		n := 0
		out := roles.CarryOut(ctx, &p.Decision, func(context.Context, roles.Action) error {
			if n++; n == last {
				cancel()
			}
			return nil
		})
		if n != last || out.Worked || out.Failures != nil {
			t.Fatalf("%d actions after the end of the context, worked %t, %v", n-last, out.Worked, out.Failures)
		}
	})
}

// A failure names the action.
func TestFailureNamesAction(t *testing.T) {
	d := roles.Decision[string]{Work: roles.Group{act{}}}
	out := roles.CarryOut(t.Context(), &d, func(context.Context, roles.Action) error { return errDisk })
	if text := out.Failures.Error(); !strings.Contains(text, "roles_test.act: ") {
		t.Errorf("it fails with %q", text)
	}
}

func ExampleCarryOut() {
	d := roles.Decision[string]{Groups: []roles.Group{{roles.Send{}, roles.MarkRead{}}, {roles.MarkSeen{}}}, Next: "closing"}
	out := roles.CarryOut(context.Background(), &d, func(_ context.Context, a roles.Action) error {
		fmt.Printf("%T\n", a)
		if _, sends := a.(roles.Send); sends {
			return errDisk // the message is not sent, so it is not marked read
		}
		return nil
	})
	fmt.Println(out.Worked, count(out.Failures))
	// Output:
	// roles.Send
	// roles.MarkSeen
	// true 1
}
