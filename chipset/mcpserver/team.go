package mcpserver

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state/permission"
)

type planArgs struct {
	Plan    string `json:"plan" jsonschema:"what you are going to do, step by step"`
	Seconds int    `json:"timeout_seconds,omitempty" jsonschema:"how long to wait for the decision: 0 to 600; 0 does not wait"`
}

type permissionArgs struct {
	Rule    string `json:"rule" jsonschema:"on one line and word by word what you want to do, such as Bash(npm publish)"`
	Reason  string `json:"reason,omitempty" jsonschema:"what it is for"`
	Seconds int    `json:"timeout_seconds,omitempty" jsonschema:"how long to wait for the decision: 0 to 600; 0 does not wait"`
}

func (s *Server) addTeamTools() {
	add(s, tool{name: "agents_list", title: "List the agents", effect: reads,
		description: "Who belongs to the rig: role, status, whether it runs, what it can do and who may write to it."}, listAgents)
	add(s, tool{name: "request_plan", title: "Have a plan approved", effect: adds,
		description: "Send your plan to the mayor or the person, and change nothing before it is approved. No tool of this server approves one."}, requestPlan)
	add(s, tool{name: "request_permission", title: "Ask for a permission", effect: adds,
		description: "Ask the person for a permission. What they have decided for good is answered at once. No tool of this server grants one."}, requestPermission)
}

func listAgents(_ context.Context, me *actor.Actor, _ none) (quote.Text, error) {
	all, _, err := me.Agents.All()
	if err != nil {
		return "", err
	}
	var lines []quote.Text
	for i := range all {
		a := &all[i]
		line := quote.Sprintf("%s (%s): %s", a.ID, a.Role, a.Status)
		if _, alive := me.Alive(a.ID); alive {
			line += ", runs"
		}
		if len(a.Capabilities) > 0 {
			line += quote.Sprintf("; can %s", quote.Line(strings.Join(a.Capabilities, ", "), 200))
		}
		if a.Description != "" {
			line += quote.Sprintf("; %s", quote.Line(a.Description, 200))
		}
		if !a.Accepts(me.ID) {
			line += "; does not take mail from you"
		}
		lines = append(lines, line)
	}
	return listed(lines, 100, "No agents.", "status shows them all"), nil
}

func requestPlan(ctx context.Context, me *actor.Actor, in planArgs) (quote.Text, error) {
	n, err := me.RequestPlan(ctx, in.Plan)
	if err != nil {
		return "", err
	}
	return awaitDecision(ctx, me, n, in.Seconds)
}

func requestPermission(ctx context.Context, me *actor.Actor, in permissionArgs) (quote.Text, error) {
	n, known, err := me.RequestPermission(ctx, in.Rule, in.Reason)
	switch {
	case err != nil:
		return "", err
	case known != nil:
		return decided(known.Decision == permission.Approve, known.Reason), nil
	}
	return awaitDecision(ctx, me, n, in.Seconds)
}

func awaitDecision(ctx context.Context, me *actor.Actor, asked mail.Name, seconds int) (quote.Text, error) {
	open := quote.Sprintf("Asked: %s. Nothing is decided yet; the answer comes as mail in its thread. Until then do nothing that needs it.", asked)
	if seconds <= 0 {
		return open, nil
	}
	answer, err := me.WaitDecision(ctx, asked, time.Duration(min(seconds, 600))*time.Second)
	if errors.Is(err, actor.ErrTimeout) {
		return open, nil
	}
	if err != nil {
		return "", err
	}
	return decided(*answer.Approved, answer.Reason), nil
}

func decided(approved bool, reason string) quote.Text {
	word := quote.Text("Approved")
	if !approved {
		word = "Denied"
	}
	if reason = quote.Line(reason, 2000); reason == "" {
		return word
	}
	return quote.Sprintf("%s: %s", word, reason)
}
