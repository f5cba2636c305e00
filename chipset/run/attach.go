package run

import (
	"context"
	"os"

	"github.com/gastown-chipset/chipset/chipset/execute"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
)

// Attachment says whose session a person takes over, and where.
type Attachment struct {
	Agent state.AgentID
	// Self is the path of this binary, for the supervisor of the client.
	Self     string
	Terminal *os.File
	// Say prints one line, before the client has the terminal.
	Say func(format string, args ...any)
}

// Attach takes the session of a polecat's worker over, until the person leaves it. It returns what
// execute.Polecat.Attach does.
func Attach(ctx context.Context, r *rig.Rig, a Attachment) error {
	p := execute.NewPolecat(execute.Agent{Rig: r, ID: a.Agent, Session: state.NewSessionID(), Self: a.Self, Say: a.Say})
	defer p.Close()
	return p.Attach(ctx, a.Terminal)
}
