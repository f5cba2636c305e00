package mail

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

// A verb that moves or looks at tasks says what it could not read or write, or comes to the same.
func TestTaskVerbsObey(t *testing.T) {
	const alpha, mayor = "state/mail/polecat-alpha", "state/mail/mayor"
	later := state.At(now.Add(time.Hour))
	archived, damaged := NameAt(later, "witness"), NameAt(state.At(later.Add(1)), "witness")
	sender := func(r *model.Run) *Sender {
		return NewSender(r.Tree, agent.NewStore(r.Tree, nil), fixed, 0).WithLog(event.NewLog(r.Tree, fixed))
	}
	box := func(r *model.Run, id state.AgentID) *Mailbox {
		return NewMailbox(r.Tree, id).WithLog(event.NewLog(r.Tree, fixed))
	}
	said := func(all []Entry, bad []*state.Corruption, err error) (string, error) {
		for _, c := range bad {
			err = errors.Join(err, c)
		}
		return names(all), err
	}
	tasks := func(all []TaskStatus, err error) (any, error) {
		var out []string
		for i := range all {
			out = append(out, fmt.Sprint(all[i].ID, all[i].State, all[i].Requester))
		}
		return out, err
	}
	ask := func(id TaskID) Message {
		m := Message{From: "mayor", To: "polecat-alpha", Type: Coordination, Subject: "please", Deadline: &now}
		m.Task, _ = json.Marshal(Task{ID: id})
		return m
	}
	prepare := func(r *model.Run) error {
		agents := agent.NewStore(r.Tree, nil)
		var failed []error
		for id, role := range map[state.AgentID]agent.Role{"mayor": agent.Mayor, "polecat-alpha": agent.Polecat, "witness": agent.Witness} {
			_, err := agents.Register(r, id, role, "rig", nil, now)
			failed = append(failed, err)
		}
		_, err := agents.Update(r, "polecat-alpha", func(a *agent.Agent) error { a.MaxTasks = 2; return nil })
		failed = append(failed, err)
		for _, m := range []Message{ask("t1"), ask("t2"), update("t1", TaskAccepted)} {
			m.Timestamp = state.At(now.Add(time.Duration(len(failed))))
			n, err := sender(r).Send(r, m)
			failed = append(failed, err, box(r, m.To).MarkRead(r, n))
		}
		m := Message{From: "witness", To: "mayor", Type: Coordination, Subject: "both", Timestamp: later}
		_, err = sender(r).Send(r, m)
		failed = append(failed, err, box(r, "mayor").MarkRead(r, archived))
		data, err := r.Tree.Read(box(r, "mayor").path(archived, false), MaxSize)
		failed = append(failed, err, r.Tree.WriteNew(box(r, "mayor").path(archived, true), data),
			r.Tree.WriteNew(box(r, "mayor").path(damaged, false), []byte("{")))
		return errors.Join(failed...)
	}
	// What is damaged is for the doctor: a task counts without it, and so does a look at others.
	model.Obey(t, prepare, map[string]model.Verb{
		"ask": {Tells: " mail.sent", Spares: []string{alpha, mayor}, Do: func(r *model.Run) (any, error) { return sender(r).Send(r, ask("t3")) }},
		"accept": {Tells: " mail.sent", Spares: []string{alpha + "/", mayor + "/"}, Do: func(r *model.Run) (any, error) {
			return sender(r).Send(r, update("t2", TaskAccepted))
		}},
		"go on": {Tells: " mail.sent", Spares: []string{alpha + "/", mayor + "/"}, Do: func(r *model.Run) (any, error) {
			return sender(r).Send(r, update("t1", TaskWorking))
		}},
		"remark": {Tells: " mail.sent", Overlooks: true, Spares: []string{alpha + "/", mayor + "/"}, Do: func(r *model.Run) (any, error) {
			m := ask("t1")
			m.Thread = "x"
			return sender(r).Send(r, m)
		}},
		"batch": {Tells: " mail.sent mail.sent", Spares: []string{alpha, mayor}, Do: func(r *model.Run) (any, error) {
			names, errs := sender(r).SendAll(r, []Message{hello(), ask("t3")})
			return names, errors.Join(errs...)
		}},
		"requests": {Spares: []string{mayor}, Do: func(r *model.Run) (any, error) {
			_, asked, bad, err := box(r, "polecat-alpha").UnreadAndRequests()
			return said(asked, bad, err)
		}},
		"tasks": {Overlooks: true, Spares: []string{alpha + "/", mayor + "/"}, Do: func(r *model.Run) (any, error) {
			return tasks(TasksFor(box(r, "polecat-alpha"), func(id state.AgentID) *Mailbox { return box(r, id) }))
		}},
		"overdue": {Overlooks: true, Spares: []string{alpha + "/", mayor + "/"}, Do: func(r *model.Run) (any, error) {
			_, asked, _, err := box(r, "polecat-alpha").UnreadAndRequests()
			if err != nil {
				return nil, err
			}
			return tasks(OverdueTasks(asked, later.Time, func(id state.AgentID) *Mailbox { return box(r, id) }))
		}},
		"select": {Spares: []string{alpha, mayor + "/"}, Do: func(r *model.Run) (any, error) {
			all, err := box(r, "mayor").Select(false, func(_ state.Time, from state.AgentID) bool { return from == "polecat-alpha" })
			return names(all), err
		}},
		"mark what is archived": {Spares: []string{alpha, mayor + "/archive"}, Do: func(r *model.Run) (any, error) { return nil, box(r, "mayor").MarkRead(r, archived) }},
		"drop archived":         {Spares: []string{alpha}, Do: func(r *model.Run) (any, error) { return nil, box(r, "mayor").DropArchived(r, archived) }},
		"quarantine": {Tells: " mail.quarantined", Spares: []string{alpha, mayor + "/" + string(damaged)}, Do: func(r *model.Run) (any, error) {
			return box(r, "mayor").Quarantine(r, &state.Corruption{Path: mayor + "/" + string(damaged)}, now)
		}},
	})
}

// What is not there is said so, by every verb that names a message.
func TestUnknownMessages(t *testing.T) {
	p := newPost(t)
	none := NameAt(now, "polecat-alpha")
	if _, err := p.box.Get(none); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	if err := p.box.MarkRead(t.Context(), none); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("mark as read: %v", err)
	}
	if at := Name("nonsense").Time(); !at.IsZero() {
		t.Errorf("the time of nonsense is %v", at)
	}
}

// Limits hold to the byte and to the nanosecond.
func TestLimits(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	zero := 0
	for name, c := range map[string]struct {
		change func(*Message)
		good   bool
	}{
		"id of 200":          {func(m *Message) { m.ID = long(200) }, true},
		"type of 64":         {func(m *Message) { m.Type = Type("x-" + long(62)) }, true},
		"type of 65":         {func(m *Message) { m.Type = Type("x-" + long(63)) }, false},
		"last hop":           {func(m *Message) { m.TTL = &zero }, true},
		"task of 128":        {func(m *Message) { m.Task = json.RawMessage(`{"id":"` + long(128) + `"}`) }, true},
		"task of 129":        {func(m *Message) { m.Task = json.RawMessage(`{"id":"` + long(129) + `"}`) }, false},
		"task in upper case": {func(m *Message) { m.Task = json.RawMessage(`{"id":"A.b_c:d-1"}`) }, true},
	} {
		m := hello()
		m.Priority = Normal
		c.change(&m)
		if err := m.Validate(); (err == nil) != c.good {
			t.Errorf("%s: %v, want good %v", name, err, c.good)
		}
	}
	m := hello()
	m.Priority, m.Timestamp = Normal, now
	data, err := m.Encode(MaxSize)
	must(t, err)
	size := int64(len(data))
	if _, err := m.Encode(size); err != nil {
		t.Errorf("as large as may be: %v", err)
	}
	if _, err := m.Encode(size - 1); !errors.Is(err, state.ErrTooLarge) {
		t.Errorf("a byte more: %v", err)
	}
	for skew, good := range map[time.Duration]bool{0: true, time.Second: true, -time.Second: true, time.Second + 1: false, -time.Second - 1: false} {
		m.Timestamp = state.At(now.Add(skew))
		data, err := m.Encode(MaxSize)
		must(t, err)
		if _, err := Decode("x", "mayor", NameAt(now, m.From), data); (err == nil) != good {
			t.Errorf("a message that is %v off its name: %v", skew, err)
		}
	}
}

// Of a file that is read already a glance is enough: it takes the ordinary ones, and none that Decode refuses.
func TestGlance(t *testing.T) {
	const ordinary = `{"from":"polecat-alpha","to":"mayor","type":"coordination","subject":"s","body":"b","timestamp":"2026-03-05T10:30:00Z","read":true,"priority":"normal","ref":{"bead_id":"tt-1"}}`
	n := NameAt(now, "polecat-alpha")
	if sure, task := readAlready("mayor", n, []byte(ordinary)); !sure || task {
		t.Errorf("an ordinary one: %v, task %v", sure, task)
	}
	withTask := strings.Replace(ordinary, `"ref":`, `"task":{"id":"t"},"ref":`, 1)
	if sure, task := readAlready("mayor", n, []byte(withTask)); !sure || !task {
		t.Errorf("one with a task: %v, task %v", sure, task)
	}
	for _, change := range [][2]string{
		{"polecat-alpha", "polecat-bravo"}, {`"to":"mayor"`, `"to":"witness"`}, {`"type":"coordination"`, `"type":"Work!"`}, {`"type":"coordination"`, `"type":""`},
		{"10:30:00Z", "10:30:02Z"}, {"10:30:00Z", "10:29:58Z"}, {"2026-03-05T10:30:00Z", "soon"}, {`"2026-03-05T10:30:00Z"`, `7`},
		{`"subject":"s",`, ""}, {`"body":"b"`, `"body":null`}, {`"body":"b"`, `"body":7`}, {`"read":true`, `"read":false`}, {`"read":true,`, ""},
		{`"priority":"normal"`, `"priority":[]`}, {`"tt-1"`, `"../1"`}, {`"tt-1"`, `7`}, {`{"bead_id":"tt-1"}`, `[]`}, {`"ref":`, `"id":7,"ref":`},
		{`"ref":`, `"ttl":"x","ref":`}, {`"ref":`, `"deadline":"x","ref":`}, {"}}", "}"}, {`"subject":"s"`, `"subject":"s","subject":"t"`},
	} {
		data := strings.Replace(ordinary, change[0], change[1], 1)
		m, err := Decode("x", "mayor", n, []byte(data))
		if sure, _ := readAlready("mayor", n, []byte(data)); sure && (err != nil || !m.Read) {
			t.Errorf("it vouches for %s: %v", data, err)
		}
	}
}

// Who may decide what; anything else decides nothing.
func TestAnswerOf(t *testing.T) {
	const yes = `{"approved":true,"reason":"why"}`
	for _, c := range []struct {
		kind     Type
		from     state.AgentID
		metadata string
		decides  bool
	}{
		{PermissionResponse, state.Human, yes, true}, {PermissionResponse, "mayor", yes, false}, {PermissionResponse, "polecat-alpha", yes, false},
		{PlanResponse, state.Human, yes, true}, {PlanResponse, "mayor", yes, true}, {PlanResponse, "polecat-alpha", yes, false},
		{ShutdownResponse, "polecat-alpha", yes, true}, {Coordination, state.Human, yes, false},
		{PermissionResponse, state.Human, "", false}, {PermissionResponse, state.Human, "[]", false}, {PermissionResponse, state.Human, `{"reason":"x"}`, false},
	} {
		a, decides := AnswerOf(&Message{Type: c.kind, From: c.from, Metadata: json.RawMessage(c.metadata)}, "mayor")
		if decides != c.decides || decides && (!*a.Approved || a.Reason != "why") {
			t.Errorf("%s from %s with %q: %+v, %v", c.kind, c.from, c.metadata, a, decides)
		}
	}
	for metadata, want := range map[string]Ask{"": {}, "[]": {}, `{"rule":"Bash(ls)","no_reply":true}`: {Rule: "Bash(ls)", NoReply: true}} {
		if got := AskOf(&Message{Metadata: json.RawMessage(metadata)}); got != want {
			t.Errorf("%q asks for %+v", metadata, got)
		}
	}
}

// Only the person and the mayor end a session, and only the one they name.
func TestRequestsShutdown(t *testing.T) {
	for _, c := range []struct {
		kind    Type
		from    state.AgentID
		session state.SessionID
		want    bool
	}{
		{ShutdownRequest, state.Human, "ses-1", true}, {ShutdownRequest, "mayor", "ses-1", true}, {ShutdownRequest, "witness", "ses-1", false},
		{ShutdownRequest, state.Human, "ses-2", false}, {Coordination, state.Human, "ses-1", false},
	} {
		m := Message{Type: c.kind, From: c.from, Ref: &Ref{Session: c.session}}
		if got := m.RequestsShutdown("mayor", "ses-1"); got != c.want {
			t.Errorf("%s from %s of %s: %v", c.kind, c.from, c.session, got)
		}
	}
	if m := (&Message{Type: ShutdownRequest, From: state.Human}); m.RequestsShutdown("mayor", "") {
		t.Error("a request that names no session")
	}
}

// A step that is not legal says which are; what a requester says of a task changes nothing of it.
func TestTaskSteps(t *testing.T) {
	p := newPost(t)
	due := state.At(now.Add(time.Hour))
	thread := string(p.ask(t, "t1", func(m *Message) { m.Deadline = &due }))
	refusal := func(to TaskState) string {
		_, err := p.Send(t.Context(), update("t1", to))
		return fmt.Sprint(err)
	}
	remark := func() Message {
		m := Message{From: "mayor", To: "polecat-alpha", Type: Coordination, Subject: "by the way", Thread: thread}
		m.Task = json.RawMessage(`{"id":"t1"}`)
		e, err := NewMailbox(p.tree, "polecat-alpha").Get(p.send(t, m))
		must(t, err)
		return e.Message
	}
	if m := remark(); len(m.Task) > 0 || m.Callback == nil {
		t.Errorf("before it is taken a remark would be counted as a second request: %s, %s", m.Task, m.Callback)
	}
	if got := refusal(TaskCompleted); !strings.HasSuffix(got, "is pending and can't become completed, only accepted, rejected") {
		t.Error(got)
	}
	p.send(t, update("t1", TaskAccepted))
	m := remark()
	if task, err := m.TaskOf(); err != nil || task == nil || task.State != TaskAccepted || task.Deadline == nil || !task.Deadline.Equal(due.Time) || m.Callback == nil {
		t.Errorf("a remark has the task %s, callback %s", m.Task, m.Callback)
	}
	p.send(t, update("t1", TaskFailed))
	if got := refusal(TaskWorking); !strings.HasSuffix(got, "is failed and can't become working: it is over") {
		t.Error(got)
	}
	// A request without a state asks; the task's own deadline counts before the message's.
	m = Message{From: "mayor", To: "polecat-alpha", Type: Coordination, Subject: "please", Deadline: &now}
	must(t, m.SetTask(Task{ID: "t2", Deadline: &due}))
	asked := p.send(t, m)
	if s := p.status(t, asked); s.State != TaskPending || !s.Deadline.Equal(due.Time) {
		t.Errorf("it is %s until %v", s.State, s.Deadline)
	}
	must(t, m.SetTask(Task{ID: "t3"}))
	if s := p.status(t, p.send(t, m)); s.State != TaskPending || s.Deadline == nil || !s.Deadline.Equal(now.Time) {
		t.Errorf("it is %s until %v", s.State, s.Deadline)
	}
}

// What is late is what has a deadline before now and is not over, once each.
func TestOverdueTasks(t *testing.T) {
	p := newPost(t)
	early, late := state.At(now.Add(-time.Hour)), state.At(now.Add(time.Hour))
	p.ask(t, "never", nil)
	p.ask(t, "later", func(m *Message) { m.Deadline = &late })
	p.ask(t, "message", func(m *Message) { m.Deadline = &early })
	p.ask(t, "task", func(m *Message) { must(t, m.SetTask(Task{ID: "task", State: TaskPending, Deadline: &early})) })
	p.ask(t, "over", func(m *Message) { m.Deadline = &early })
	p.send(t, update("over", TaskRejected))
	p.send(t, Message{From: "mayor", To: "polecat-alpha", Type: Coordination, Subject: "no task", Deadline: &early})
	box := func(id state.AgentID) *Mailbox { return NewMailbox(p.tree, id) }
	_, asked, _, err := box("polecat-alpha").UnreadAndRequests()
	must(t, err)
	var got []string
	overdue, err := OverdueTasks(append(asked, asked...), now.Time, box)
	must(t, err)
	for i := range overdue {
		got = append(got, string(overdue[i].ID))
	}
	if slices.Sort(got); !slices.Equal(got, []string{"message", "task"}) {
		t.Errorf("overdue are %v", got)
	}
	if all, err := TasksFor(box("polecat-alpha"), box); err != nil || len(all) != 5 {
		t.Errorf("%d tasks, %v", len(all), err)
	}
	// Two requesters may use one word.
	m := Message{From: "witness", To: "polecat-alpha", Type: Coordination, Subject: "please", Task: json.RawMessage(`{"id":"never"}`)}
	p.send(t, m)
	if all, err := TasksFor(box("polecat-alpha"), box); err != nil || len(all) != 6 {
		t.Errorf("%d tasks of two requesters, %v", len(all), err)
	}
}

// Mail of a batch goes to whom its sender may write, in the order of the batch, also when the clock stands still.
func TestBatchOrderAndAdmission(t *testing.T) {
	p := newPost(t)
	for _, id := range []state.AgentID{"polecat-bravo", "polecat-carol"} {
		_, err := p.agents.Register(t.Context(), id, agent.Polecat, "rig", nil, now)
		must(t, err)
	}
	_, err := p.agents.Update(t.Context(), "polecat-alpha", func(a *agent.Agent) error { a.AllowFrom = []string{"polecat-bravo"}; return nil })
	must(t, err)
	to := func(from, to state.AgentID, subject string) Message {
		return Message{From: from, To: to, Type: Coordination, Subject: subject}
	}
	asked := p.send(t, to("polecat-alpha", "polecat-carol", "help?"))
	answer := to("polecat-carol", "polecat-alpha", "Re: help?")
	answer.InReplyTo = string(asked)
	earlier := to("polecat-bravo", "polecat-alpha", "earlier")
	earlier.Timestamp = state.At(now.Add(-time.Hour))
	task := to("mayor", "polecat-alpha", "task")
	task.Task = json.RawMessage(`{"id":"t1"}`)
	got, errs := p.SendAll(t.Context(), []Message{
		to("polecat-bravo", "polecat-alpha", "one"), to("polecat-carol", "polecat-alpha", "refused"), answer, earlier, task, to("polecat-carol", "polecat-alpha", "refused")})
	for i, want := range []bool{true, false, true, true, true, false} {
		if (errs[i] == nil) != want || (got[i] != "") != want {
			t.Errorf("message %d: %q, %v", i, got[i], errs[i])
		}
	}
	all, _, err := NewMailbox(p.tree, "polecat-alpha").List()
	must(t, err)
	var order []string
	for i := range all {
		order = append(order, all[i].Subject)
	}
	if want := []string{"one", "Re: help?", "earlier", "task"}; !slices.Equal(order, want) {
		t.Errorf("they come as %v, want %v", order, want)
	}
	// An answer to what another has asked is no answer.
	to3 := p.send(t, to("polecat-bravo", "polecat-carol", "and me?"))
	answer.InReplyTo = string(to3)
	if _, err := p.Send(t.Context(), answer); !errors.Is(err, state.ErrConflict) {
		t.Errorf("an answer to somebody else's mail: %v", err)
	}
	forged := answer
	answer.InReplyTo = string(asked)
	if _, errs := p.SendAll(t.Context(), []Message{answer, forged}); errs[0] != nil || !errors.Is(errs[1], state.ErrConflict) {
		t.Errorf("an answer, and one to somebody else's mail, in one batch: %v", errs)
	}
}

// Names fix what a message is: another message under the name is never taken for it.
func TestSendAsKeepsNamesApart(t *testing.T) {
	p := newPost(t)
	n := NameAt(now, "polecat-alpha")
	m := hello()
	m.ID = "one"
	must(t, p.SendAs(t.Context(), n, m))
	must(t, p.SendAs(t.Context(), n, m))
	m.ID = "two"
	if err := p.SendAs(t.Context(), n, m); !errors.Is(err, state.ErrExists) {
		t.Errorf("another message: %v", err)
	}
	damaged := NameAt(state.At(now.Add(1)), "polecat-alpha")
	p.plant(t, string(damaged), "{")
	if err := p.SendAs(t.Context(), damaged, m); !errors.Is(err, state.ErrExists) {
		t.Errorf("a damaged one: %v", err)
	}
	m.Subject = ""
	if err := p.SendAs(t.Context(), NameAt(state.At(now.Add(2)), "polecat-alpha"), m); err == nil {
		t.Error("one without a subject was sent")
	}
	m = hello()
	m.ID, m.To = "three", "nobody"
	if err := p.SendAs(t.Context(), NameAt(state.At(now.Add(3)), "polecat-alpha"), m); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("to an unknown agent: %v", err)
	}
	m = hello()
	m.Read = true
	e, err := p.box.Get(p.send(t, m))
	must(t, err)
	if e.Read {
		t.Error("it was read before it was sent")
	}
}

// The log says to which work a message belongs.
func TestLogNamesTheWork(t *testing.T) {
	p := newPost(t)
	log := event.NewLog(p.tree, fixed)
	p.WithLog(log)
	m := hello()
	m.Ref = &Ref{BeadID: "tt-1", AssignmentID: "as-1"}
	p.send(t, m)
	files, err := os.ReadDir(p.tree.Abs("state/events"))
	must(t, err)
	var text strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(p.tree.Abs(state.Path("state/events/" + f.Name())))
		must(t, err)
		text.Write(data)
	}
	if !strings.Contains(text.String(), `"tt-1"`) || !strings.Contains(text.String(), `"as-1"`) {
		t.Errorf("the log is %s", text.String())
	}
}

// The archive's copy makes a message superfluous only if nothing is lost with it.
func TestSameArchived(t *testing.T) {
	with := func(read bool, body string) *Message {
		m := hello()
		m.Read, m.Body = read, body
		return &m
	}
	for _, c := range []struct {
		here, there *Message
		want        bool
	}{
		{with(false, "a"), with(false, "a"), true}, {with(false, "a"), with(true, "a"), true}, {with(true, "a"), with(true, "a"), true},
		{with(true, "a"), with(false, "a"), false}, {with(true, "a"), with(true, "b"), false}, {with(false, "a"), with(true, "b"), false},
	} {
		if got := c.here.SameArchived(c.there); got != c.want {
			t.Errorf("read %v %q, archived read %v %q: %v", c.here.Read, c.here.Body, c.there.Read, c.there.Body, got)
		}
	}
}

// A mailbox that nobody has written to for a while has a stamp that changes with the next message.
func TestStampChangesWithTheMailbox(t *testing.T) {
	p := newPost(t)
	if stamp, err := p.box.Stamp(); err != nil || stamp != (state.Stamp{}) {
		t.Errorf("without a folder: %+v, %v", stamp, err)
	}
	p.send(t, hello())
	if stamp, err := p.box.Stamp(); err != nil || stamp != (state.Stamp{}) {
		t.Errorf("right after a change: %+v, %v", stamp, err)
	}
	must(t, os.RemoveAll(p.tree.Abs(p.box.Dir())))
	must(t, os.WriteFile(p.tree.Abs(p.box.Dir()), nil, 0o600))
	if _, err := p.box.Stamp(); err == nil {
		t.Error("a file in the place of the folder is no error")
	}
}
