package mail

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

// ask sends a task of the mayor to polecat-alpha.
func (p post) ask(t *testing.T, id TaskID, change func(*Message)) Name {
	t.Helper()
	m := Message{From: "mayor", To: "polecat-alpha", Type: Coordination, Subject: "please", Callback: json.RawMessage(`{"channel":"chat","session_id":"s1"}`)}
	must(t, m.SetTask(Task{ID: id, State: TaskPending}))
	if change != nil {
		change(&m)
	}
	return p.send(t, m)
}

// update is a word of polecat-alpha to the mayor.
func update(id TaskID, to TaskState) Message {
	m := Message{From: "polecat-alpha", To: "mayor", Type: Coordination, Subject: "now " + string(to)}
	m.Task, _ = json.Marshal(Task{ID: id, State: to})
	return m
}

func (p post) status(t *testing.T, asked Name) *TaskStatus {
	t.Helper()
	e, err := NewMailbox(p.tree, "polecat-alpha").Get(asked)
	must(t, err)
	s, err := TaskStatusOf(p.box, &e)
	must(t, err)
	return s
}

func TestTaskMoves(t *testing.T) {
	legal := map[TaskState]string{
		TaskPending: "accepted rejected", TaskAccepted: "working rejected failed", TaskWorking: "working completed rejected failed",
		TaskCompleted: "", TaskRejected: "", TaskFailed: "",
	}
	way := map[TaskState][]TaskState{
		TaskPending: {}, TaskAccepted: {TaskAccepted}, TaskWorking: {TaskAccepted, TaskWorking},
		TaskCompleted: {TaskAccepted, TaskWorking, TaskCompleted}, TaskRejected: {TaskRejected}, TaskFailed: {TaskAccepted, TaskFailed},
	}
	for from, steps := range way {
		for _, to := range TaskStates() {
			p := newPost(t)
			asked := p.ask(t, "t1", nil)
			for _, step := range steps {
				p.send(t, update("t1", step))
			}
			_, err := p.Send(t.Context(), update("t1", to))
			want := strings.Contains(" "+legal[from]+" ", " "+string(to)+" ")
			if (err == nil) != want || err != nil && !errors.Is(err, state.ErrConflict) {
				t.Errorf("%s → %s: %v", from, to, err)
			}
			after := from
			if want {
				after = to
			}
			if s := p.status(t, asked); s.State != after {
				t.Errorf("%s → %s leaves it %s", from, to, s.State)
			}
		}
	}
}

func TestTaskCarriesCallbackAndDeadline(t *testing.T) {
	p := newPost(t)
	due := state.At(now.Add(time.Hour))
	p.ask(t, "t1", func(m *Message) { m.Deadline = &due })
	m := update("t1", TaskAccepted)
	m.Callback = json.RawMessage(`{"channel":"evil"}`)
	for _, m := range []Message{m, update("t1", "")} {
		e, err := p.box.Get(p.send(t, m))
		must(t, err)
		task, err := e.TaskOf()
		must(t, err)
		var callback map[string]string
		must(t, json.Unmarshal(e.Callback, &callback))
		if callback["session_id"] != "s1" || task.Deadline == nil || !task.Deadline.Equal(due.Time) || task.State != TaskAccepted {
			t.Errorf("callback %s, task %+v", e.Callback, task)
		}
	}
}

func TestTaskIsTheAssignees(t *testing.T) {
	p := newPost(t)
	asked := p.ask(t, "t1", nil)
	mayors := func(to TaskState, thread string) error {
		m := Message{From: "mayor", To: "polecat-alpha", Type: Coordination, Subject: "s", Thread: thread}
		m.Task, _ = json.Marshal(Task{ID: "t1", State: to})
		_, err := p.Send(t.Context(), m)
		return err
	}
	if err := mayors(TaskCompleted, string(asked)); !errors.Is(err, state.ErrConflict) {
		t.Errorf("the requester completes it: %v", err)
	}
	if err := mayors(TaskPending, ""); !errors.Is(err, state.ErrConflict) {
		t.Errorf("the same id again: %v", err)
	}
	must(t, mayors("", string(asked)))
	_, err := p.Send(t.Context(), Message{From: "witness", To: "mayor", Type: Coordination, Subject: "s", Task: json.RawMessage(`{"id":"t1","state":"completed"}`)})
	if !errors.Is(err, state.ErrNotFound) {
		t.Errorf("a third agent completes it: %v", err)
	}
	tasks, err := TasksFor(NewMailbox(p.tree, "polecat-alpha"), func(id state.AgentID) *Mailbox { return NewMailbox(p.tree, id) })
	must(t, err)
	if len(tasks) != 1 || tasks[0].State != TaskPending || tasks[0].Requester != "mayor" {
		t.Errorf("tasks %+v", tasks)
	}
}

func TestTaskDeadline(t *testing.T) {
	p := newPost(t)
	past := state.At(now.Add(-time.Minute))
	asked := p.ask(t, "t1", func(m *Message) { m.Deadline = &past })
	if s := p.status(t, asked); !s.Overdue(now.Time) {
		t.Error("it is not overdue")
	}
	if _, err := p.Send(t.Context(), update("t1", TaskAccepted)); !errors.Is(err, state.ErrConflict) {
		t.Errorf("accepted after its deadline: %v", err)
	}
	p.send(t, update("t1", TaskRejected))
	if s := p.status(t, asked); s.Overdue(now.Time) {
		t.Error("what is over is overdue")
	}
}

func TestTaskLimit(t *testing.T) {
	p := newPost(t)
	_, err := p.agents.Update(t.Context(), "polecat-alpha", func(a *agent.Agent) error { a.MaxTasks = 1; return nil })
	must(t, err)
	p.ask(t, "t1", nil)
	p.ask(t, "t2", nil)
	p.send(t, update("t1", TaskAccepted))
	if _, err := p.Send(t.Context(), update("t2", TaskAccepted)); !errors.Is(err, state.ErrConflict) {
		t.Errorf("a second one: %v", err)
	}
	p.send(t, update("t1", TaskFailed))
	p.send(t, update("t2", TaskAccepted))
}

// TestTaskRace: of many ends of one task exactly one is stored.
func TestTaskRace(t *testing.T) {
	p := newPost(t)
	asked := p.ask(t, "t1", nil)
	p.send(t, update("t1", TaskAccepted))
	var wg sync.WaitGroup
	results := make(chan error, 8)
	for range cap(results) {
		wg.Go(func() {
			_, err := p.Send(testContext(), update("t1", TaskFailed))
			results <- err
		})
	}
	wg.Wait()
	close(results)
	stored := 0
	for err := range results {
		if err == nil {
			stored++
		} else if !errors.Is(err, state.ErrConflict) {
			t.Error(err)
		}
	}
	if stored != 1 || p.status(t, asked).State != TaskFailed {
		t.Errorf("%d of them stored", stored)
	}
}

func TestTaskSurvivesTheArchive(t *testing.T) {
	p := newPost(t)
	asked := p.ask(t, "t1", nil)
	p.send(t, update("t1", TaskAccepted))
	p.send(t, update("t1", TaskWorking))
	if _, err := p.box.ArchiveOld(t.Context(), "mayor", now.Add(time.Hour), true); err != nil {
		t.Fatal(err)
	}
	p.send(t, update("t1", TaskCompleted))
	if s := p.status(t, asked); s.State != TaskCompleted {
		t.Errorf("it is %s", s.State)
	}
}

func TestBadTasks(t *testing.T) {
	p := newPost(t)
	for _, bad := range []string{`[]`, `"x"`, `{}`, `{"id":""}`, `{"id":"a b"}`, `{"id":"x","state":"done"}`, `{"id":"x","deadline":"soon"}`, `{"id":7}`} {
		m := hello()
		m.Task = json.RawMessage(bad)
		if _, err := p.Send(t.Context(), m); err == nil {
			t.Errorf("task %s was sent", bad)
		}
	}
	for _, bad := range []string{`[]`, `"x"`, `{"channel":7}`} {
		m := hello()
		m.Callback = json.RawMessage(bad)
		if _, err := p.Send(t.Context(), m); err == nil {
			t.Errorf("callback %s was sent", bad)
		}
	}
	// What another writer stored is read all the same.
	p.plant(t, "2026-03-05T10-30-00Z-witness.json", `{"from":"witness","to":"mayor","type":"x-a","subject":"s","body":"","timestamp":"2026-03-05T10:30:00Z","read":false,"priority":"normal","task":[1]}`)
	all, bad, err := p.box.List()
	if err != nil || len(bad) > 0 || len(all) != 1 {
		t.Errorf("%v %v %v", all, bad, err)
	}
}

func TestAllowFrom(t *testing.T) {
	p := newPost(t)
	for id, role := range map[state.AgentID]agent.Role{"polecat-bravo": agent.Polecat, "polecat-carol": agent.Polecat, "refinery": agent.Refinery} {
		_, err := p.agents.Register(t.Context(), id, role, "rig", nil, now)
		must(t, err)
	}
	_, err := p.agents.Update(t.Context(), "polecat-alpha", func(a *agent.Agent) error { a.AllowFrom = []string{"polecat-bravo"}; return nil })
	must(t, err)
	for from, want := range map[state.AgentID]bool{"polecat-bravo": true, "polecat-carol": false, "mayor": true, "witness": true, "refinery": true, "human": true} {
		_, err := p.Send(t.Context(), Message{From: from, To: "polecat-alpha", Type: Coordination, Subject: "s"})
		if (err == nil) != want || err != nil && !errors.Is(err, state.ErrConflict) {
			t.Errorf("%s: %v", from, err)
		}
	}
	// Who asks hears the answer.
	n := p.send(t, Message{From: "polecat-alpha", To: "polecat-carol", Type: Coordination, Subject: "help?"})
	p.send(t, Message{From: "polecat-carol", To: "polecat-alpha", Type: Coordination, Subject: "Re: help?", InReplyTo: string(n)})
	forged := Message{From: "polecat-carol", To: "polecat-alpha", Type: Coordination, Subject: "Re:", InReplyTo: "2026-03-05T10-30-09.000000000Z-polecat-alpha.json"}
	if _, err := p.Send(t.Context(), forged); !errors.Is(err, state.ErrConflict) {
		t.Errorf("an answer to nothing: %v", err)
	}
}
