package carry

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
)

const (
	envDir  = "PIPELINE_TEST_DIR"
	envBead = "PIPELINE_TEST_BEAD"
	envTo   = "PIPELINE_TEST_TO"
	envKill = "PIPELINE_TEST_KILL"
)

// TestSlingChild is the process that slings for the tests below.
func TestSlingChild(t *testing.T) {
	if os.Getenv(envDir) == "" {
		t.Skip("it is started by other tests")
	}
	r, err := rig.Open(t.Context(), os.Getenv(envDir), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	last, _ := strconv.Atoi(os.Getenv(envKill))
	seen := 0
	s := &carrier{Rig: r, step: func(string) error {
		if seen++; seen == last {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}}
	_, err = s.sling(t.Context(), state.BeadID(os.Getenv(envBead)), state.AgentID(os.Getenv(envTo)), "mayor")
	var slung *AlreadySlung
	if err != nil && !errors.As(err, &slung) && !errors.Is(err, state.ErrConflict) {
		t.Fatal(err)
	}
	fmt.Println("outcome:", err)
}

func (y *yard) child(id state.BeadID, to state.AgentID, kill int) *exec.Cmd {
	cmd := exec.CommandContext(y.Context(), os.Args[0], "-test.run=^TestSlingChild$", "-test.v")
	cmd.Env = append(os.Environ(), envDir+"="+y.Dir, envBead+"="+string(id), envTo+"="+string(to), envKill+"="+strconv.Itoa(kill))
	return cmd
}

// A process that is killed after any of its effects holds no lock, and what it
// left is healed by another.
func TestSlingSurvivesKill(t *testing.T) {
	y := newYard(t, "")
	for n := 1; n <= 6; n++ {
		id := y.add()
		out, err := y.child(id, alpha, n).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("effect %d: %v, want a killed child\n%s", n, err, out)
		}
		_, err = HealDispatches(t.Context(), y.Rig)
		y.must(err)
		if got, want := y.whole(id, alpha), n > 1; got != want {
			t.Fatalf("killed after effect %d: slung is %v", n, got)
		}
		if y.hook(alpha).Status == hook.Pending {
			_, err = Unsling(t.Context(), y.Rig, id, "human")
			y.must(err)
		}
	}
}

// race starts children together and returns what they say in the end.
func (y *yard) race(children ...*exec.Cmd) []string {
	y.Helper()
	outs := make([]bytes.Buffer, len(children))
	var all sync.WaitGroup
	for i, c := range children {
		c.Stdout = &outs[i]
		y.must(c.Start())
		all.Go(func() {
			if err := c.Wait(); err != nil {
				y.Errorf("child %d: %v\n%s", i, err, outs[i].String())
			}
		})
	}
	all.Wait()
	said := make([]string, len(children))
	for i := range outs {
		_, after, _ := strings.Cut(outs[i].String(), "outcome: ")
		said[i], _, _ = strings.Cut(after, "\n")
	}
	return said
}

func winners(said []string) int {
	n := 0
	for _, s := range said {
		if s == "<nil>" {
			n++
		}
	}
	return n
}

func TestProcessesSlingTheSameBead(t *testing.T) {
	y := newYard(t, "")
	id := y.add()
	said := y.race(y.child(id, alpha, 0), y.child(id, bravo, 0), y.child(id, alpha, 0))
	if winners(said) != 1 {
		t.Fatalf("not one winner: %q", said)
	}
	to, other := alpha, bravo
	if y.bead(id).Assignee == bravo {
		to, other = bravo, alpha
	}
	if !y.whole(id, to) || y.hook(other).Status != hook.Empty || len(y.letters(other, id)) != 0 {
		t.Errorf("the loser left something: %+v", y.hook(other))
	}
}

func TestProcessesSlingOntoTheSamePolecat(t *testing.T) {
	y := newYard(t, "")
	ids := []state.BeadID{y.add(), y.add(), y.add()}
	said := y.race(y.child(ids[0], alpha, 0), y.child(ids[1], alpha, 0), y.child(ids[2], alpha, 0))
	if winners(said) != 1 {
		t.Fatalf("not one winner: %q", said)
	}
	slung := 0
	for _, id := range ids {
		if y.whole(id, alpha) {
			slung++
		}
	}
	if slung != 1 {
		t.Errorf("%d beads on one hook", slung)
	}
}

// The same inside one process, where many more interleavings are met: all beads
// that were taken are whole, and no hook holds two.
func TestSlingsAtOnce(t *testing.T) {
	y := newYard(t, "")
	var ids []state.BeadID
	for range 6 {
		ids = append(ids, y.add())
	}
	var all sync.WaitGroup
	for i := range 12 {
		r := y.another()
		all.Go(func() {
			_, err := Sling(t.Context(), r, ids[i%len(ids)], []state.AgentID{alpha, bravo}[i/len(ids)], "mayor")
			var slung *AlreadySlung
			if err != nil && !errors.As(err, &slung) && !errors.Is(err, state.ErrConflict) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	slung := 0
	for _, id := range ids {
		if to := y.bead(id).Assignee; to != "" && y.whole(id, to) {
			slung++
		}
	}
	if slung != 2 {
		t.Errorf("%d beads on two hooks", slung)
	}
}
