package pause

import (
	"slices"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/fault"
)

// A bead waits for the first pause of its way that does not admit it.
func TestHolding(t *testing.T) {
	client := Client("claude")
	over := Pause{Scope: client, Status: Over}
	admits := Pause{Scope: client, Status: Paused, Admitted: []state.BeadID{"gt-1"}}
	elsewhere := Pause{Scope: Client("codex"), Status: Paused}
	rig := Pause{Scope: Rig, Status: Paused}
	for _, c := range []struct {
		inForce []Pause
		bead    state.BeadID
		want    Scope
	}{
		{nil, "gt-1", ""}, {[]Pause{over, elsewhere}, "gt-1", ""}, {[]Pause{admits}, "gt-1", ""}, {[]Pause{admits}, "gt-2", client},
		{[]Pause{elsewhere, admits, rig}, "gt-1", Rig}, {[]Pause{rig}, "gt-1", Rig},
	} {
		got := Holding(c.inForce, client, &bead.Bead{ID: c.bead})
		if (got == nil) != (c.want == "") || got != nil && got.Scope != c.want {
			t.Errorf("%v for %s: %+v, want %q", c.inForce, c.bead, got, c.want)
		}
	}
}

// The scope of a client is its program's name, in characters that a file's name may have.
func TestClientScope(t *testing.T) {
	for program, want := range map[string]string{"/usr/bin/Claude": "claude", "a0z9_-.": "a0z9_-.", "{`:/": "", "a b{`:": "a-b---", strings.Repeat("x", 99): strings.Repeat("x", maxScope-len(clientPrefix))} {
		if got := Client(program); got != Scope(clientPrefix+want) {
			t.Errorf("%q is %q", program, got)
		}
	}
}

// A pause lists its last tries, and forgets what a check had found once an attempt fails.
func TestFailForgets(t *testing.T) {
	p := &Pause{Scope: Rig}
	p.Find("disk", "make room", fault.New(fault.Overloaded, "full"), at(0))
	if p.Room(at(100)) != 0 || strings.Contains(p.Head(), "next try") {
		t.Errorf("a check that fails is not probed: %s", p.Head())
	}
	must(t, p.Resume(at(1)))
	must(t, p.Admit([]state.BeadID{"gt-1", "gt-2"}, at(1)))
	must(t, p.Succeed("gt-2", at(2), Rules{Most: 99, Wait: rules().Wait, Longest: rules().Longest}))
	if !slices.Equal(p.Admitted, []state.BeadID{"gt-1"}) || !p.UpdatedAt.Equal(at(2).Time) {
		t.Errorf("after a success %v are admitted", p.Admitted)
	}
	must(t, p.Fail(try("gt-1", 3), overloaded(), rules()))
	if p.Check != "" || p.Mend != "" || p.Status != Paused {
		t.Errorf("%+v", p)
	}
	for n := range 3 * MaxTried {
		must(t, p.Fail(try("gt-9", 10+n), overloaded(), rules()))
	}
	if len(p.Tried) != MaxTried || !p.Tried[MaxTried-1].At.Equal(at(9+3*MaxTried).Time) {
		t.Errorf("%d tries are kept, the last of %v", len(p.Tried), p.Tried[len(p.Tried)-1].At)
	}
	must(t, p.Admit([]state.BeadID{"gt-3"}, at(100)))
	if !strings.Contains(p.Head(), "gt-3 is trying it now") {
		t.Error(p.Head())
	}
}

// The log hears when a scope is paused and when it goes on.
func TestTold(t *testing.T) {
	with := func(s Status) *Pause { return &Pause{Scope: Rig, Status: s} }
	for _, c := range []struct {
		before, after *Pause
		want          string
	}{
		{nil, with(Paused), "paused"}, {with(Suspected), with(Paused), "paused"}, {with(Paused), with(Paused), ""}, {with(Paused), with(Ramping), "resumed"},
		{with(Paused), with(Over), "resumed"}, {with(Ramping), with(Over), ""}, {nil, with(Suspected), ""}, {with(Ramping), with(Paused), "paused"},
	} {
		e, is := eventOf(c.before, c.after)
		if is != (c.want != "") || !strings.HasSuffix(e.Type, c.want) {
			t.Errorf("%+v → %s: %q", c.before, c.after.Status, e.Type)
		}
	}
}
