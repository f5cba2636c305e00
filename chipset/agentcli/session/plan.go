package session

import (
	"errors"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/state"
)

// beforeChange refuses what would change something while the assignment's plan
// must be approved first: tools that edit, and commands that are not known to
// only read.
func (h *Hooks) beforeChange() (agentcli.Answer, error) {
	tool := &h.in.Tool
	if h.Assignment == "" || tool.Does != agentcli.Edits && tool.Does != agentcli.Runs {
		return agentcli.Answer{}, nil
	}
	if tool.Does == agentcli.Runs && tool.Given != "" && onlyReads(tool.Given) {
		return agentcli.Answer{}, nil
	}
	err := actor.CheckPlan(h.Rig, h.Agent, h.Assignment)
	if errors.Is(err, actor.ErrNoPlan) {
		return agentcli.Answer{Deny: quote.Sprintf("%s, so nothing is changed yet: look around with commands that only read, "+
			"and send your plan first: chipset request plan --wait 90s --body-file - <<'END'", quote.Line(err.Error(), 500))}, nil
	}
	if errors.Is(err, state.ErrRefused) {
		return undecided(err), nil
	}
	return agentcli.Answer{}, err
}
