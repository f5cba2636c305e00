package pause

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/fault"
)

// at is a moment, in seconds.
func at(seconds int) state.Time {
	return state.At(time.Date(2026, 3, 5, 10, 30, seconds, 0, time.UTC))
}

func try(b state.BeadID, seconds int) Try {
	return Try{At: at(seconds), BeadID: b, Assignment: state.AssignmentID("as-" + string(b))}
}

func rules() Rules {
	return Rules{Wait: func(_ fault.Kind, tries int) time.Duration { return time.Duration(tries) * 5 * time.Second }, Longest: time.Hour, Most: 8}
}

// unknown is a failure that nothing explains.
func unknown(reason string) fault.Fault { return fault.New(fault.ShortFailure, reason) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func unchanged(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, state.ErrUnchanged) {
		t.Fatalf("%v, want unchanged", err)
	}
}

func TestOneProbeThenTwoThenFour(t *testing.T) {
	t.Parallel()
	p := &Pause{Scope: Client("claude")}
	must(t, p.Fail(try("gt-1", 0), overloaded(), rules()))
	if p.Room(at(4)) != 0 || p.Room(at(5)) != 1 || !p.Holds("gt-2") {
		t.Fatalf("%+v", p)
	}
	unchanged(t, p.Succeed("gt-9", at(5), rules())) // it began before the pause did, and proves nothing
	for round, width := range []int{1, 2, 4} {
		var beads []state.BeadID
		if got := p.Room(at(5 + round)); got != width {
			t.Fatalf("round %d: room for %d, want %d", round, got, width)
		}
		for n := range width {
			beads = append(beads, state.BeadID("gt-"+string(rune('a'+n))))
		}
		must(t, p.Admit(beads, at(5+round)))
		if p.Holds(beads[0]) || !p.Holds("gt-2") {
			t.Fatal("the pause holds what is admitted, or not what is not")
		}
		for _, b := range beads {
			must(t, p.Succeed(b, at(5+round), rules()))
		}
	}
	if p.Status != Over || p.Holds("gt-2") || p.EndedAt == nil {
		t.Errorf("%+v", p)
	}
}

func TestFailedProbeWaitsLonger(t *testing.T) {
	t.Parallel()
	p := &Pause{Scope: Rig}
	must(t, p.Fail(try("gt-1", 0), overloaded(), rules()))
	must(t, p.Fail(try("gt-2", 1), overloaded(), rules())) // was out already
	if p.Tries != 1 || !p.Until.Equal(at(5).Time) || len(p.Tried) != 2 {
		t.Fatalf("%+v", p)
	}
	must(t, p.Admit([]state.BeadID{"gt-1"}, at(5)))
	must(t, p.Fail(try("gt-1", 6), overloaded(), rules()))
	unchanged(t, p.Fail(try("gt-1", 6), overloaded(), rules())) // the same end, after a crash
	if p.Tries != 2 || !p.Until.Equal(at(16).Time) || len(p.Admitted) != 0 {
		t.Fatalf("%+v", p)
	}
	must(t, p.Resume(at(7)))
	must(t, p.Admit([]state.BeadID{"gt-3"}, at(7)))
	must(t, p.Fail(try("gt-3", 8), overloaded(), rules()))
	if p.Status != Paused || p.Tries != 3 || p.Width != 0 || !p.Since.Equal(at(0).Time) {
		t.Fatalf("a ramp that fails: %+v", p)
	}
}

func TestClockSetBack(t *testing.T) {
	t.Parallel()
	p := &Pause{Scope: Rig}
	must(t, p.Fail(try("gt-1", 7200), overloaded(), rules()))
	for now, due := range map[int]bool{0: true, 7199: true, 7200: false, 7204: false, 7205: true} {
		if got := !p.Waits(at(now)); got != due || got != (p.Room(at(now)) == 1) {
			t.Errorf("at %d: due %t, room %d", now, got, p.Room(at(now)))
		}
	}
	// What was out already and failed after the clock was set back changes nothing.
	must(t, p.Fail(try("gt-2", 1), overloaded(), rules()))
	if p.Waits(at(2)) {
		t.Errorf("waits two hours: %+v", p)
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	f := fault.New(fault.UsageLimit, "used up")
	for until, want := range map[int]int{0: 5, 2: 5, 60: 60, 7200: 3600} { // what is too near, or beyond belief
		f.Until = at(until)
		p := &Pause{Scope: Rig}
		must(t, p.Fail(try("gt-1", 0), f, rules()))
		if !p.Until.Equal(at(want).Time) {
			t.Errorf("a reset in %d s: next try at %s, want %s", until, p.Until, at(want))
		}
	}
	p := &Pause{Scope: Rig}
	must(t, p.Fail(try("gt-1", 0), overloaded(), rules()))
	f.Until = at(90)
	must(t, p.Fail(try("gt-2", 1), f, rules())) // one that was out knows more
	if !p.Until.Equal(at(90).Time) {
		t.Errorf("next try at %s", p.Until)
	}
}

func TestSuspicion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		second Try
		fault  fault.Fault
		want   Status
	}{
		"another bead, alike":     {try("gt-2", 1), unknown("exit code 1"), Paused},
		"another bead, otherwise": {try("gt-2", 1), unknown("exit code 2"), Suspected},
		"the same bead":           {Try{At: at(1), BeadID: "gt-1", Assignment: "as-2"}, unknown("exit code 1"), Suspected},
		"a cause that is known":   {try("gt-2", 1), overloaded(), Paused},
	} {
		p := &Pause{Scope: Client("x")}
		must(t, p.Fail(try("gt-1", 0), unknown("exit code 1"), rules()))
		if p.Status != Suspected || p.Holds("gt-2") {
			t.Fatalf("%s: %+v", name, p)
		}
		must(t, p.Fail(c.second, c.fault, rules()))
		if p.Status != c.want {
			t.Errorf("%s: %s, want %s", name, p.Status, c.want)
		}
	}
	p := &Pause{Scope: Client("x")}
	must(t, p.Fail(try("gt-1", 0), unknown("exit code 1"), rules()))
	must(t, p.Succeed("gt-2", at(1), rules()))
	must(t, p.Fail(try("gt-3", 2), unknown("exit code 1"), rules()))
	if p.Status != Suspected || len(p.Tried) != 1 {
		t.Errorf("two that are not in a row: %+v", p)
	}
}

func TestWaitingAndAdmitted(t *testing.T) {
	t.Parallel()
	p := &Pause{Scope: Rig}
	unchanged(t, p.Wait("gt-1", at(0))) // nothing holds it
	if err := p.Admit(nil, at(0)); !errors.Is(err, state.ErrConflict) {
		t.Errorf("%v", err)
	}
	if err := p.Resume(at(0)); !errors.Is(err, state.ErrConflict) {
		t.Errorf("%v", err)
	}
	must(t, p.Fail(try("gt-1", 0), overloaded(), rules()))
	must(t, p.Wait("gt-1", at(1)))
	unchanged(t, p.Wait("gt-1", at(1)))
	must(t, p.Admit([]state.BeadID{"gt-1"}, at(5)))
	unchanged(t, p.Admit([]state.BeadID{"gt-1"}, at(5)))
	unchanged(t, p.Wait("gt-1", at(6)))
	if len(p.Waiting) != 0 || p.Holds("gt-1") {
		t.Errorf("%+v", p)
	}
}

// An attempt proves that there was what it needed before the fault.
func TestNote(t *testing.T) {
	t.Parallel()
	client := Client("/opt/bin/Claude Code")
	for name, c := range map[string]struct {
		fault fault.Fault
		want  []Scope
	}{
		"done":      {fault.Fault{}, nil},
		"the work":  {fault.New(fault.ContextTooLong, "r"), nil},
		"client":    {fault.New(fault.WrongKey, "r"), []Scope{"client:claude-code"}},
		"worktree":  {fault.New(fault.WorktreeFailed, "r"), []Scope{Worktree}},
		"the rig's": {fault.New(fault.TargetGone, "r"), []Scope{Rig}},
	} {
		var failed []Scope
		e := Ended{Try: try("gt-1", 0), Fault: c.fault, Client: client}
		must(t, e.Note(rules(), func(s Scope, transition func(p *Pause) error) error {
			p := &Pause{Scope: s}
			if transition(p) == nil && p.Status == Paused {
				failed = append(failed, s)
			}
			return nil
		}))
		if !slices.Equal(failed, c.want) {
			t.Errorf("%s: %v, want %v", name, failed, c.want)
		}
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	tree, err := state.Create(filepath.Join(t.TempDir(), ".chipset"))
	must(t, err)
	log := event.NewLog(tree, func() time.Time { return at(0).Time })
	s := NewStore(tree, log)
	end := Ended{Try: try("gt-1", 0), Client: Client("claude")}
	note := func(begins bool) {
		t.Helper()
		began, err := s.Note(t.Context(), end, rules())
		if must(t, err); (began != nil) != begins {
			t.Errorf("began %v", began)
		}
	}
	note(false)
	if all, _, err := s.All(); err != nil || len(all) != 0 {
		t.Fatalf("a success left %v, %v", all, err)
	}
	end.Fault = overloaded()
	note(true)
	note(false)
	all, err := s.InForce()
	if err != nil || len(all) != 1 || all[0].Tries != 1 || !strings.Contains(all[0].String(), "client:claude has been paused") {
		t.Fatalf("%+v, %v", all, err)
	}
	must(t, s.Change(t.Context(), Client("claude"), func(p *Pause) error { return p.Resume(at(9)) }))
	told, _, _, err := log.Read(event.Position{}, time.Time{})
	must(t, err)
	var types []string
	for _, e := range told {
		types = append(types, e.Type+" "+e.Subject)
	}
	if want := []string{"scope.paused client:claude", "scope.resumed client:claude"}; !slices.Equal(types, want) {
		t.Errorf("told %v, want %v", types, want)
	}
	for name, spoil := range map[string]func(p *Pause){
		"scope":  func(p *Pause) { p.Scope = Rig },
		"status": func(p *Pause) { p.Status = "asleep" },
		"width":  func(p *Pause) { p.Status = Paused },
		"tries":  func(p *Pause) { p.Tries = 0 },
		"tried":  func(p *Pause) { p.Tried = make([]Try, MaxTried+1) },
		"class":  func(p *Pause) { p.Class, p.Kind = fault.Work, fault.ContextTooLong },
		"kind":   func(p *Pause) { p.Kind = "../x" },
	} {
		bad, err := s.Get("client.claude")
		must(t, err)
		if spoil(&bad); s.Put("client.claude", bad) == nil {
			t.Errorf("%s: was written", name)
		}
	}
}

func TestMovesOfHistory(t *testing.T) {
	t.Parallel()
	p := &Pause{Scope: Rig}
	must(t, p.Fail(try("gt-1", 0), overloaded(), rules()))
	less, other := *p, *p
	less.Tries, other.Scope = 0, Worktree
	if CheckChange(nil, p) != nil || CheckChange(p, p) != nil || CheckChange(p, &less) == nil || CheckChange(p, &other) == nil {
		t.Error("a legal move is refused, or an illegal one is not")
	}
}

// TestNeedsPerson: only a fault of the environment that probes have met again, the last of them lately.
func TestNeedsPerson(t *testing.T) {
	began := state.At(time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC))
	at := func(d time.Duration) []Try { return []Try{{At: state.At(began.Add(d))}} }
	for name, c := range map[string]struct {
		p    Pause
		want bool
	}{
		"met again":          {Pause{Status: Paused, Class: fault.Environment, Tries: patience, Tried: at(0)}, true},
		"met too few times":  {Pause{Status: Paused, Class: fault.Environment, Tries: patience - 1, Tried: at(0)}, false},
		"not tried since":    {Pause{Status: Paused, Class: fault.Environment, Tries: patience, Tried: at(-1)}, false},
		"never tried":        {Pause{Status: Paused, Class: fault.Environment, Tries: patience}, false},
		"the account's":      {Pause{Status: Paused, Class: fault.Environment, Kind: fault.WrongKey, Tries: 1, Tried: at(0)}, true},
		"a service's":        {Pause{Status: Paused, Class: fault.Capacity, Tries: patience, Tried: at(0)}, false},
		"going on meanwhile": {Pause{Status: Ramping, Class: fault.Environment, Tries: patience, Tried: at(0)}, false},
	} {
		if got := c.p.NeedsPerson(began); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestFoundByACheck: nothing probes what a check has found; the person is waited for at once, and whoever resumes goes on.
func TestFoundByACheck(t *testing.T) {
	p := Pause{Scope: Client("claude"), Status: Over, Waiting: []state.BeadID{"b-1"}}
	p.Find("client", "claude auth login", fault.New(fault.NotLoggedIn, "not logged in"), at(0))
	if p.Room(at(1_000_000)) != 0 || !p.Holds("b-1") || !p.NeedsPerson(at(5)) || len(p.Waiting) != 1 {
		t.Errorf("%+v", p)
	}
	if check(p.Scope.File(), &p) != nil {
		t.Error(check(p.Scope.File(), &p))
	}
	p.Find("client", "claude auth login", fault.New(fault.NotLoggedIn, "not logged in"), at(60))
	if !p.Since.Equal(at(0).Time) {
		t.Errorf("the same pause began anew: %s", p.Since)
	}
	must(t, p.Resume(at(70)))
	if p.Room(at(70)) != 1 || p.Check != "" || p.NeedsPerson(at(5)) {
		t.Errorf("%+v", p)
	}
	p.Admitted = []state.BeadID{"b-1"}
	must(t, p.Fail(try("b-1", 80), fault.New(fault.NotLoggedIn, "not logged in"), rules()))
	if p.Room(p.Until) != 1 {
		t.Errorf("a fault that ended an attempt is probed: %+v", p)
	}
}

// TestBudget: nothing of a scope begins while its budget is used up, no probe is made, and a person who resumes it grants
// what was used by then.
func TestBudget(t *testing.T) {
	at := state.At(time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC))
	p := Pause{Scope: Day}
	if began, err := p.Exceed(Used{Attempts: 3}, "used up", []state.BeadID{"gt-1"}, state.At(at.Add(time.Hour)), at); !began || err != nil {
		t.Fatal(began, err)
	}
	if later := state.At(at.Add(2 * time.Hour)); p.Room(later) != 0 || p.Holds("gt-1") || !p.Holds("gt-2") || !p.NeedsPerson(at) || check("day", &p) != nil {
		t.Errorf("used up: %+v", p)
	}
	later := state.At(at.Add(time.Minute))
	if began, err := p.Exceed(Used{Attempts: 4}, "a last turn", []state.BeadID{"gt-3"}, at, later); began || err != nil || p.Used.Attempts != 4 || p.Holds("gt-1") || p.Reason != "used up" || p.UpdatedAt != later {
		t.Errorf("a last turn: %v, %+v, %v", began, p, err)
	}
	if began, err := p.Exceed(Used{Attempts: 4}, "used up", []state.BeadID{"gt-3"}, at, at); began || !errors.Is(err, state.ErrUnchanged) {
		t.Errorf("again: %v, %v", began, err)
	}
	if began, err := p.Exceed(Used{Attempts: 4, Tokens: 9}, "used up", nil, at, at); !began || err != nil || !p.Holds("gt-1") {
		t.Errorf("what was let go on is to end: %+v, %v", p, err)
	}
	if err := p.Resume(at); err != nil || p.InForce() || p.Granted == nil || p.Granted.Attempts != 4 || check("day", &p) != nil {
		t.Errorf("resumed: %+v, %v", p, err)
	}
	if _, err := p.Exceed(Used{Attempts: 8}, "used up", nil, at, at); err != nil || p.Granted.Attempts != 4 || p.Used.Attempts != 8 {
		t.Errorf("used up again: %+v, %v", p, err)
	}
	if err := p.Lift(at); err != nil || p.InForce() || p.Granted.Attempts != 4 {
		t.Errorf("lifted: %+v, %v", p, err)
	}
	b := bead.Bead{ID: "gt-1", ConvoyID: "cv-1"}
	for _, scope := range []Scope{Day, Bead("gt-1"), Convoy("cv-1"), Rig, Client("x")} {
		held := []Pause{{Scope: scope, Status: Paused}}
		if Holding(held, Client("x"), &b) == nil {
			t.Errorf("%s does not hold it", scope)
		}
		if other := (bead.Bead{ID: "gt-2", ConvoyID: "cv-2"}); (Holding(held, Client("y"), &other) != nil) != (scope == Day || scope == Rig) {
			t.Errorf("%s and another bead", scope)
		}
	}
}
