package witness

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles/rolestest"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// TestTranscripts plays testdata/*.txt. Decisions come while time goes by, in the
// lines "run"; each stands below the ---- with its time in seconds.
func TestTranscripts(t *testing.T) {
	rolestest.Run(t, func(t *testing.T, seen rolestest.Seen) rolestest.Stage {
		return &script{world: newWorld(t), seen: seen}
	})
}

type script struct {
	*world
	elapsed time.Duration
	crash   int // actions to carry out before dying, plus one; 0 is never
	mails   int
	seen    rolestest.Seen
	out     []string
}

// Decide returns what was decided since it was last asked.
func (s *script) Decide() []string {
	out := s.out
	s.out = nil
	return out
}

// do is one line, and what is decided in it.
func (s *script) do(line string) []string {
	if err := s.Happen(rolestest.Parse(line)); err != nil {
		s.t.Fatalf("%q: %v", line, err)
	}
	return s.Decide()
}

// Happen takes in one line.
func (s *script) Happen(l rolestest.Line) error {
	switch l.Noun {
	case "run":
		s.out = append(s.out, s.run(s.duration(l.Word(0)))...)
	case "after":
		s.pass(s.duration(l.Word(0)))
	case "clock":
		s.now = state.At(s.now.Add(s.duration(l.Word(0))))
	case "restart":
		s.state, s.reminded = State{}, nil
	case "crash":
		s.crash = s.number(l.Word(0)) + 1
	case "bead":
		b := l.Bead(s.now)
		b.Title = "a title"
		s.putBead(b)
	case "request":
		s.putRequest(l.Request(s.now))
	case "waiting":
		s.queue[0].Waiting = l.Text
	case "mayor-mail":
		s.mayorMail = append(s.mayorMail, mail.Entry{Name: mail.NameAt(s.now, "refinery"), Message: mail.Message{Priority: mail.Urgent, Subject: l.Text}})
	case "mayor-reads":
		s.mayorMail = nil
	case "mail":
		s.mails++
		s.mail = append(s.mail, l.Mail("witness", state.At(s.now.Add(time.Duration(s.mails)))))
	case "respond":
		s.respond(l.Agent(), l.Assignment(), l.Text)
	case "nudge":
		s.nudges = append(s.nudges, l.Nudge(s.now))
	case "task-over":
		s.overdue = nil
	case "disk":
		s.disk = Disk{Free: uint64(s.number(l.Word(0))) << 20, Total: uint64(s.number(l.Word(1))) << 20}
	default:
		return s.happenTo(l.Agent(), l)
	}
	return nil
}

// happenTo takes in a line about an agent.
func (s *script) happenTo(id state.AgentID, l rolestest.Line) error {
	switch l.Noun {
	case "agent":
		s.add(id, agent.Role(l.Word(1)), l.Word(2) == "alive")
		if l.Word(3) != "" {
			s.agent(id).Stall = s.duration(l.Word(3))
		}
	case "session":
		s.add(id, agent.Role(l.Word(1)), false)
		s.agent(id).Session = true
	case "asks":
		s.agent(id).Asks = !l.Has("no")
	case "task":
		deadline := s.now
		requester := state.AgentID(l.Word(1))
		s.overdue = append(s.overdue, mail.TaskStatus{ID: mail.TaskID(l.Word(2)), State: mail.TaskWorking, Deadline: &deadline,
			Requester: requester, Assignee: id, Subject: "review", Request: mail.NameAt(s.now, requester), UpdatedAt: s.now})
	case "alive", "dead":
		s.agent(id).Alive = l.Noun == "alive"
	case "retired":
		s.agent(id).Status = agent.Retired
	case "hook":
		if l.Has("corrupt") {
			s.agent(id).Corrupt = l.Text
			return nil
		}
		s.hang(l.Hook(s.now))
	case "touch":
		s.agent(id).Hook.LastActivity = state.At(s.now.Add(s.duration(l.Word(1))))
	default:
		return fmt.Errorf("unknown line")
	}
	return nil
}

// run ticks whenever the witness is due.
func (s *script) run(d time.Duration) []string {
	var out []string
	for end := s.elapsed + d; ; {
		limit := -1
		if s.crash > 0 {
			limit = s.crash - 1
		}
		d := s.tick(limit)
		rolestest.Faults(s.t, s.seen, &d)
		for n, line := range rolestest.Show(&d, s.show) {
			if n == limit {
				out = append(out, fmt.Sprintf("%6.0fs CRASH", s.elapsed.Seconds()))
				s.crash = 0
				break
			}
			out = append(out, fmt.Sprintf("%6.0fs %s", s.elapsed.Seconds(), line))
		}
		wait := s.policy.Patrol
		if due := s.state.Wake.Sub(s.now.Time); due > 0 && !s.state.Patrolled.IsZero() {
			wait = due
		}
		if s.elapsed+wait > end {
			s.pass(end - s.elapsed)
			return out
		}
		s.pass(wait)
	}
}

func (s *script) pass(d time.Duration) {
	s.now, s.elapsed = state.At(s.now.Add(d)), s.elapsed+d
}

func (s *script) duration(text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *script) number(text string) int {
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *script) putBead(b bead.Bead) {
	for i := range s.beads {
		if s.beads[i].ID == b.ID {
			s.beads[i] = b
			return
		}
	}
	s.beads = append(s.beads, b)
}

func (s *script) putRequest(r mergequeue.Request) {
	for i := range s.queue {
		if s.queue[i].ID == r.ID {
			s.queue[i] = r
			return
		}
	}
	s.queue = append(s.queue, r)
}

func (s *script) respond(from state.AgentID, as state.AssignmentID, message string) {
	n := nudge.Nudge{From: from, Type: nudge.Response, Message: message, Timestamp: s.now, Ref: &nudge.Ref{AssignmentID: as}}
	for _, i := range s.open() {
		if i.AgentID == from && i.LastNudge != nil {
			n.InReplyTo = i.LastNudge
		}
	}
	s.nudges = append(s.nudges, n)
}
