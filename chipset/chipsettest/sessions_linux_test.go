package chipsettest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/statetest"
)

// sessionClient prints what Claude Code prints, and works in steps. A session that is resumed goes on behind its last step;
// it keeps a folder outside of its worktree, as clients do.
const sessionClient = `#!/bin/sh
memory=%[1]s
id=; want=
for a in "$@"; do
	case $want in --resume|--session-id) id=$a; kind=$want ;; esac
	want=$a
done
[ "$1" = --version ] && { echo "2.1.329 (Claude Code)"; exit; }
cat > /dev/null
mkdir -p "$memory/$id"
echo "$kind $CHIPSET_BEAD" >> "$memory/$id/runs"
printf '{"type":"system","subtype":"init","session_id":"%%s"}\n' "$id"
n=$(cat "$memory/$id/step" 2>/dev/null || echo 0)
while [ "$n" -lt %[2]d ]; do
	n=$((n + 1))
	printf '{"type":"assistant","message":{"id":"m%%s","content":[{"type":"tool_use","name":"Bash"}],"usage":{"input_tokens":1,"output_tokens":1}}}\n' "$n"
	mkdir -p marks/$CHIPSET_BEAD
	echo $n > marks/$CHIPSET_BEAD/$n
	sleep 0.$((n %% 3 + 1))
	echo $n > "$memory/$id/new" && mv "$memory/$id/new" "$memory/$id/step"
done
git add -A && git commit -q -m "mark $CHIPSET_BEAD" || git diff --quiet HEAD || exit 1
echo '{"type":"result","subtype":"success","is_error":false,"result":"I am through.","total_cost_usd":0.01}'
`

// steps is how many a session takes.
const steps = 6

// TestSessionsGoOn kills rigs, supervisors and clients at random moments, stops the rig in each way that a person has, and replaces
// its binary. In the end every bead has landed whole, in the one session that it began with, and nothing is charged.
func TestSessionsGoOn(t *testing.T) {
	if testing.Short() {
		t.Skip("kills for seconds, or as long as CHIPSET_SOAK says")
	}
	length := 6 * time.Second
	if text := os.Getenv("CHIPSET_SOAK"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	s := newSessions(t)
	for began := time.Now(); time.Since(began) < length; {
		for len(s.open()) < 5 {
			s.beads = append(s.beads, strings.TrimSpace(s.Chipset("work", "add", "mark")))
		}
		if s.up == nil || !s.up.Running() {
			s.up = s.Start("up")
		}
		// What is random here is when the next attack comes; nothing is waited for. Every other one comes while the rig starts.
		time.Sleep(time.Duration(s.rnd.IntN([]int{400, 2000}[s.rnd.IntN(2)])) * time.Millisecond)
		s.attack()
	}
	if s.up.Running() {
		s.up.Kill()
	}
	if out, code := s.Try("up", "--until-idle", "--timeout", "5m"); code != 0 {
		t.Errorf("up --until-idle: exit %d\n%s\n%s", code, out, s.Chipset("status"))
	}
	s.check()
	statetest.Figures(t, "%d beads, %v", len(s.beads), s.figures)
}

type sessions struct {
	*chipsettest.World
	t       *testing.T
	rnd     *rand.Rand
	up      *chipsettest.Process
	memory  string
	beads   []string
	figures map[string]int
	// killed counts for each bead how often its worker was: the third time is charged.
	killed map[string]int
}

func newSessions(t *testing.T) *sessions {
	t.Helper()
	outside := t.TempDir()
	s := &sessions{t: t, rnd: seed(t), memory: filepath.Join(outside, "memory"), figures: map[string]int{}, killed: map[string]int{}}
	client := filepath.Join(outside, "claude")
	if err := os.WriteFile(client, fmt.Appendf(nil, sessionClient, s.memory, steps), 0o755); err != nil {
		t.Fatal(err)
	}
	definition := strings.Replace(killDefinition, "default: sh,", fmt.Sprintf("default: actor, presets: {actor: {command: [%q]}},", client), 1)
	s.World = chipsettest.New(t, s.copyOf(chipsettest.Build(t), filepath.Join(outside, "chipset")), chipsettest.Options{Definition: definition})
	s.Write("test.sh", "for d in marks/*; do [ ! -d $d ] || [ $(cat $d/* | wc -l) = "+strconv.Itoa(steps)+" ]; done\n")
	s.Git("add", "test.sh")
	s.Git("commit", "-q", "-m", "test")
	return s
}

// copyOf puts a copy of a binary in another's place, as an upgrade does.
func (s *sessions) copyOf(bin, place string) string {
	s.t.Helper()
	data, err := os.ReadFile(bin)
	if err == nil {
		err = os.WriteFile(place+".new", data, 0o755)
	}
	if err = errors.Join(err, os.Rename(place+".new", place)); err != nil {
		s.t.Fatal(err)
	}
	return place
}

func (s *sessions) open() (open []bead.Bead) {
	for _, b := range s.Beads() {
		if !b.Status.Finished() {
			open = append(open, b)
		}
	}
	return open
}

func (s *sessions) attack() {
	end := func(signals ...os.Signal) {
		for _, sig := range signals {
			_ = s.up.Cmd.Process.Signal(sig)
			time.Sleep(time.Duration(s.rnd.IntN(100)) * time.Millisecond)
		}
		<-s.up.Done()
	}
	attacks := []struct {
		name string
		do   func()
	}{
		{"kill -9 of the rig", func() { s.up.Kill() }},
		{"kill -9 of the rig and its gits", func() { s.up.KillGroup() }},
		{"TERM", func() { end(syscall.SIGTERM) }},
		{"Ctrl-C once", func() { end(syscall.SIGINT) }},
		{"Ctrl-C twice", func() { end(syscall.SIGINT, syscall.SIGINT) }},
		{"Ctrl-C, then kill -9", func() { _ = s.up.Cmd.Process.Signal(syscall.SIGINT); s.up.Kill() }},
		{"down --now", func() { s.Try("down", "--now"); end(syscall.SIGTERM) }}, // one that has just been started may not be known to down
		{"an upgrade", func() { s.copyOf(chipsettest.Build(s.t), s.Bin); end(syscall.SIGTERM) }},
		{"kill -9 of a client", func() { s.killWorker("pid", unix.SIGKILL) }},
		{"TERM of a client", func() { s.killWorker("pid", unix.SIGTERM) }},
		{"kill -9 of a supervisor", func() { s.killWorker("supervisor_pid", unix.SIGKILL) }},
	}
	a := attacks[s.rnd.IntN(len(attacks))]
	a.do()
	s.figures[a.name]++
}

// killWorker ends one of the workers that run, unless its bead has had two such kills.
func (s *sessions) killWorker(who string, sig unix.Signal) {
	records, _ := filepath.Glob(filepath.Join(s.Dir, ".chipset", "run", "workers", "*.json"))
	s.rnd.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	for _, path := range records {
		data, err := os.ReadFile(path)
		var rec map[string]any
		if err != nil || json.Unmarshal(data, &rec) != nil || rec["done"] == true {
			continue
		}
		pid, _ := rec["pid"].(float64)
		bead := beadOf(int(pid))
		if bead == "" || s.killed[bead] == 2 {
			continue
		}
		s.killed[bead]++
		victim, _ := rec[who].(float64)
		_ = unix.Kill(int(victim), sig)
		s.figures["workers hit"]++
		return
	}
}

// beadOf is the bead that a process works on, "" for none.
func beadOf(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	for entry := range strings.SplitSeq(string(data), "\x00") {
		if id, ok := strings.CutPrefix(entry, "CHIPSET_BEAD="); ok {
			return id
		}
	}
	return ""
}

func (s *sessions) check() {
	t := s.t
	for _, b := range s.Beads() {
		if b.Status != bead.Merged || b.Attempts+b.Restarts != 0 {
			t.Errorf("bead %s is %s: %s, %s\n%s", b.ID, b.Status, b.CloseReason, b.FailureCounts(), s.Chipset("why", string(b.ID)))
		}
		if n := strings.Count(s.Git("log", "--format=%s", "main"), "mark "+string(b.ID)); n != 1 {
			t.Errorf("bead %s stands %d times on main", b.ID, n)
		}
	}
	begun := map[string]int{}
	runs, _ := filepath.Glob(filepath.Join(s.memory, "*", "runs"))
	for _, path := range runs {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			how, id, _ := strings.Cut(strings.TrimSpace(line), " ")
			s.figures[how]++
			if how != "--resume" {
				begun[id]++
			}
		}
	}
	for id, n := range begun {
		if n != 1 {
			t.Errorf("bead %s was begun %d times\n%s", id, n, s.Chipset("why", id))
		}
	}
	for l := range strings.Lines(s.Chipset("log", "--json")) {
		var e event.Event
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			t.Errorf("the story: %v: %q", err, l)
		}
		if e.Type == "bead.failed" || strings.HasSuffix(e.Type, ".quarantined") || strings.HasSuffix(e.Type, ".corrupt") {
			t.Errorf("the story tells of %s", l)
		}
	}
	checkClean(t, s.World)
}
