package chipsettest_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/state/statetest"
)

const soakDefinition = `rig: {name: soak, bead_prefix: sk, tick: 300ms, patrol: 300ms}
agents:
  agents:
    - {name: mayor, role: mayor}
    - {name: witness, role: witness}
    - {name: refinery, role: refinery}
    - {name: polecat-pool, role: polecat, count: 3}
worker: {default: sh, grace: 1s}
merge: {target: main, test: "sh test.sh"}
mail: {retention: 48h}
audit: {every: 1s}
gupp: {limits: {restart_cooldown: 0s, max_restarts_per_bead: 100, max_attempts_per_bead: 100, max_conflicts_per_bead: 100}}
sandbox: off
`

// soak is one rig under attack.
type soak struct {
	*chipsettest.World
	t   *testing.T
	rnd *rand.Rand
	// clock and green lie off the disk that is filled.
	clock, green string
	disk         string // "" where none can be filled

	running []*chipsettest.Process
	// beads and mail are what was acknowledged; mail has each message's body.
	beads   []string
	mail    map[string]string
	figures map[string]int
}

// TestSoak lets beads flow while processes are killed, stopped and continued, clocks
// jump by hours, and the disk fills and empties. In the end everything is held from
// the outside, over files and git, against what must be true.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("attacks a rig for seconds, or as long as CHIPSET_SOAK says")
	}
	length := 8 * time.Second
	if text := os.Getenv("CHIPSET_SOAK"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOFLAGS", strings.TrimSpace(os.Getenv("GOFLAGS")+" -tags=skewed_clock"))
	bin, rnd, figures := chipsettest.Build(t), seed(t), map[string]int{}
	for n := 1; length > 0; n++ {
		round := min(length, soakRound)
		length -= round
		// A rig of its own for each, whose disk is small and whose history is checked as a whole.
		t.Run(fmt.Sprintf("round %d", n), func(t *testing.T) {
			s := newSoak(t, bin, rnd)
			s.run(round)
			for what, count := range s.figures {
				figures[what] += count
			}
		})
	}
	statetest.Figures(t, "soak: %v", figures)
}

// soakRound is how long one rig is under attack at most.
const soakRound = 45 * time.Second

func (s *soak) run(length time.Duration) {
	s.t.Helper()
	began := time.Now()
	for next := time.Duration(0); time.Since(began) < length; {
		if time.Since(began) >= next {
			s.addBead()
			next += 700 * time.Millisecond
		}
		s.attack()
		// What is random here is when the next attack comes; nothing is waited for.
		time.Sleep(time.Duration(s.rnd.IntN(250)) * time.Millisecond)
	}
	s.calm()
	calm := time.Now()
	s.finish()
	s.t.Logf("%s of attacks: %v, then %s until idle", length, s.figures, time.Since(calm).Round(time.Second))
	for _, wrong := range s.wrong() {
		s.t.Error(wrong)
	}
	checkLanded(s.t, s.World, s.beads)
}

func newSoak(t *testing.T, bin string, rnd *rand.Rand) *soak {
	t.Helper()
	outside := t.TempDir()
	s := &soak{t: t, rnd: rnd, clock: filepath.Join(outside, "clock"), green: filepath.Join(outside, "green"),
		mail: map[string]string{}, figures: map[string]int{}}
	t.Setenv("SKEWED_CLOCK", s.clock)
	opts := chipsettest.Options{Definition: soakDefinition}
	if s.disk = smallDisk(t); s.disk != "" {
		opts.Dir = filepath.Join(s.disk, "my repo")
	}
	s.World = chipsettest.New(t, bin, opts)
	t.Cleanup(s.calm)
	// The test command leaves its own word for every tree that it was green for.
	s.Write("test.sh", "set -e\nfor f in marks/*; do [ ! -f \"$f\" ] || [ \"$(cat $f)\" = ran ]; done\n"+
		"git diff --quiet HEAD\ngit rev-parse 'HEAD^{tree}' >> '"+s.green+"'\n")
	s.Git("add", "test.sh")
	s.Git("commit", "-q", "-m", "test")
	return s
}

// count counts what happened, for the figures.
func (s *soak) count(what string) { s.figures[what]++ }

// addBead adds a bead that leaves its mark once. It counts as acknowledged when its ID was printed.
func (s *soak) addBead() {
	args := []string{"work", "add", "mark", "-d", markScript(s.rnd)}
	if n := len(s.beads); n > 0 && s.rnd.IntN(4) == 0 {
		args = append(args, "--blocked-by", s.beads[s.rnd.IntN(n)])
	}
	if out, code := s.Try(args...); code == 0 {
		s.beads = append(s.beads, strings.TrimSpace(out))
		s.count("beads")
	} else {
		s.count("beads refused")
	}
}

func (s *soak) attack() {
	switch s.rnd.IntN(12) {
	case 0, 1, 2:
		s.start()
	case 3, 4, 5:
		s.kill()
	case 6, 7:
		s.stop()
	case 8:
		s.jump()
	case 9:
		s.fill()
	default:
		s.send()
	}
}

func (s *soak) start() {
	s.reap()
	if len(s.running) > 5 {
		return
	}
	commands := append(roleCommands(), []string{"up"}, []string{"up"})
	s.running = append(s.running, s.Start(commands[s.rnd.IntN(len(commands))]...))
	s.count("starts")
}

// reap forgets the processes that have ended: a second one for the same agent does at once.
func (s *soak) reap() {
	alive := s.running[:0]
	for _, p := range s.running {
		if p.Running() {
			alive = append(alive, p)
		}
	}
	s.running = alive
}

func (s *soak) victim() *chipsettest.Process {
	s.reap()
	if len(s.running) == 0 {
		return nil
	}
	return s.running[s.rnd.IntN(len(s.running))]
}

func (s *soak) kill() {
	p := s.victim()
	if p == nil {
		return
	}
	if s.rnd.IntN(2) == 0 {
		p.Kill()
	} else {
		p.KillGroup()
	}
	s.count("kills")
}

// stop halts a process, or all of its group, in the middle of whatever it does, for a while.
func (s *soak) stop() {
	p := s.victim()
	if p == nil {
		return
	}
	pid := p.Cmd.Process.Pid
	if s.rnd.IntN(2) == 0 {
		pid = -pid
	}
	if syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return // it ended meanwhile
	}
	s.count("stops")
	if s.rnd.IntN(3) == 0 {
		s.jump() // as a machine that sleeps
	}
	time.Sleep(time.Duration(s.rnd.IntN(600)) * time.Millisecond)
	_ = syscall.Kill(pid, syscall.SIGCONT)
}

// jump sets the clock forwards or back by up to six hours.
func (s *soak) jump() {
	skew := time.Duration(s.rnd.IntN(12*3600)-6*3600) * time.Second
	temp := s.clock + ".new"
	if err := os.WriteFile(temp, []byte(skew.String()), 0o644); err != nil {
		s.t.Error(err)
	}
	if err := os.Rename(temp, s.clock); err != nil {
		s.t.Error(err)
	}
	s.count("clock jumps")
}

// fill takes all the room that the disk has, for a while.
func (s *soak) fill() {
	if s.disk == "" {
		return
	}
	filler := filepath.Join(s.disk, "filler")
	f, err := os.Create(filler)
	if err != nil {
		return
	}
	if _, err := io.Copy(f, zeros{}); !errors.Is(err, syscall.ENOSPC) {
		s.t.Errorf("filling the disk: %v", err)
	}
	f.Close()
	s.count("disk full")
	if s.rnd.IntN(2) == 0 {
		s.send()
		s.addBead()
	}
	time.Sleep(time.Duration(s.rnd.IntN(700)) * time.Millisecond)
	os.Remove(filler)
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// send mails somebody; a name that was printed is an acknowledgement.
func (s *soak) send() {
	body := fmt.Sprintf("body %d %d", len(s.mail), s.rnd.Uint64())
	to := []string{"human", "mayor", "witness", "refinery", "polecat-alpha", "polecat-bravo"}[s.rnd.IntN(6)]
	if out, code := s.Try("mail", "send", to, "--subject", "soak", "--body", body); code == 0 {
		s.mail[to+"/"+strings.TrimSpace(out)] = body
		s.count("mails")
	} else {
		s.count("mails refused")
	}
}

// calm ends every attack: what is stopped goes on, what runs is killed.
func (s *soak) calm() {
	if s.disk != "" {
		os.Remove(filepath.Join(s.disk, "filler"))
	}
	for _, p := range s.running {
		if p.Running() {
			_ = syscall.Kill(-p.Cmd.Process.Pid, syscall.SIGCONT)
			p.KillGroup()
		}
	}
	s.running = nil
}

// finish lets the rig end its work. A bead that waits for a person is opened again by
// one, as a person does who has read why.
func (s *soak) finish() {
	for range 20 {
		out, code := s.Try("up", "--until-idle", "--timeout", "5m")
		if code == 0 {
			return
		}
		if code != 7 {
			s.t.Fatalf("up --until-idle: exit %d\n%s\n%s", code, out, s.Chipset("status"))
		}
		for _, b := range s.Beads() {
			if b.Status == "blocked" {
				s.t.Logf("%s waits for a person: %s", b.ID, b.CloseReason)
				s.Chipset("work", "reopen", string(b.ID), "--reason", "try again")
				s.count("reopened")
			}
		}
		for _, r := range s.Queue() {
			if r.Status == "conflicted" || r.Waiting != "" {
				s.Try("queue", "retry", string(r.ID))
			}
		}
	}
	s.t.Fatalf("still waits for a person:\n%s", s.Chipset("status"))
}
