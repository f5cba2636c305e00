package mail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

// Where the folder of a mailbox, or its archive, can't be read, each verb that asks it says so: nothing is taken for
// absent, delivered twice, or moved.
func TestSpoiltFolders(t *testing.T) {
	keyed := func(id string) Message {
		m := hello()
		m.ID = id
		return m
	}
	task := func(id string) Message {
		m := hello()
		m.Task = json.RawMessage(`{"id":"` + id + `"}`)
		return m
	}
	for _, spoilt := range []string{"mailbox", "archive"} {
		p := newPost(t)
		first, second := p.send(t, keyed("one")), p.send(t, hello())
		must(t, p.box.MarkRead(t.Context(), first))
		p.ask(t, "t7", nil)
		dir := p.tree.Abs(p.box.Dir())
		if spoilt == "archive" {
			dir = p.tree.Abs(p.box.path(first, true).Dir())
		}
		must(t, os.RemoveAll(dir))
		must(t, os.WriteFile(dir, nil, 0o600))
		verbs := map[string]func() error{
			"send":            func() error { _, err := p.Send(t.Context(), hello()); return err },
			"send with an ID": func() error { _, err := p.Send(t.Context(), keyed("two")); return err },
			"send under a name": func() error {
				return p.SendAs(t.Context(), NameAt(state.At(now.Add(time.Hour)), "polecat-alpha"), keyed("three"))
			},
			"send all":       func() error { _, errs := p.SendAll(t.Context(), []Message{keyed("four")}); return errs[0] },
			"send of a task": func() error { _, err := p.Send(t.Context(), task("t1")); return err },
			"accept":         func() error { _, err := p.Send(t.Context(), update("t7", TaskAccepted)); return err },
			"drop":           func() error { return p.box.DropArchived(t.Context(), first) },
			"get":            func() error { _, err := p.box.Get("2026-03-05T09-30-00Z-witness.json"); return err },
			"task": func() error {
				_, err := TaskStatusOf(p.box, &Entry{Message: Message{From: "mayor", To: "polecat-alpha", Task: task("t1").Task}})
				return err
			},
			"archive": func() error {
				names, err := p.box.ArchiveOld(t.Context(), "mayor", fixed().Add(time.Hour), true)
				if len(names) > 0 {
					t.Errorf("%s: archived %v", spoilt, names)
				}
				return err
			},
		}
		if spoilt == "mailbox" {
			verbs["list"] = func() error { _, _, err := p.box.List(); return err }
			verbs["unread"] = func() error { _, _, err := p.box.Unread(); return err }
			verbs["unread and requests"] = func() error { _, _, _, err := p.cold().UnreadAndRequests(); return err }
			verbs["tasks"] = func() error {
				_, err := TasksFor(p.box, func(id state.AgentID) *Mailbox { return NewMailbox(p.tree, id) })
				return err
			}
			verbs["stamp"] = func() error { _, err := p.box.Stamp(); return err }
			verbs["mark"] = func() error { return p.box.MarkRead(t.Context(), second) }
			verbs["select"] = func() error {
				_, err := p.box.Select(false, func(state.Time, state.AgentID) bool { return true })
				return err
			}
		} else {
			verbs["list the archive"] = func() error { _, _, err := p.box.Archive(); return err }
		}
		for name, verb := range verbs {
			// ErrExists would make the caller try other names forever.
			if err := verb(); err == nil || errors.Is(err, state.ErrExists) {
				t.Errorf("%s spoilt: %s: %v", spoilt, name, err)
			}
		}
	}
}

// A field that can't be read, or says what no message says, makes a file damaged.
func TestDamagedFields(t *testing.T) {
	for _, wrong := range []string{`"ref":5`, `"type":"No such"`, `"type":""`, `"timestamp":"2026-03-05T10:30:01.000000001Z"`, `"to":"witness"`, `"from":"witness"`, `"priority":null`} {
		text := fmt.Sprintf(foreign, "polecat-alpha", "2026-03-05T10:30:00Z")
		data := []byte(text[:len(text)-1] + "," + wrong + "}")
		if m, err := Decode("p", "mayor", "2026-03-05T10-30-00Z-polecat-alpha.json", data); !errors.Is(err, state.ErrCorrupt) {
			t.Errorf("%s: %+v, %v", wrong, m, err)
		}
	}
}

// A task whose request names no state is asked for, and has the deadline of its message.
func TestTaskWithoutAState(t *testing.T) {
	p := newPost(t)
	due := state.At(now.Add(time.Hour))
	m := hello()
	m.Task, m.Deadline = json.RawMessage(`{"id":"t1"}`), &due
	s, err := TaskStatusOf(NewMailbox(p.tree, "polecat-alpha"), &Entry{Message: m})
	if err != nil || s.State != TaskPending || s.Deadline == nil || !s.Deadline.Equal(due.Time) {
		t.Errorf("%+v, %v", s, err)
	}
	e, err := p.box.Get(p.send(t, m))
	must(t, err)
	if asked, err := e.TaskOf(); err != nil || asked.State != TaskPending || asked.Deadline == nil || !asked.Deadline.Equal(due.Time) {
		t.Errorf("sent as %+v, %v", asked, err)
	}
	if next, err := OverdueTasks([]Entry{e, {Message: hello()}, {Message: Message{Task: json.RawMessage("5")}}}, due.Add(time.Second), func(id state.AgentID) *Mailbox { return NewMailbox(p.tree, id) }); err != nil || len(next) != 1 {
		t.Errorf("overdue: %+v, %v", next, err)
	}
}

// What is processed next is told by the kind of message and its urgency, and then by its time.
func TestProcessedByTime(t *testing.T) {
	at := func(n int) Entry {
		m := hello()
		m.Timestamp = state.At(now.Add(time.Duration(n)))
		return Entry{Name: NameAt(m.Timestamp, m.From), Message: m}
	}
	all := []Entry{at(3), at(1), at(2)}
	SortForProcessing(all, "mayor")
	if got := names(all); got != names([]Entry{at(1), at(2), at(3)}) {
		t.Errorf("in the order %s", got)
	}
}

// A recipient that does not exist gets nothing under a fixed name either, a task is not sent by who can't be read, and
// an archival ends with its context.
func TestRefusedAsAnyOther(t *testing.T) {
	p := newPost(t)
	m := hello()
	m.To, m.ID = "nobody", "one"
	if err := p.SendAs(t.Context(), NameAt(now, m.From), m); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("to nobody: %v", err)
	}
	must(t, p.box.MarkRead(t.Context(), p.send(t, hello())))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if names, err := p.box.ArchiveOld(over, "mayor", fixed().Add(time.Hour), false); !errors.Is(err, context.Canceled) || len(names) > 0 {
		t.Errorf("archived %v, %v", names, err)
	}
	own := p.tree.Abs(NewMailbox(p.tree, "polecat-alpha").Dir())
	must(t, os.RemoveAll(own))
	must(t, os.WriteFile(own, nil, 0o600))
	m = hello()
	m.Task = json.RawMessage(`{"id":"t1"}`)
	if n, err := p.Send(t.Context(), m); err == nil {
		t.Errorf("sent as %s", n)
	}
}

// A cache that was written shortly after a change is no proof that nothing changed since: a later change may have left
// the same times.
func TestCacheOfAFreshFolder(t *testing.T) {
	p := newPost(t)
	p.fill(t, 3, 1)
	b := p.cold()
	unreadOf(t, b)
	dir, err := p.tree.OpenFolder(b.Dir())
	must(t, err)
	defer dir.Close()
	stamp, err := dir.Stamp()
	must(t, err)
	for _, settled := range []bool{true, false} {
		b.store(stamp, settled, 3)
		if live, unchanged := p.cold().load(stamp); unchanged != settled || settled && len(live) != 1 {
			t.Errorf("settled %v: unchanged %v, %v", settled, unchanged, live)
		}
	}
}
