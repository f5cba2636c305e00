package witness

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles/rolestest"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// TestTranscripts plays testdata/*.txt. A paragraph's decisions come while its time
// goes by, in the lines "run"; each stands there with its time in seconds.
func TestTranscripts(t *testing.T) {
	rolestest.Run(t, func(t *testing.T, seen rolestest.Seen, transcript string) string {
		s := &script{world: newWorld(t), seen: seen}
		return rolestest.Paragraphs(t, transcript, func(lines []string, asked bool) string {
			var out []string
			for _, line := range lines {
				out = append(out, s.do(line)...)
			}
			if asked && len(out) == 0 {
				return "nothing"
			}
			return strings.Join(out, "\n")
		})
	})
}

type script struct {
	*world
	elapsed time.Duration
	crash   int // actions to carry out before dying, plus one; 0 is never
	mails   int
	seen    rolestest.Seen
}

func (s *script) do(line string) []string {
	f := strings.Fields(line)
	arg := func(n int) string {
		if n < len(f) {
			return f[n]
		}
		return ""
	}
	rest := func(n int) string { return strings.Join(f[min(n, len(f)):], " ") }
	id := state.AgentID(arg(1))
	switch f[0] {
	case "run":
		return s.run(s.duration(arg(1)))
	case "sleep":
		s.pass(s.duration(arg(1)))
	case "clock":
		s.now = state.At(s.now.Add(s.duration(arg(1))))
	case "restart":
		s.state, s.reminded = State{}, nil
	case "crash":
		s.crash = s.number(arg(1)) + 1
	case "agent":
		s.add(id, agent.Role(arg(2)), arg(3) == "alive")
		if arg(4) != "" {
			s.agent(id).Stall = s.duration(arg(4))
		}
	case "asks":
		s.agent(id).Asks = arg(2) != "no"
	case "task":
		deadline := s.now
		s.overdue = append(s.overdue, mail.TaskStatus{Task: mail.Task{ID: mail.TaskID(arg(3)), State: mail.TaskWorking, Deadline: &deadline},
			Requester: state.AgentID(arg(2)), Assignee: id, Subject: "review", Request: mail.NameAt(s.now, state.AgentID(arg(2))), UpdatedAt: s.now})
	case "task-over":
		s.overdue = nil
	case "alive", "dead":
		s.agent(id).Alive = f[0] == "alive"
	case "retired":
		s.agent(id).Status = agent.Retired
	case "hook":
		s.hang(id, hook.Status(arg(2)), state.BeadID(arg(3)), state.AssignmentID(arg(4)), state.SessionID(arg(5)))
	case "touch":
		s.agent(id).Hook.LastActivity = state.At(s.now.Add(s.duration(arg(2))))
	case "corrupt":
		s.agent(id).Corrupt = rest(2)
	case "bead":
		s.putBead(bead.Bead{ID: state.BeadID(arg(1)), Title: "a title", Status: bead.Status(arg(2)),
			AssignmentID: state.AssignmentID(strings.TrimPrefix(arg(3), "-")), Restarts: s.number(arg(4))})
	case "mr":
		s.putRequest(mergequeue.Request{ID: state.MergeID("mr-" + arg(1)), BeadID: state.BeadID(arg(1)), AssignmentID: state.AssignmentID(arg(2)),
			Status: mergequeue.Status(arg(3)), Stage: mergequeue.Stage(strings.TrimPrefix(arg(4), "-")), Reason: rest(5), UpdatedAt: s.now})
	case "waiting":
		s.queue[0].Waiting = rest(1)
	case "mayor-mail":
		s.mayorMail = append(s.mayorMail, mail.Entry{Name: mail.NameAt(s.now, "refinery"), Message: mail.Message{Priority: mail.Urgent, Subject: rest(1)}})
	case "mayor-reads":
		s.mayorMail = nil
	case "mail":
		s.receive(id, mail.Type(arg(2)), state.SessionID(arg(3)))
	case "respond":
		s.respond(id, state.AssignmentID(arg(2)), rest(3))
	case "nudge":
		s.nudges = append(s.nudges, nudge.Nudge{From: id, Type: nudge.Type(arg(2)), RequiresResponse: true, Timestamp: s.now})
	case "disk":
		s.disk = Disk{Free: uint64(s.number(arg(1))) << 20, Total: uint64(s.number(arg(2))) << 20}
	default:
		s.t.Fatalf("unknown command %q", line)
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

func (s *script) receive(from state.AgentID, kind mail.Type, session state.SessionID) {
	s.mails++
	m := mail.Message{From: from, To: "witness", Type: kind, Subject: "hello", Timestamp: s.now}
	if session != "" {
		m.Ref = &mail.Ref{Session: session}
	}
	s.mail = append(s.mail, mail.Entry{Name: mail.NameAt(state.At(s.now.Add(time.Duration(s.mails))), from), Message: m})
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
