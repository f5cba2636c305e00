package chipsettest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/statetest"
)

// checkTime bounds the search for an order; histories here need a thousandth of it.
const checkTime = 5 * time.Minute

// recorder collects what many processes tried.
type recorder struct {
	w     *chipsettest.World
	began time.Time

	mu      sync.Mutex
	history []porcupine.Operation
	// present is the assignment last seen on each hook.
	present map[string]string
	kills   int
	strange []string
}

func newRecorder(w *chipsettest.World) *recorder {
	return &recorder{w: w, began: time.Now(), present: map[string]string{}}
}

// try runs one process to its end, or kills it after a while, and records the step.
func (r *recorder) try(client int, s chipsettest.Step, lifetime time.Duration, tell func(out []byte) (chipsettest.Seen, error), env []string, args ...string) {
	cmd := r.w.Command(r.w.Bin, args...)
	cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	call := time.Since(r.began)
	err := cmd.Start()
	if err == nil {
		if lifetime > 0 {
			timer := time.AfterFunc(lifetime, func() { cmd.Process.Kill() })
			defer timer.Stop()
		}
		err = cmd.Wait()
	}
	end := time.Since(r.began)
	seen := chipsettest.Seen{Verdict: chipsettest.Unknown}
	var exit *exec.ExitError
	switch {
	case err == nil:
		seen, err = tell(stdout.Bytes())
	case errors.As(err, &exit) && exit.ExitCode() == 4:
		seen.Verdict, err = chipsettest.Refused, nil
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled():
		err = nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.strange = append(r.strange, fmt.Sprintf("%v: %v\n%s", args, err, stderr.Bytes()))
	}
	if seen.Verdict == chipsettest.Unknown {
		r.kills++
	}
	if seen.Assignment != "" {
		r.present[s.Object] = seen.Assignment
	}
	r.history = append(r.history, chipsettest.Tried(client, s, call, seen, end))
}

func (r *recorder) guess(object string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.present[object]
}

// lifetime is how long a process may run before it is killed: mostly forever.
func lifetime(rnd *rand.Rand) time.Duration {
	if rnd.IntN(5) > 0 {
		return 0
	}
	return time.Duration(1+rnd.IntN(40)) * time.Millisecond
}

func tellHook(out []byte) (chipsettest.Seen, error) {
	var h hook.Hook
	err := json.Unmarshal(out, &h)
	seen := chipsettest.Seen{Verdict: chipsettest.Did, Gen: h.Gen, Status: string(h.Status), Assignment: string(h.Assignment())}
	if h.WorkItem != nil {
		seen.Session = string(h.WorkItem.Session)
	}
	return seen, err
}

// hookStep tries one random step on one hook. The agent's own steps name an
// assignment: the one seen last, or sometimes an older one.
func (r *recorder) hookStep(client int, rnd *rand.Rand, agents []string, beadID string) {
	agent := agents[rnd.IntN(len(agents))]
	s := chipsettest.Step{Object: agent, Verb: []string{"set", "activate", "activate", "touch", "complete", "clear", "show"}[rnd.IntN(7)]}
	args := []string{"hook", s.Verb}
	var env []string
	switch s.Verb {
	case "set":
		args = append(args, agent, beadID)
	case "show":
		args = append(args, agent)
	case "clear":
		args = append(args, agent)
		if a := r.guess(agent); a != "" && rnd.IntN(2) == 0 {
			s.Assignment = a
			args = append(args, "--assignment", a)
		}
	default:
		if s.Assignment = r.guess(agent); s.Assignment == "" || rnd.IntN(10) == 0 {
			s.Assignment = "as-unknown"
		}
		env = []string{"CHIPSET_ASSIGNMENT=" + s.Assignment}
		args = append(args, "--as", agent)
	}
	r.try(client, s, lifetime(rnd), tellHook, env, append(args, "--json")...)
}

func (r *recorder) beadStep(client int, rnd *rand.Rand, beads []string) {
	id := beads[rnd.IntN(len(beads))]
	s := chipsettest.Step{Object: id, Verb: []string{"cancel", "reopen", "edit", "show", "show"}[rnd.IntN(5)]}
	args := []string{"work", s.Verb, id}
	tell := func([]byte) (chipsettest.Seen, error) { return chipsettest.Seen{Verdict: chipsettest.Did}, nil }
	switch s.Verb {
	case "show":
		args = append(args, "--json")
		tell = func(out []byte) (chipsettest.Seen, error) {
			var b bead.Bead
			err := json.Unmarshal(out, &b)
			return chipsettest.Seen{Verdict: chipsettest.Did, Gen: b.Gen, Status: string(b.Status)}, err
		}
	case "edit":
		args = append(args, "-p", fmt.Sprintf("P%d", 1+rnd.IntN(3)))
	}
	r.try(client, s, lifetime(rnd), tell, nil, args...)
}

// run lets many clients try steps at the same time, each a process of its own.
func (r *recorder) run(t *testing.T, rnd *rand.Rand, clients, steps int, step func(client int, rnd *rand.Rand)) {
	t.Helper()
	var all sync.WaitGroup
	for c := range clients {
		mine := rand.New(rand.NewPCG(rnd.Uint64(), 0))
		all.Go(func() {
			for range steps {
				step(c, mine)
			}
		})
	}
	all.Wait()
	if len(r.strange) > 0 {
		t.Errorf("ended otherwise than done, refused or killed: %s", r.strange)
	}
}

func check(t *testing.T, model porcupine.Model, history []porcupine.Operation) {
	t.Helper()
	result, info := porcupine.CheckOperationsVerbose(model, history, checkTime)
	if result == porcupine.Ok {
		return
	}
	page := filepath.Join(t.ArtifactDir(), "history.html")
	t.Errorf("not linearizable (%s); go test -artifacts keeps %s: %v", result, page, porcupine.VisualizePath(model, info, page))
	for _, op := range history {
		t.Logf("%d %d–%d %s", op.ClientId, op.Call, op.Return, model.DescribeOperation(op.Input, op.Output))
	}
}

// TestHooksAreLinearizable: whatever order many processes come in, some of them killed on
// the way, what each was told fits one order of legal transitions.
func TestHooksAreLinearizable(t *testing.T) {
	if testing.Short() {
		t.Skip("starts hundreds of processes")
	}
	rnd := seed(t)
	w := chipsettest.New(t, chipsettest.Build(t), chipsettest.Options{Polecats: 3, Test: "true"})
	id := w.Chipset("work", "add", "Thing")
	agents := []string{"polecat-alpha", "polecat-bravo", "polecat-charlie"}
	r := newRecorder(w)
	r.run(t, rnd, 6, statetest.Number(t, "CHIPSET_LINEAR", 30), func(c int, rnd *rand.Rand) { r.hookStep(c, rnd, agents, id) })
	for _, a := range agents {
		r.try(6, chipsettest.Step{Object: a, Verb: "show"}, 0, tellHook, nil, "hook", "show", a, "--json")
	}
	check(t, chipsettest.HookModel(chipsettest.Told(r.history)), r.history)
	did := map[chipsettest.Verdict]int{}
	for _, op := range r.history {
		did[op.Output.(chipsettest.Seen).Verdict]++
	}
	statetest.Figures(t, "%d steps on %d hooks: %v", len(r.history), len(agents), did)
	checkForgeries(t, r.history)
}

// checkForgeries: one forged answer in a true history is no order any more. It takes the
// beginning of one hook's history, because to refuse is to try every order.
func checkForgeries(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	const long = 24
	var begin []porcupine.Operation
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	for _, op := range history {
		if op.Input.(chipsettest.Step).Object == "polecat-alpha" && len(begin) < long {
			begin = append(begin, op)
		}
	}
	model := chipsettest.HookModel(chipsettest.Told(history))
	if !porcupine.CheckOperations(model, begin) {
		t.Log("nothing forged: an answer at the beginning tells of a later step")
		return
	}
	forged, killed := 0, int64(0)
	for _, op := range begin {
		if op.Output.(chipsettest.Seen).Verdict == chipsettest.Unknown {
			killed++
		}
	}
	for i, op := range begin {
		seen := op.Output.(chipsettest.Seen)
		if seen.Verdict != chipsettest.Did {
			continue
		}
		seen.Gen += 1 + killed // one more than the killed steps could explain
		copied := slices.Clone(begin)
		copied[i].Output = seen
		if porcupine.CheckOperations(model, copied) {
			t.Errorf("%v with gen %d instead of %d passes for linearizable", op.Input, seen.Gen, seen.Gen-1-killed)
		}
		forged++
	}
	statetest.Figures(t, "%d forged histories refused", forged)
}

func TestBeadsAreLinearizable(t *testing.T) {
	if testing.Short() {
		t.Skip("starts hundreds of processes")
	}
	rnd := seed(t)
	w := chipsettest.New(t, chipsettest.Build(t), chipsettest.Options{Polecats: 1, Test: "true"})
	beads := []string{w.Chipset("work", "add", "One"), w.Chipset("work", "add", "Two")}
	r := newRecorder(w)
	r.run(t, rnd, 6, statetest.Number(t, "CHIPSET_LINEAR", 30)/2, func(c int, rnd *rand.Rand) { r.beadStep(c, rnd, beads) })
	check(t, chipsettest.BeadModel(), r.history)
	statetest.Figures(t, "%d steps on %d beads, %d killed", len(r.history), len(beads), r.kills)
}

// TestModelRefuses holds histories that no order explains against the models.
func TestModelRefuses(t *testing.T) {
	at := func(n int) time.Duration { return time.Duration(n) * time.Second }
	type told struct {
		verb, assignment string
		seen             chipsettest.Seen
	}
	did := func(gen int64, status, assignment, session string) chipsettest.Seen {
		return chipsettest.Seen{Verdict: chipsettest.Did, Gen: gen, Status: status, Assignment: assignment, Session: session}
	}
	refused, killed := chipsettest.Seen{Verdict: chipsettest.Refused}, chipsettest.Seen{Verdict: chipsettest.Unknown}
	set := told{"set", "", did(1, "pending", "as-1", "")}
	for _, c := range []struct {
		name  string
		steps []told
		legal bool
	}{
		{"a whole round", []told{set, {"activate", "as-1", did(2, "active", "as-1", "s")}, {"touch", "as-1", did(3, "active", "as-1", "s")},
			{"complete", "as-1", did(4, "completed", "as-1", "s")}, {"clear", "", did(5, "empty", "", "")}}, true},
		{"two set it", []told{set, {"set", "", did(1, "pending", "as-2", "")}}, false},
		{"set over what is pending", []told{set, {"set", "", did(2, "pending", "as-2", "")}}, false},
		{"refused without a reason", []told{{"set", "", refused}}, false},
		{"refused with a reason", []told{set, {"set", "", refused}}, true},
		{"a lost update", []told{set, {"show", "", did(0, "empty", "", "")}}, false},
		{"stale completion", []told{set, {"activate", "as-1", did(2, "active", "as-1", "s")}, {"complete", "as-0", did(3, "completed", "as-1", "s")}}, false},
		{"completion without work", []told{set, {"complete", "as-1", did(2, "completed", "as-1", "")}}, false},
		{"gen jumps", []told{set, {"activate", "as-1", did(3, "active", "as-1", "s")}}, false},
		{"killed, and it happened", []told{{"set", "", killed}, {"show", "", did(1, "pending", "as-9", "")}, {"activate", "as-9", did(2, "active", "as-9", "s")}}, true},
		{"killed, and it did not", []told{{"set", "", killed}, {"show", "", did(0, "empty", "", "")}, {"set", "", did(1, "pending", "as-1", "")}}, true},
		{"killed, and it happened twice", []told{{"set", "", killed}, {"clear", "", did(2, "empty", "", "")}, {"show", "", did(3, "pending", "as-9", "")}}, false},
		{"killed, and read back and forth", []told{{"set", "", killed}, {"show", "", did(1, "pending", "as-9", "")}, {"show", "", did(0, "empty", "", "")}}, false},
	} {
		var history []porcupine.Operation
		for i, s := range c.steps {
			history = append(history, chipsettest.Tried(i, chipsettest.Step{Object: "a", Verb: s.verb, Assignment: s.assignment}, at(2*i), s.seen, at(2*i+1)))
		}
		if got := porcupine.CheckOperations(chipsettest.HookModel(chipsettest.Told(history)), history); got != c.legal {
			t.Errorf("%s: linearizable %v", c.name, got)
		}
	}
}
