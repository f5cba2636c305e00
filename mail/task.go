package mail

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

// TaskState is the state of a task, which a requester asks an assignee to do.
type TaskState string

const (
	// TaskPending: requested; ends when the assignee accepts or rejects it.
	TaskPending TaskState = "pending"
	// TaskAccepted: the assignee will do it; ends when it begins or gives the task back.
	TaskAccepted TaskState = "accepted"
	// TaskWorking: begun; ends with its outcome.
	TaskWorking TaskState = "working"
	// TaskCompleted: done. Final.
	TaskCompleted TaskState = "completed"
	// TaskRejected: not accepted, or given back. Final.
	TaskRejected TaskState = "rejected"
	// TaskFailed: the assignee could not do it. Final.
	TaskFailed TaskState = "failed"
)

// TaskStates lists the states, for help texts and checks.
func TaskStates() []TaskState {
	return []TaskState{TaskPending, TaskAccepted, TaskWorking, TaskCompleted, TaskRejected, TaskFailed}
}

// next returns the legal next states. Only the assignee changes the state.
func (s TaskState) next() []TaskState {
	switch s {
	case TaskPending:
		return []TaskState{TaskAccepted, TaskRejected}
	case TaskAccepted:
		return []TaskState{TaskWorking, TaskRejected, TaskFailed}
	case TaskWorking:
		return []TaskState{TaskCompleted, TaskRejected, TaskFailed}
	case TaskCompleted, TaskRejected, TaskFailed:
	}
	return nil
}

// Final reports whether the task is over.
func (s TaskState) Final() bool { return s == TaskCompleted || s == TaskRejected || s == TaskFailed }

// rank is how far along a task is, -1 for an unknown state.
func (s TaskState) rank() int {
	return min(slices.Index(TaskStates(), s), slices.Index(TaskStates(), TaskCompleted))
}

// TaskID names a task. The requester chooses it, unique among its requests to one
// assignee.
type TaskID string

// NewTaskID returns a fresh tk-… ID.
func NewTaskID() TaskID { return TaskID("tk-" + state.Random(8)) }

// Task is the part of a message that refers to a task.
type Task struct {
	ID TaskID `json:"id"`
	// State is the state of the task after the message.
	State    TaskState   `json:"state,omitempty"`
	Deadline *state.Time `json:"deadline,omitempty"`

	Extra state.Extra `json:"-"`
}

// UnmarshalJSON keeps unknown fields.
func (t *Task) UnmarshalJSON(b []byte) error {
	type plain Task
	return state.UnmarshalWithExtra(b, (*plain)(t), &t.Extra)
}

// MarshalJSON writes unknown fields back.
func (t Task) MarshalJSON() ([]byte, error) {
	type plain Task
	return state.MarshalWithExtra(plain(t), t.Extra)
}

// TaskOf returns the task that a message refers to, or nil. It returns an error if another
// program has written something else there; the message itself is valid then.
func (m *Message) TaskOf() (*Task, error) {
	if len(m.Task) == 0 || string(m.Task) == "null" {
		return nil, nil
	}
	var t Task
	if err := json.Unmarshal(m.Task, &t); err != nil {
		return nil, fmt.Errorf("message: task: %w", err)
	}
	return &t, nil
}

// SetTask puts a task into a message.
func (m *Message) SetTask(t Task) error {
	data, err := json.Marshal(t)
	m.Task = data
	return err
}

// checkTask returns an error if the task of the message is invalid. An empty state is
// valid and means the current one.
func (m *Message) checkTask() error {
	t, err := m.TaskOf()
	switch {
	case err != nil || t == nil:
		return err
	case !word(string(t.ID), 128, alphanumeric, alphanumeric+"._:-"):
		return fmt.Errorf("message: task id %q: letters, digits and ._:-, at most 128", t.ID)
	case t.State != "" && !slices.Contains(TaskStates(), t.State):
		return fmt.Errorf("message: unknown task state %q (one of %v)", t.State, TaskStates())
	}
	return nil
}

// checkCallback returns an error unless callback is an object whose channel and
// session_id are strings. Agents pass it on without looking at it.
func (m *Message) checkCallback() error {
	if len(m.Callback) == 0 {
		return nil
	}
	var c map[string]any
	if err := json.Unmarshal(m.Callback, &c); err != nil {
		return fmt.Errorf("message: callback is not an object")
	}
	for _, key := range []string{"channel", "session_id"} {
		if _, ok := c[key].(string); c[key] != nil && !ok {
			return fmt.Errorf("message: %s of callback is not a string", key)
		}
	}
	return nil
}

// TaskStatus is the status of a task according to the messages of both sides.
type TaskStatus struct {
	ID        TaskID        `json:"id"`
	State     TaskState     `json:"state"`
	Deadline  *state.Time   `json:"deadline,omitempty"`
	Requester state.AgentID `json:"requester"`
	Assignee  state.AgentID `json:"assignee"`
	Subject   string        `json:"subject"`
	// Request is the message that requests it, in the assignee's mailbox.
	Request   Name            `json:"request"`
	Callback  json.RawMessage `json:"callback,omitempty"`
	UpdatedAt state.Time      `json:"updated_at"`
}

// Overdue reports whether the deadline has passed and the task is not over.
func (t *TaskStatus) Overdue(now time.Time) bool {
	return t.Deadline != nil && !t.State.Final() && now.After(t.Deadline.Time)
}

// about returns the messages of one sender that refer to a task, in the order of time;
// id "" means any task. It opens only files with that sender in their name.
func (b *Mailbox) about(from state.AgentID, id TaskID, archived bool) ([]Entry, error) {
	all, _, err := b.list(archived, func(n Name) bool { // doctor reports damaged files
		_, sender, err := state.ParseTimestampedName(string(n))
		return err == nil && (from == "" || sender == from)
	})
	if err != nil {
		return nil, err
	}
	var found []Entry
	for _, e := range all {
		if t, err := e.TaskOf(); err == nil && t != nil && (id == "" || t.ID == id) {
			found = append(found, e)
		}
	}
	return found, nil
}

// request returns the message in the assignee's mailbox that requests a task, or nil.
func request(assignee *Mailbox, requester state.AgentID, id TaskID) (*Entry, error) {
	for _, archived := range []bool{true, false} { // the oldest is the request
		all, err := assignee.about(requester, id, archived)
		if err != nil {
			return nil, err
		}
		if len(all) > 0 {
			return &all[0], nil
		}
	}
	return nil, nil
}

// TaskStatusOf returns the status of the task that a message requests, according to the
// assignee's messages in the requester's mailbox, or nil if it requests none.
func TaskStatusOf(requester *Mailbox, asked *Entry) (*TaskStatus, error) {
	t, err := asked.TaskOf()
	if err != nil || t == nil {
		return nil, nil
	}
	s := &TaskStatus{ID: t.ID, State: TaskPending, Deadline: cmp.Or(t.Deadline, asked.Deadline), Requester: asked.From, Assignee: asked.To, Subject: asked.Subject, Request: asked.Name,
		Callback: asked.Callback, UpdatedAt: asked.Timestamp}
	for _, archived := range []bool{true, false} {
		updates, err := requester.about(asked.To, t.ID, archived)
		if err != nil {
			return nil, err
		}
		for i := range updates {
			said, _ := updates[i].TaskOf()
			// A task only goes forward, whatever the timestamps of the messages are.
			if said.State.rank() > s.State.rank() {
				s.State, s.UpdatedAt = said.State, updates[i].Timestamp
			}
		}
	}
	return s, nil
}

// TasksFor returns the tasks that an agent was asked to do, in the order of time, except
// for those whose requests are archived. box returns the mailbox of a requester.
func TasksFor(assignee *Mailbox, box func(state.AgentID) *Mailbox) ([]TaskStatus, error) {
	_, asked, _, err := assignee.UnreadAndRequests()
	if err != nil {
		return nil, err
	}
	return tasksOf(asked, box)
}

// OverdueTasks returns the overdue tasks among the requests of UnreadAndRequests. It reads
// only the mail of their requesters.
func OverdueTasks(asked []Entry, now time.Time, box func(state.AgentID) *Mailbox) ([]TaskStatus, error) {
	var due []Entry
	for _, e := range asked {
		t, err := e.TaskOf()
		if err != nil || t == nil {
			continue
		}
		if deadline := cmp.Or(t.Deadline, e.Deadline); deadline != nil && now.After(deadline.Time) {
			due = append(due, e)
		}
	}
	tasks, err := tasksOf(due, box)
	return slices.DeleteFunc(tasks, func(t TaskStatus) bool { return !t.Overdue(now) }), err
}

// tasksOf returns the status of each task that some messages request.
func tasksOf(asked []Entry, box func(state.AgentID) *Mailbox) ([]TaskStatus, error) {
	type key struct {
		from state.AgentID
		id   TaskID
	}
	seen := map[key]bool{}
	var tasks []TaskStatus
	for i := range asked {
		e := &asked[i]
		t, err := e.TaskOf()
		if err != nil || t == nil || seen[key{e.From, t.ID}] {
			continue // a later message about the task
		}
		seen[key{e.From, t.ID}] = true
		s, err := TaskStatusOf(box(e.From), e)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, *s)
	}
	return tasks, nil
}
