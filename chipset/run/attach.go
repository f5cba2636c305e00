package run

import (
	"context"
	"os"

	"github.com/gastown-chipset/chipset/chipset/execute"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
)

// Attachment holds the options of Attach.
type Attachment struct {
	Agent state.AgentID
	// Self is the path of this binary, for the supervisor of the client.
	Self     string
	Terminal *os.File
	// Say prints one line before the client takes the terminal.
	Say func(format string, args ...any)
}

// Attach takes over the session of a polecat's worker until the person leaves it. Errors: those of
// execute.Polecat.Attach.
func Attach(ctx context.Context, r *rig.Rig, a Attachment) error {
	p := execute.NewPolecat(execute.Agent{Rig: r, ID: a.Agent, Session: state.NewSessionID(), Self: a.Self, Say: a.Say})
	defer p.Close()
	return p.Attach(ctx, a.Terminal)
}
