package execute

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

// TestNothingIsHandledBeforeItIsDurable: a message is seen before its sender has
// synced it; nobody acts on it when it can't be made to survive.
func TestNothingIsHandledBeforeItIsDurable(t *testing.T) {
	r := rigtest.New(t, "")
	in := newInbox(Agent{Rig: r, ID: "mayor", Say: t.Logf})
	seen := []mail.Entry{{Name: mail.NameAt(r.Clock.Now(), state.Human)}}
	nobody := mail.NewMailbox(r.Tree, "nobody") // its folder is not there to be synced
	if err := in.settle(nobody, seen); err == nil {
		t.Error("settled without a sync")
	}
	rigtest.Must(t, r.Tree.MkdirAll(r.Mailbox("mayor").Dir()))
	rigtest.Must(t, in.settle(r.Mailbox("mayor"), seen))
	rigtest.Must(t, in.settle(nobody, seen)) // they are known to be durable
	later := append(seen, mail.Entry{Name: mail.NameAt(r.Clock.Now(), "witness")})
	for range 2 {
		if err := in.settle(nobody, later); err == nil {
			t.Error("a message that came later is settled without a sync")
		}
	}
}

// What can't be moved away, damaged or old, keeps nobody from the mail that is there. Urgent mail comes first.
func TestInboxGoesOn(t *testing.T) {
	now := time.Now()
	r := rigtest.NewAt(t, "", func() time.Time { return now })
	send := func(subject string, p mail.Priority) mail.Name {
		n, err := r.Sender.Send(t.Context(), mail.Message{From: state.Human, To: "mayor", Type: mail.Coordination, Priority: p, Subject: subject, Body: "x"})
		rigtest.Must(t, err)
		now = now.Add(time.Second)
		return n
	}
	old := send("old", mail.Normal)
	rigtest.Must(t, r.Mailbox("mayor").MarkRead(t.Context(), old))
	now = now.Add(r.Def.Mail.Retention + time.Hour)
	send("first", mail.Normal)
	send("second", mail.Urgent)
	box := r.Tree.Abs(r.Mailbox("mayor").Dir())
	for _, file := range []string{filepath.Join(box, "2026-03-05T10-30-00Z-witness.json"), filepath.Join(box, "archive"), r.Tree.Abs(state.QuarantineDir)} {
		rigtest.Must(t, os.RemoveAll(file))
		rigtest.Must(t, os.WriteFile(file, []byte("{"), 0o600))
	}
	var said []string
	in := newInbox(Agent{Rig: r, ID: "mayor", Say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }})
	got, err := in.mail(t.Context(), "mayor")
	if err != nil || len(got) != 2 || got[0].Subject != "second" || got[1].Subject != "first" {
		t.Errorf("%v: %+v", err, got)
	}
	for _, want := range []string{"can't quarantine", "can't archive"} {
		if !strings.Contains(strings.Join(said, "\n"), want) {
			t.Errorf("said %q, not %q", said, want)
		}
	}
}

// A request to end that names no session is meant for the process that runs when it is sent.
func TestRequestToEndWithoutASession(t *testing.T) {
	r := rigtest.New(t, "")
	in := newInbox(Agent{Rig: r, ID: "mayor", Session: "ses-me", Say: t.Logf})
	request := func(at time.Duration, ref *mail.Ref) mail.Entry {
		return mail.Entry{Message: mail.Message{From: state.Human, Type: mail.ShutdownRequest, Timestamp: state.At(in.since.Add(at)), Ref: ref}}
	}
	all := []mail.Entry{request(0, nil), request(time.Second, &mail.Ref{BeadID: "gt-aaaaa"}), request(-time.Second, nil), request(time.Second, &mail.Ref{Session: "ses-before"})}
	in.address(all)
	for i, want := range []bool{true, true, false, false} {
		if got := all[i].RequestsShutdown("mayor", "ses-me"); got != want {
			t.Errorf("request %d: obeyed %v, want %v", i, got, want)
		}
	}
	_, err := r.Sender.Send(t.Context(), mail.Message{From: state.Human, To: "mayor", Type: mail.ShutdownRequest, Subject: "end"})
	rigtest.Must(t, err)
	if got, err := in.mail(t.Context(), "mayor"); err != nil || len(got) != 1 || !got[0].RequestsShutdown("mayor", "ses-me") {
		t.Errorf("%v: %+v", err, got)
	}
}
