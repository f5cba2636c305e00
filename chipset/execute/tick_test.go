package execute

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/pause"
)

// scripted is a role whose state counts its decisions that worked, and that has one action in each.
type scripted struct {
	state   int
	unread  error
	again   bool
	fails   error // of the action
	asked   int
	adopted []int
}

type deed struct{}

func (deed) IsAction() {}

func (s *scripted) fetch(context.Context) (int, error) { return s.state, s.unread }
func (s *scripted) decide(seen int) roles.Decision[int] {
	s.asked++
	return roles.Decision[int]{Work: roles.Group{deed{}}, Next: seen + 1, Again: s.again && s.asked != 3}
}
func (s *scripted) do(ctx context.Context, _ roles.Action) error {
	return errors.Join(ctx.Err(), s.fails)
}
func (s *scripted) adopt(next int)       { s.state, s.adopted = next, append(s.adopted, next) }
func (s *scripted) after() time.Duration { return time.Duration(s.state) }

// A state counts once its work is done, another decision is made at once only on that, and every failure is told as what it is.
func TestTick(t *testing.T) {
	failure, conflict := errors.New("no disk"), state.Conflictf("x", "it moved on")
	damage := &state.Corruption{Path: "state/x.json", Reason: "torn"}
	r := rigtest.New(t, "")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx     context.Context
		s       scripted
		adopted []int
		want    error // of the tick
		next    Next
		said    string
	}{
		"once":        {t.Context(), scripted{}, []int{1}, nil, Next{After: 1}, ""},
		"again":       {t.Context(), scripted{again: true}, []int{1, 2, 3}, nil, Next{After: 3}, ""},
		"a failure":   {t.Context(), scripted{again: true, fails: failure}, nil, failure, Next{}, ""},
		"a conflict":  {t.Context(), scripted{again: true, fails: conflict}, nil, nil, Next{Conflict: conflict}, ""},
		"a damage":    {t.Context(), scripted{fails: damage}, nil, nil, Next{}, "can't read state/x.json: torn"},
		"unread":      {t.Context(), scripted{unread: failure}, nil, failure, Next{}, ""},
		"told to end": {over, scripted{}, nil, context.Canceled, Next{}, ""},
		"unsettled":   {t.Context(), scripted{again: true, asked: 3}, make([]int, maxRounds), nil, Next{Conflict: errUnsettled}, ""},
	} {
		var said []string
		b := newBase(Agent{Rig: r, ID: "mayor", Say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }})
		next, err := tick(c.ctx, &b, &c.s)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if len(c.s.adopted) != len(c.adopted) || c.adopted != nil && c.adopted[0] != 0 && !slices.Equal(c.s.adopted, c.adopted) {
			t.Errorf("%s: it came to %v", name, c.s.adopted)
		}
		if want := max(1, len(c.adopted)); c.s.unread == nil && name != "unsettled" && c.s.asked != want {
			t.Errorf("%s: %d decisions, want %d", name, c.s.asked, want)
		}
		if next.After != c.next.After || !errors.Is(next.Conflict, c.next.Conflict) || (next.Conflict == nil) != (c.next.Conflict == nil) {
			t.Errorf("%s: %+v", name, next)
		}
		if text := strings.Join(said, "\n"); (text == "") != (c.said == "") || !strings.Contains(text, c.said) {
			t.Errorf("%s: said %q", name, text)
		}
	}
	events, _, _, err := r.Events.Read(event.Position{}, time.Time{})
	if err != nil || len(events) == 0 || events[len(events)-1].Text != "torn" {
		t.Errorf("the log tells %+v, %v", events, err)
	}
}

// What a role can't read it does not decide without.
func TestRolesDecideOnAllOrNothing(t *testing.T) {
	r := rigtest.New(t, "")
	must := func(err error) {
		t.Helper()
		rigtest.Must(t, err)
	}
	m := NewMayor(Agent{Rig: r, ID: "mayor", Session: "ses-1", Say: t.Logf})
	w, _ := NewWitness(Agent{Rig: r, ID: r.Witness(), Session: "ses-2", Say: t.Logf}).(*witnessRunner)
	mayor := func() error { _, err := m.fetch(t.Context()); return err }
	witness := func() error { _, err := w.fetch(t.Context()); return err }
	for _, c := range []struct {
		name string
		look func() error
		dirs []state.Path
	}{
		{"mayor", mayor, []state.Path{r.Slot("mayor").Dir(), r.Mailbox("mayor").Dir(), agent.Dir, hook.Dir, dispatch.Dir, mergequeue.Dir, bead.Dir, convoy.Dir, pause.Dir}},
		{"witness", witness, []state.Path{r.Slot("witness").Dir(), r.Mailbox("witness").Dir(), agent.Dir, hook.Dir, dispatch.Dir, mergequeue.Dir, bead.Dir, incident.Dir,
			pause.Dir, r.Mailbox("mayor").Dir()}},
	} {
		for _, dir := range c.dirs {
			path := r.Tree.Abs(dir)
			must(os.MkdirAll(path, 0o700))
			must(os.Rename(path, path+".aside"))
			must(os.WriteFile(path, nil, 0o600))
			if err := c.look(); err == nil {
				t.Errorf("the %s decides without %s", c.name, dir)
			}
			must(os.Remove(path))
			must(os.Rename(path+".aside", path))
		}
		must(c.look())
	}
}
