package session

import (
	"context"
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/permission"
)

// permission answers a client that would ask its person whether a tool may be
// used. A worker has nobody to show that question to: what the person has granted
// is allowed, for the rest the agent is told how to ask, or, where the rig's workers
// are to ask, the person is asked at once.
func (h *Hooks) permission(ctx context.Context) (agentcli.Answer, error) {
	item, active := h.work(h.Agent)
	if h.Assignment == "" || !active {
		return agentcli.Answer{}, nil
	}
	rules := rulesOf(&h.in.Tool)
	if len(rules) == 0 {
		return agentcli.Answer{Deny: "This is not permitted here, and too long to ask a person for it: only what fits on one line can be asked for."}, nil
	}
	ruling, err := actor.RulingOn(h.Rig, h.Agent, &item, rules)
	if errors.Is(err, state.ErrRefused) {
		return undecided(err), nil
	}
	if err != nil {
		return agentcli.Answer{}, err
	}
	switch {
	case ruling.Decision == permission.Approve:
		return agentcli.Answer{Allow: true}, nil
	case ruling.Decision == permission.Deny:
		return agentcli.Answer{Deny: denied(ruling.Reason)}, nil
	case ruling.Asked == "" && !h.asks():
		return agentcli.Answer{Deny: quote.Sprintf("This is not permitted here. Find another way. Where there is none, ask the person for exactly this, and end your turn: "+
			"chipset request permission %s --reason WHY", quoted(rules[0]))}, nil
	case ruling.Asked == "":
		me := actor.Actor{Rig: h.Rig, ID: h.Agent, Session: h.Session, Assignment: h.Assignment}
		if ruling.Asked, _, err = me.RequestPermission(ctx, rules[0], "Its client asks before it does this."); err != nil {
			return agentcli.Answer{}, err
		}
	}
	return agentcli.Answer{Deny: quote.Sprintf("The person has been asked whether you may (message %s). Go on with what needs no permission, or end your turn: "+
		"you will be continued with the answer.", ruling.Asked)}, nil
}

// undecided is the answer while the system refuses to read a message that may hold
// the decision.
func undecided(err error) agentcli.Answer {
	return agentcli.Answer{Deny: quote.Sprintf("The mail that may say whether this is permitted can't be read, so it is not: %s"+
		". Go on with what needs no permission, or end with chipset block --reason.", quote.Line(err.Error(), 500))}
}

// asks reports whether what the clients of this rig ask about is put to the person.
func (h *Hooks) asks() bool {
	return h.Rig.Def != nil && h.Rig.Def.Worker.Permissions == agentcli.PermissionAsk
}

// rulesOf are the rules that permit a call of a tool, the one to ask for first:
// the tool with the whole of what it is given, for commands and files also that
// alone, and for other tools also their name alone. None if no rule can say it.
func rulesOf(tool *agentcli.Tool) []string {
	given, short := strings.TrimSpace(tool.Given), tool.Name
	if tool.Does == agentcli.Runs || tool.Does == agentcli.Edits {
		short = given
	}
	var rules []string
	for _, rule := range []string{tool.Name + "(" + given + ")", short} {
		if given != "" && permission.CheckRule(rule) == nil {
			rules = append(rules, rule)
		}
	}
	return rules
}

func denied(reason string) quote.Text {
	if reason == "" {
		return "The person has denied this. Find another way."
	}
	return quote.Sprintf("The person has denied this: %s. Find another way.", reason)
}

// quoted is a word for a shell, of the agent's own call: it is given back as it was written,
// for the agent to copy.
func quoted(word string) quote.Text {
	q, err := syntax.Quote(word, syntax.LangPOSIX)
	if err != nil {
		return "'RULE'" // control characters, which no rule should have
	}
	return quote.Text(q)
}
