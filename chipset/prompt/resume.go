package prompt

import (
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// Interrupted is what a worker is told that something else than itself has ended; why is one line.
func Interrupted(id state.AgentID, b *bead.Bead, target, why string) quote.Text {
	var p quote.Builder
	p.Addf("You are %s, and bead %s is still on your hook. What happened: %s.\n", id, b.ID, why)
	p.Add("Go on where you stopped; the worktree is as you left it. A command that was running may have been cut off.\n\n")
	writeReporting(&p, &Assignment{Agent: id, Bead: *b, Target: target})
	return p.Text()
}

// Resume is what a worker is told whose session ended before its work was through.
// It remembers the assignment; why is the reason, and quotes its client. One that
// waited for answers is given them instead.
func Resume(id state.AgentID, b *bead.Bead, target, why string, answers quote.Text) quote.Text {
	var p quote.Builder
	if answers != "" {
		p.Addf("You are %s, and bead %s is still on your hook. You waited for an answer, and it is here.\n\n%s\n", id, b.ID, answers)
		p.Add("Go on where you stopped; the worktree is as you left it.\n\n")
		writeReporting(&p, &Assignment{Agent: id, Bead: *b, Target: target})
		return p.Text()
	}
	p.Addf(`You are %s, and bead %s is still on your hook: your last turn ended, but the work
was neither finished nor reported.

<why>
`, id, b.ID)
	writeNote(&p, why)
	p.Add(`</why>

Go on where you stopped; the worktree is as you left it. If everything is done and
committed, report it. If you were refused something, find another way; where there is
none, ask the person for exactly that (chipset request permission 'Bash(THE COMMAND)' --reason WHY)
and end your turn, or give it back with chipset block. Ending your turn without a report is no answer.

`)
	writeReporting(&p, &Assignment{Agent: id, Bead: *b, Target: target})
	return p.Text()
}
