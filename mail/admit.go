package mail

import (
	"errors"
	"slices"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

// recipient returns an error if the recipient does not exist, is retired, or does not
// accept mail from the sender.
func (s *Sender) recipient(m *Message) error {
	a, err := s.agents.Get(string(m.To))
	switch {
	case m.To == state.Human && errors.Is(err, state.ErrNotFound):
		return nil
	case err != nil:
		return err
	case a.Status == agent.Retired:
		return state.Conflictf("agent "+string(m.To), "is retired and gets no more mail")
	case a.Accepts(m.From) || s.machinery(m.From) || s.answers(m):
		return nil
	}
	return state.Conflictf("mail to "+string(m.To), "its card accepts mail only from %v, not from %s; ask the mayor to pass the message on", a.AllowFrom, m.From)
}

// machinery reports whether the sender is the mayor, the witness or the refinery, to whom
// cards do not apply, because the rig can't work without their mail.
func (s *Sender) machinery(from state.AgentID) bool {
	a, err := s.agents.Get(string(from))
	return err == nil && (a.Role == agent.Mayor || a.Role == agent.Witness || a.Role == agent.Refinery)
}

// answers reports whether a message replies to one of its recipient. Such a reply is
// always accepted.
func (s *Sender) answers(m *Message) bool {
	n, err := ParseName(m.InReplyTo)
	if err != nil {
		return false
	}
	e, err := NewMailbox(s.tree, m.From).Get(n)
	return err == nil && e.From == m.To
}

// admitTask checks that a message is a legal step of the task that it refers to, and
// sets its state, deadline and callback to those of the task. The caller holds the lock
// of the recipient's mailbox, so that one of two concurrent steps is refused. Errors:
// ErrConflict for a step that is not legal or that the sender may not make, ErrNotFound.
func (s *Sender) admitTask(box *Mailbox, m *Message) error {
	t, err := m.TaskOf()
	if err != nil || t == nil {
		return err
	}
	own := NewMailbox(s.tree, m.From)
	asked, err := request(own, m.To, t.ID)
	if err != nil {
		return err
	}
	if asked != nil && asked.pending() {
		return s.admitMove(box, own, asked, m, t)
	}
	asked, err = request(box, m.From, t.ID)
	switch {
	case err != nil:
		return err
	case asked != nil && asked.pending():
		return admitRemark(own, asked, m, t)
	case t.State == "" || t.State == TaskPending:
		t.State = TaskPending
		if t.Deadline == nil {
			t.Deadline = m.Deadline
		}
		return m.SetTask(*t)
	}
	return &state.Unknown{Kind: "task of " + string(m.To) + " in the mailbox of " + string(m.From) + ":", Name: string(t.ID)}
}

// pending reports whether the message requests its task.
func (m *Message) pending() bool {
	t, err := m.TaskOf()
	return err == nil && t != nil && t.State == TaskPending
}

// admitMove admits a message of the assignee to the requester.
func (s *Sender) admitMove(box, own *Mailbox, asked *Entry, m *Message, t *Task) error {
	status, err := TaskStatusOf(box, asked)
	if err != nil {
		return err
	}
	what := "task " + string(t.ID)
	switch {
	case t.State == "" || t.State == status.State && status.State == TaskWorking:
		t.State = status.State // a remark or a progress report
	case !slices.Contains(status.State.next(), t.State):
		return state.Conflictf(what, "is %s and can't become %s%s", status.State, t.State, thenWhat(status.State))
	case t.State == TaskAccepted && status.Overdue(s.clock()):
		return state.Conflictf(what, "its deadline passed at %s: it can only be rejected", status.Deadline)
	case t.State == TaskAccepted:
		if err := s.roomFor(own, m.From); err != nil {
			return err
		}
	}
	t.Deadline = status.Deadline
	m.Callback = status.Callback
	return m.SetTask(*t)
}

func thenWhat(s TaskState) string {
	if s.Final() {
		return ": it is over"
	}
	text := ", only"
	for i, next := range s.next() {
		if i > 0 {
			text += ","
		}
		text += " " + string(next)
	}
	return text
}

// admitRemark admits a message of the requester about a task that it has requested.
func admitRemark(own *Mailbox, asked *Entry, m *Message, t *Task) error {
	status, err := TaskStatusOf(own, asked)
	if err != nil {
		return err
	}
	what := "task " + string(t.ID)
	switch {
	case t.State != "" && t.State != status.State:
		return state.Conflictf(what, "is %s, and only %s may change that", status.State, m.To)
	case m.InReplyTo == "" && m.Thread == "":
		return state.Conflictf(what, "was requested from %s before: use another ID, or write to the thread of the task", m.To)
	}
	t.State, t.Deadline, m.Callback = status.State, status.Deadline, status.Callback
	if status.State == TaskPending { // the remark must not count as a second request
		m.Task = nil
		return nil
	}
	return m.SetTask(*t)
}

// roomFor returns an error if the agent has as many tasks as its card allows.
func (s *Sender) roomFor(own *Mailbox, id state.AgentID) error {
	a, err := s.agents.Get(string(id))
	if err != nil || a.MaxTasks == 0 {
		if errors.Is(err, state.ErrNotFound) {
			return nil
		}
		return err
	}
	tasks, err := TasksFor(own, func(id state.AgentID) *Mailbox { return NewMailbox(s.tree, id) })
	if err != nil {
		return err
	}
	busy := 0
	for i := range tasks {
		if tasks[i].State == TaskAccepted || tasks[i].State == TaskWorking {
			busy++
		}
	}
	if busy >= a.MaxTasks {
		return state.Conflictf("agent "+string(id), "has %d open tasks, and its card allows %d: complete one first, or reject this one", busy, a.MaxTasks)
	}
	return nil
}
