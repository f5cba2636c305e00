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

// permission answers a client that asks whether it may use a tool. A worker's client has
// nobody to ask. What the person has granted is allowed; otherwise the agent is told how to
// ask or, with worker.permissions: ask, the person is asked at once.
func (h *Hooks) permission(ctx context.Context) (agentcli.Answer, error) {
	item, active := h.work(h.Agent)
	if h.Assignment == "" || !active {
		return agentcli.Answer{}, nil
	}
	rules := rulesOf(&h.in.Tool)
	if len(rules) == 0 {
		return agentcli.Answer{Deny: "This is not permitted here, and it is too long to ask a person: only a rule that fits on one line can be asked for."}, nil
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

// undecided is the answer while a message that may hold the decision can't be read.
func undecided(err error) agentcli.Answer {
	return agentcli.Answer{Deny: quote.Sprintf("The mail that may say whether this is permitted can't be read, so it is not: %s"+
		". Go on with what needs no permission, or end with chipset block --reason.", quote.Line(err.Error(), 500))}
}

// asks reports whether the rig passes questions of its clients on to the person.
func (h *Hooks) asks() bool {
	return h.Rig.Def != nil && h.Rig.Def.Worker.Permissions == agentcli.PermissionAsk
}

// rulesOf lists the rules that permit a tool call, the one to ask for first: the tool
// with its input, for commands and files also the input alone, and for other tools also
// their name alone. There is none if the input does not fit into a rule.
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

// quoted quotes a word of the agent's own call for a shell, for the agent to copy.
func quoted(word string) quote.Text {
	q, err := syntax.Quote(word, syntax.LangPOSIX)
	if err != nil {
		return "'RULE'" // control characters, which no rule should have
	}
	return quote.Text(q)
}
