package e2e_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/state/fault"
)

// nightly is the script of an agent that works in steps, asks the person at one of them, and needs a while.
func nightly(task string) []agentclitest.Turn {
	const steps, asked = 8, 3
	done := func(i int) string { return fmt.Sprintf("STEP-%d-%s", i, task) }
	step := func(has, line string) agentclitest.Turn {
		turn := shell("I go on.", line)
		turn.Has, turn.Always = []string{"TASK-" + task, has}, true
		return turn
	}
	next := func(i int) string { return fmt.Sprintf("sleep 0.5; printf 'STEP-%%d-%%s' %d %s", i, task) }
	script := does(task)
	begins := len(script) - 1
	writes := script[begins]
	writes.Has = []string{"TASK-" + task, done(steps)}
	script[begins] = writes
	for i := steps - 1; i > 0; i-- {
		if i == asked {
			script = append(script, step("ANSWERED-"+task, next(i+1)),
				step(done(i), "chipset request answer 'QUESTION-"+task+"?' --wait 100s && printf 'ANSWERED-%s' "+task))
			continue
		}
		script = append(script, step(done(i), next(i+1)))
	}
	return append(script, step("", next(1)))
}

// person reads the screen of a rig and answers each question that appears on it, once.
type person struct {
	s *stage
	// mu guards what follows. screen is all that was shown, by all processes; delays are those from a question to its line.
	mu     sync.Mutex
	ups    []*chipsettest.Process
	delays map[string]time.Duration
}

func (p *person) screen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all strings.Builder
	for _, up := range p.ups {
		all.WriteString(up.Output.String())
	}
	return all.String()
}

func (p *person) starts() *chipsettest.Process {
	up := p.s.Start("up", "--plain")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ups = append(p.ups, up)
	return up
}

var asking = regexp.MustCompile(`(?m)^(\d\d:\d\d:\d\d\S*) .*needs you: (\d+) question .*asks: QUESTION-([a-z-]+\d)\?.* peek (20\S+?Z)-`)

// answers answers until done is closed.
func (p *person) answers(done <-chan struct{}) {
	for {
		for _, m := range asking.FindAllStringSubmatch(p.screen(), -1) {
			p.mu.Lock()
			_, known := p.delays[m[4]]
			if !known {
				stored, _ := time.Parse("2006-01-02T15-04-05.999999999Z", m[4])
				shown, _ := time.Parse("2006-01-02 15:04:05.999999999", stored.Format("2006-01-02 ")+m[1])
				p.delays[m[4]] = shown.Sub(stored)
			}
			p.mu.Unlock()
			if !known {
				p.s.Try("answer", m[2], "yes, "+m[3])
			}
		}
		select {
		case <-done:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// TestNightInShort: six beads and four clients in one rig whose models fail in every way by turns, with mail all the while and
// two kills of the rig. In the end everything has landed, each in the session that it began with, nothing was charged, what is
// recorded as shown was shown, each question was on the person's screen within a second, and the idle rig asks no model.
func TestNightInShort(t *testing.T) {
	t.Setenv("TZ", "UTC")
	s := setSeveral(t, "")
	beads := map[string]string{}
	var works []agentclitest.Turn
	for i, client := range []string{"claude", "codex", "gemini", "opencode", "claude", "opencode"} {
		task := fmt.Sprintf("%s-%d", client, i)
		beads[task] = s.assign(client, task)
		works = append(works, nightly(task)...)
	}
	s.model.Play(works...)
	p := &person{s: s, delays: map[string]time.Duration{}}
	bodies := map[string]string{} // by the names of the messages
	over := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() { p.answers(over) })
	beside.Go(func() { s.writes(bodies, over) })
	morning := sync.OnceFunc(func() { close(over); beside.Wait() })
	t.Cleanup(morning)
	up := p.starts()
	for _, trouble := range []trouble{
		{name: "529", turn: agentclitest.Turn{Status: 529, Say: "Overloaded"}},
		{name: "hang", turn: brokenOff(agentclitest.Hang), kill: true},
		{name: "429", turn: agentclitest.Turn{Status: 429, Say: "Rate limit reached", RetryAfter: "5"}},
		{name: "cut", turn: brokenOff(agentclitest.Cut), kill: true},
		{name: "key", turn: agentclitest.Turn{API: interfaces()["claude"], Status: 401, Say: "that key is not known here"}, key: true},
	} {
		up = p.endures(trouble, up, beads, works)
	}
	s.Eventually(2*atMost, "all land", func() bool { return strings.Count(s.statuses(beads), "merged") == len(beads) })
	morning()
	before := len(s.model.All())
	s.Chipset("mail", "send", "polecat-alpha", "-s", "hello", "--body", "x", "--as", "mayor")
	time.Sleep(5 * time.Second)
	if spent := len(s.model.All()) - before; spent > 0 {
		t.Errorf("the idle rig has asked %d times", spent)
	}
	s.end(up)
	s.landed(beads)
	for task := range beads {
		s.remembers(task)
	}
	t.Logf("sessions began %d times and went on %d times", len(s.events("worker.started")), len(s.events("worker.resumed")))
	s.shownAsRecorded(bodies)
	late := 0
	for _, delay := range p.delays {
		if delay > time.Second {
			late++
		}
	}
	if len(p.delays) < len(beads) || late > 0 {
		t.Errorf("questions were on the screen after %v", p.delays)
	}
	t.Logf("questions were on the screen after %v", p.delays)
}

// trouble is one fault of a night.
type trouble struct {
	name string
	// turn is the answer to every request meanwhile.
	turn agentclitest.Turn
	// kill: the rig is killed before it is over. key: only the person can mend it.
	kill, key bool
}

// endures lets the agents get on, and the models fail for a while. It returns the rig that runs then.
func (p *person) endures(trouble trouble, up *chipsettest.Process, beads map[string]string, works []agentclitest.Turn) *chipsettest.Process {
	s := p.s
	s.t.Helper()
	asked := func() int { return len(s.model.Requests()) }
	before := asked()
	s.t.Logf("%s: %s, %d requests", trouble.name, s.statuses(beads), before)
	s.Eventually(atMost, "the agents get on before "+trouble.name, func() bool {
		return asked() >= before+len(beads) || !strings.Contains(s.statuses(beads), "progress")
	})
	trouble.turn.Always = true
	s.model.Play(append([]agentclitest.Turn{trouble.turn}, works...)...)
	if trouble.key { // the person is asked once
		s.Eventually(atMost, "the key is refused", func() bool { return s.pauseOf("claude").Kind == fault.WrongKey })
		if inbox := s.Chipset("inbox"); strings.Count(inbox, "does not accept the key") != 1 || !strings.Contains(inbox, "chipset resume client:claude") {
			s.t.Errorf("the person is asked\n%s", inbox)
		}
		s.model.Play(works...)
		s.Chipset("resume", "client:claude")
		return up
	}
	// Nothing tells that a fault has reached all: each has this time to do its worst.
	time.Sleep(20 * time.Second)
	if trouble.kill {
		up.Kill()
		up = p.starts()
	}
	s.model.Play(works...)
	return up
}

// remembers fails the test if a model was asked to go on with a task without what had been done of it.
func (s *stage) remembers(task string) {
	s.t.Helper()
	begun := false
	for i, r := range s.model.Requests() {
		if !r.Has("TASK-" + task) {
			continue
		}
		done := r.Has("STEP-1-" + task)
		if begun && !done {
			s.t.Errorf("%s: request %d does not know what was done before", task, i)
		}
		begun = begun || done
	}
}

// writes sends mail to the workers until over is closed.
func (s *stage) writes(bodies map[string]string, over <-chan struct{}) {
	for i := 0; ; i++ {
		for _, to := range []string{"polecat-alpha", "polecat-bravo", "polecat-charlie", "polecat-delta"} {
			s.write(bodies, to, i)
		}
		select {
		case <-over:
			return
		case <-time.After(4 * time.Second):
		}
	}
}

// write sends the nth message to a worker, and remembers its body by its name.
func (s *stage) write(bodies map[string]string, to string, n int) {
	body := fmt.Sprintf("LETTER-%d-TO-%s. %s", n, to, strings.Repeat("words ", 10+n%7*100))
	if name, code := s.Try("mail", "send", to, "--subject", fmt.Sprintf("letter %d", n), "--body", body, "--as", "mayor"); code == 0 {
		bodies[to+"/"+strings.TrimSpace(name)] = strings.TrimSpace(body)
	}
}

// shownAsRecorded compares what is recorded of each message with what the models were shown.
func (s *stage) shownAsRecorded(bodies map[string]string) {
	s.t.Helper()
	injected := map[string]int{}
	for _, e := range s.events("mail.injected") {
		if strings.Contains(e.Text, " session ") {
			injected[e.Subject]++
		}
	}
	seen := map[string]bool{}
	for _, e := range s.events("mail.seen") {
		seen[e.Subject] = true
	}
	requests := s.model.Requests()
	shown, waiting := 0, 0
	for name, body := range bodies {
		was := slices.ContainsFunc(requests, func(r agentclitest.Request) bool { return strings.Contains(r.Text, body) })
		switch is := injected[name] > 0; {
		case was && is:
			shown++
		case was:
			s.t.Errorf("%s was shown and is not recorded", name)
		case is:
			s.t.Errorf("%s is recorded as injected %d times and was never shown (seen: %v)", name, injected[name], seen[name])
		default:
			agent, file, _ := strings.Cut(name, "/")
			if out, code := s.Try("mail", "trace", agent+"/"+file); code != 0 || !strings.Contains(out, "unread by "+agent) {
				s.t.Errorf("%s was lost: %s", name, out)
			}
			waiting++
		}
	}
	s.t.Logf("%d messages: %d shown and recorded, %d wait", len(bodies), shown, waiting)
}
