package execute

import (
	"testing"

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
