package execute

import (
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
	// Its folder is not there to be synced.
	if err := in.settle(mail.NewMailbox(r.Tree, "nobody"), seen); err == nil {
		t.Error("settled without a sync")
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
}
