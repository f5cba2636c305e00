package actor

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

func get(t *testing.T, s *Actor, n mail.Name) *mail.Entry {
	t.Helper()
	e, err := s.Own(string(n))
	rigtest.Must(t, err)
	return &e
}

func TestActorIsWhoItIs(t *testing.T) {
	r := rigtest.New(t, "")
	n, err := as(r, "polecat-alpha").SendMail(t.Context(), mail.Message{From: "human", Subject: "s", Read: true, Timestamp: state.At(time.Unix(1, 0))}, "mayor")
	rigtest.Must(t, err)
	e := get(t, as(r, "mayor"), n)
	if e.From != "polecat-alpha" || e.Read || e.Timestamp.Year() == 1970 {
		t.Errorf("stored %+v", e.Message)
	}
	if _, err := as(r, "polecat-alpha").SendMail(t.Context(), mail.Message{Type: mail.ShutdownRequest, Subject: "end"}, "polecat-bravo"); !errors.Is(err, state.ErrConflict) {
		t.Errorf("a polecat asks another to end: %v", err)
	}
}

// TestForwardEnds: a message that is passed on carries its task and callback,
// never comes back, and runs out of hops.
func TestForwardEnds(t *testing.T) {
	r := rigtest.New(t, "")
	alpha, bravo, mayor := as(r, "polecat-alpha"), as(r, "polecat-bravo"), as(r, "mayor")
	m := mail.Message{Subject: "please", Body: "do it", Callback: json.RawMessage(`{"session_id":"s1"}`)}
	rigtest.Must(t, m.SetTask(mail.Task{ID: "t1"}))
	n, err := mayor.SendMail(t.Context(), m, "polecat-alpha")
	rigtest.Must(t, err)
	n, err = alpha.Forward(t.Context(), get(t, alpha, n), "can you?", "polecat-bravo")
	rigtest.Must(t, err)
	e := get(t, bravo, n)
	task, err := e.TaskOf()
	rigtest.Must(t, err)
	if *e.TTL != DefaultTTL-1 || len(e.Trace) != 2 || task.State != mail.TaskPending || string(e.Callback) == "" || e.Subject != "Fwd: please" {
		t.Errorf("passed on as %+v", e.Message)
	}
	for _, back := range []string{"mayor", "polecat-alpha", "polecat-bravo"} {
		if _, err := bravo.Forward(t.Context(), e, "", back); !errors.Is(err, state.ErrConflict) {
			t.Errorf("passed back to %s: %v", back, err)
		}
	}
	// The one it was passed to reports to who passed it on, as often as it likes.
	for _, to := range []mail.TaskState{mail.TaskAccepted, mail.TaskWorking, mail.TaskCompleted} {
		n, err := bravo.Reply(t.Context(), e, Answer{Body: string(to), State: to})
		rigtest.Must(t, err)
		if got := get(t, alpha, n); string(got.Callback) == "" || *got.TTL != *e.TTL {
			t.Errorf("%s is reported as %+v", to, got.Message)
		}
	}
	if _, err := bravo.Reply(t.Context(), e, Answer{Body: "anything else?"}); err != nil {
		t.Errorf("an answer to who passed it on: %v", err)
	}
	none := 0
	e.TTL = &none
	if _, err := bravo.Forward(t.Context(), e, "", "witness"); !errors.Is(err, ErrHops) {
		t.Errorf("without hops: %v", err)
	}
}

func TestReplyKeepsTheTask(t *testing.T) {
	r := rigtest.New(t, "")
	alpha, mayor := as(r, "polecat-alpha"), as(r, "mayor")
	m := mail.Message{Subject: "please"}
	rigtest.Must(t, m.SetTask(mail.Task{ID: "t1", State: mail.TaskPending}))
	n, err := mayor.SendMail(t.Context(), m, "polecat-alpha")
	rigtest.Must(t, err)
	asked := get(t, alpha, n)
	question, err := alpha.Reply(t.Context(), asked, Answer{Body: "which?"})
	rigtest.Must(t, err)
	if _, err := alpha.Reply(t.Context(), asked, Answer{Body: "done", State: mail.TaskCompleted}); !errors.Is(err, state.ErrConflict) {
		t.Errorf("completed before it was accepted: %v", err)
	}
	_, err = mayor.Reply(t.Context(), get(t, mayor, question), Answer{Body: "that one"})
	rigtest.Must(t, err)
	if _, err := mayor.Reply(t.Context(), get(t, mayor, question), Answer{Body: "done", State: mail.TaskCompleted}); !errors.Is(err, state.ErrConflict) {
		t.Errorf("the requester completed it: %v", err)
	}
	_, err = alpha.Reply(t.Context(), asked, Answer{Body: "yes", State: mail.TaskAccepted})
	rigtest.Must(t, err)
	plain, err := mayor.SendMail(t.Context(), mail.Message{Subject: "no task"}, "polecat-alpha")
	rigtest.Must(t, err)
	if _, err := alpha.Reply(t.Context(), get(t, alpha, plain), Answer{State: mail.TaskAccepted}); !errors.Is(err, state.ErrConflict) {
		t.Errorf("accepted what is no task: %v", err)
	}
}
