package execute

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// What a role tells arrives, fit for who reads it; what can never arrive is logged and counts as told; anything else is an error.
func TestTelling(t *testing.T) {
	r := rigtest.New(t, "")
	var said []string
	b := newBase(Agent{Rig: r, ID: "mayor", Session: "ses-1", Say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }})
	ctx := t.Context()
	last := func(to state.AgentID) mail.Entry {
		t.Helper()
		all, _, err := r.Mailbox(to).List()
		if err != nil || len(all) == 0 {
			t.Fatal(len(all), err)
		}
		return all[len(all)-1]
	}
	logged := func(kind, text string) {
		t.Helper()
		events, _, _, err := r.Events.Read(event.Position{}, time.Time{})
		rigtest.Must(t, err)
		for _, e := range events {
			if e.Type == kind && strings.Contains(e.Text, text) {
				return
			}
		}
		t.Errorf("no event %s says %q", kind, text)
	}
	// Mail.
	rigtest.Must(t, b.do(ctx, roles.Send{Message: mail.Message{To: state.Human, Type: mail.Coordination, Subject: "two\nlines", Body: "x"}}))
	if got := last(state.Human).Subject; got != "two lines" && got != "two" || len(said) != 1 || !strings.Contains(said[0], "told human: two") {
		t.Errorf("subject %q, said %q", got, said)
	}
	rigtest.Must(t, b.do(ctx, roles.Send{Message: mail.Message{To: "witness", Type: mail.Coordination, Subject: "long", Body: strings.Repeat("x", 4<<20)}}))
	if got := last("witness"); got.Subject != "long" || !strings.Contains(got.Body, "larger than a message may be") {
		t.Errorf("%q: %.80q", got.Subject, got.Body)
	}
	rigtest.Must(t, b.do(ctx, roles.Send{Message: mail.Message{To: "nobody", Type: mail.Coordination, Subject: "lost", Body: "x"}}))
	logged("mail.undeliverable", "lost")
	rigtest.Must(t, b.undeliverable("witness", "huge", state.ErrTooLarge))
	logged("mail.undeliverable", "huge")
	rigtest.Must(t, b.undeliverable("witness", "retired", state.Conflictf("witness", "it takes no mail")))
	logged("mail.undeliverable", "retired")
	if err := b.undeliverable("witness", "x", state.ErrLockTimeout); !errors.Is(err, state.ErrLockTimeout) {
		t.Errorf("a lock: %v", err)
	}
	// Mail under a name that a record fixes: where it is taken, nothing is sent before the next one is fixed.
	name := last(state.Human).Name
	m := mail.Message{To: state.Human, Type: mail.Coordination, Subject: "named\nso", Body: "x", ID: "named"}
	broken := errors.New("no disk")
	if err := b.sendAs(ctx, name, m, func(mail.Name) error { return broken }); !errors.Is(err, broken) || last(state.Human).ID == "named" {
		t.Errorf("without a name: %v, %+v", err, last(state.Human))
	}
	var fixed mail.Name
	rigtest.Must(t, b.sendAs(ctx, name, m, func(n mail.Name) error { fixed = n; return nil }))
	if got := last(state.Human); got.Name != fixed || strings.Contains(got.Subject, "\n") || got.From != "mayor" {
		t.Errorf("%+v, the record says %s", got, fixed)
	}
	// Nudges.
	long := roles.Nudge{To: "witness", Nudge: nudge.Nudge{Type: nudge.PriorityChange, Message: strings.Repeat("x", 2*nudge.MaxMessage)}}
	rigtest.Must(t, b.do(ctx, long))
	long.To, long.Nudge.Message = "nobody", "lost too"
	rigtest.Must(t, b.do(ctx, long))
	logged("mail.undeliverable", "lost too")
	long.To = state.Human
	rigtest.Must(t, b.do(ctx, long))
	if n, err := r.Slot(state.Human).Latest(); err != nil || n.Message != "lost too" {
		t.Errorf("the person's nudge: %+v, %v", n, err)
	}
	slot := r.Tree.Abs(r.Slot("witness").Dir())
	rigtest.Must(t, os.Rename(slot, slot+".aside"))
	rigtest.Must(t, os.WriteFile(slot, nil, 0o600))
	if long.To = "witness"; b.do(ctx, long) == nil {
		t.Error("a nudge that has no place is one")
	}
	// What is retired with a note is told.
	_, err := r.Sender.Send(ctx, mail.Message{From: state.Human, To: "mayor", Type: mail.Coordination, Subject: "stale", Body: "x"})
	rigtest.Must(t, err)
	rigtest.Must(t, b.do(ctx, roles.MarkRead{Entry: last("mayor"), Note: "of an earlier session"}))
	logged("mail.stale", "of an earlier session")
	if err := b.do(ctx, roles.MarkRead{Entry: mail.Entry{Name: "2020-01-01T00-00-00Z-human.json"}}); err == nil {
		t.Error("mail that is not there is read")
	}
	if err := b.do(ctx, deed{}); err == nil {
		t.Error("an action that nobody knows is done")
	}
}

// Who was working while objects were deleted is named: the attempt that has ended first, then others at work, each once.
func TestWorkingMeanwhile(t *testing.T) {
	k := newKennel(t, "")
	a := k.dead()
	item := *k.hook().WorkItem
	other := event.Work{Bead: "tt-other", Assignment: "as-other"}
	here := "polecat-alpha was working on " + string(item.BeadID)
	for _, c := range []struct {
		ended event.Work
		want  string
	}{
		{event.Work{}, here},
		{event.Work{Bead: item.BeadID, Assignment: a}, here},
		{other, "polecat-alpha was working on tt-other, " + here},
	} {
		if got := strings.Join(k.p.working(c.ended), ", "); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	_, err := k.rig.Hooks.Complete(t.Context(), alpha, a, "", k.rig.Clock.Now())
	k.fail(err)
	if got := k.p.working(event.Work{}); len(got) > 0 || !k.hookIs(hook.Completed)() {
		t.Errorf("nobody works: %q", got)
	}
}

// Old mail that was read goes to the archive, all of it in ticks that follow one another, and then once in a while, whatever the clock does.
func TestInboxArchives(t *testing.T) {
	now := time.Now()
	r := rigtest.NewAt(t, "", func() time.Time { return now })
	const many = 130 // more than one slice
	send := func(n int) {
		t.Helper()
		for range n {
			name, err := r.Sender.Send(t.Context(), mail.Message{From: state.Human, To: "mayor", Type: mail.Coordination, Subject: "x", Body: "x"})
			rigtest.Must(t, err)
			rigtest.Must(t, r.Mailbox("mayor").MarkRead(t.Context(), name))
			now = now.Add(time.Second)
		}
	}
	in := newInbox(Agent{Rig: r, ID: "mayor", Say: t.Logf})
	left := func(when string, ticks, want int) {
		t.Helper()
		for range ticks {
			_, err := in.mail(t.Context(), "mayor")
			rigtest.Must(t, err)
		}
		files, err := filepath.Glob(filepath.Join(r.Tree.Abs(r.Mailbox("mayor").Dir()), "*.json"))
		if err != nil || len(files) != want {
			t.Errorf("%s: %d letters are left, want %d: %v", when, len(files), want, err)
		}
	}
	send(many)
	now = now.Add(r.Def.Mail.Retention + time.Hour)
	send(1)
	left("after two ticks", 2, 1)
	if !in.archived.Equal(now) {
		t.Error("it looks for old mail with every tick")
	}
	now = now.Add(r.Def.Mail.Retention + time.Minute)
	in.archived = now.Add(-archiveInterval + time.Second)
	left("before the interval is over", 1, 1)
	in.archived = now.Add(time.Hour)
	left("with a clock that was set back", 1, 0)
}
