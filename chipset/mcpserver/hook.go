package mcpserver

import (
	"context"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/prompt"
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/retire"
	"github.com/gastown-chipset/chipset/state/wording"
)

// none is for tools without arguments.
type none struct{}

type agentArgs struct {
	Agent string `json:"agent,omitempty" jsonschema:"whose; your own when left out"`
}

type touchArgs struct {
	Note string `json:"note,omitempty" jsonschema:"what is going on, for the log"`
}

type doneArgs struct {
	Summary string `json:"summary" jsonschema:"what you did, for the reviewer"`
}

type reasonArgs struct {
	Reason string `json:"reason" jsonschema:"why, so that the next attempt or the person knows what to do"`
}

type nudgeArgs struct {
	To      string `json:"to" jsonschema:"who: an agent's id or a role"`
	Type    string `json:"type" jsonschema:"what kind of nudge; only mayor and human may abort"`
	Message string `json:"message,omitempty" jsonschema:"the text"`
	Respond bool   `json:"respond,omitempty" jsonschema:"true asks for a response"`
}

type respondArgs struct {
	Message string `json:"message" jsonschema:"the text"`
}

type handoffArgs struct {
	Summary   string   `json:"summary" jsonschema:"what was done, and what the next session must know"`
	Remaining []string `json:"remaining,omitempty" jsonschema:"what remains to be done, one thing each"`
}

func (s *Server) addHookTools() {
	add(s, tool{name: "hook_show", title: "Show a hook", effect: reads,
		description: "What is on your hook, or on that of another agent: its bead, assignment and status."}, showHook)
	add(s, tool{name: "hook_touch", title: "Report progress", effect: settles,
		description: "Report progress, so that a long quiet step does not count as a stall."}, touchHook)
	add(s, tool{name: "done", title: "Finish your assignment", effect: ends,
		description: "Your assignment is finished: commit first. Your branch goes to the merge queue and this session is over."},
		func(ctx context.Context, me *actor.Actor, in doneArgs) (quote.Text, error) {
			return verdict(ctx, me, retire.Done, in.Summary, "")
		})
	add(s, tool{name: "fail", title: "Give your assignment back", effect: ends,
		description: "This attempt failed. What you have is saved, the mayor decides what comes next, and this session is over."},
		func(ctx context.Context, me *actor.Actor, in reasonArgs) (quote.Text, error) {
			return verdict(ctx, me, retire.Fail, "", in.Reason)
		})
	add(s, tool{name: "block", title: "Ask a person to decide", effect: ends,
		description: "A person must decide something before your assignment can be finished. What you have is saved, and this session is over."},
		func(ctx context.Context, me *actor.Actor, in reasonArgs) (quote.Text, error) {
			return verdict(ctx, me, retire.Block, "", in.Reason)
		})
	add(s, tool{name: "nudge_send", title: "Nudge an agent", effect: adds, words: map[string][]string{"type": wording.Strings(nudge.Types())},
		description: "Wake an agent with a hint. The newest of each sender counts and may be lost; what must arrive is mail."}, sendNudge)
	add(s, tool{name: "nudge_show", title: "Show your nudges", effect: reads,
		description: "Nudges to you that you have not seen or answered."}, showNudges)
	add(s, tool{name: "nudge_respond", title: "Answer your nudges", effect: adds,
		description: "Answer every nudge to you that asks for a response."}, respond)
	add(s, tool{name: "handoff_write", title: "Leave a hand-off", effect: adds,
		description: "Leave a note for your next session, which begins without your memory. Write it before your context ends."}, writeHandoff)
	add(s, tool{name: "handoff_show", title: "Show a hand-off", effect: reads,
		description: "Your newest hand-off, or that of another agent."}, showHandoff)
}

func showHook(_ context.Context, me *actor.Actor, in agentArgs) (quote.Text, error) {
	id, err := whose(me, in.Agent)
	if err != nil {
		return "", err
	}
	h, err := actor.HookOf(me.Rig, id)
	if err != nil {
		return "", err
	}
	return hookText(&h), nil
}

// whose is the agent that an optional argument names.
func whose(me *actor.Actor, name string) (state.AgentID, error) {
	if name == "" {
		return me.ID, nil
	}
	return actor.Lookup(me.Rig, name)
}

func hookText(h *hook.Hook) quote.Text {
	if h.WorkItem == nil {
		return quote.Sprintf("The hook of %s is %s.", h.AgentID, h.Status)
	}
	w := h.WorkItem
	return quote.Sprintf("The hook of %s is %s: bead %s (%s), assignment %s, assigned %s, last progress %s.",
		h.AgentID, h.Status, w.BeadID, quote.Line(w.Title, 200), w.AssignmentID, w.AssignedAt, h.LastActivity)
}

func touchHook(ctx context.Context, me *actor.Actor, in touchArgs) (quote.Text, error) {
	if _, err := actor.Text("the note", in.Note, actor.MaxVerdict); err != nil {
		return "", err
	}
	h, err := me.Touch(ctx, in.Note)
	if err != nil {
		return "", err
	}
	return quote.Sprintf("Noted. Last progress %s.", h.LastActivity), nil
}

func verdict(ctx context.Context, me *actor.Actor, outcome retire.Outcome, summary, reason string) (quote.Text, error) {
	rec, err := me.Verdict(ctx, outcome, summary, reason)
	if err != nil {
		return "", err
	}
	return quote.Sprintf("%s: %s (%s). This session is over: stop here, change nothing more.", rec.BeadID, rec.Outcome, rec.AssignmentID), nil
}

func sendNudge(ctx context.Context, me *actor.Actor, in nudgeArgs) (quote.Text, error) {
	n, to, err := me.SendNudge(ctx, in.To, nudge.Type(in.Type), in.Message, in.Respond)
	if err != nil {
		return "", err
	}
	return quote.Sprintf("nudged %s: %s at %s", to, n.Type, n.Timestamp), nil
}

func showNudges(_ context.Context, me *actor.Actor, _ none) (quote.Text, error) {
	fresh, _, err := me.Slot(me.ID).Unseen()
	if err != nil {
		return "", err
	}
	if len(fresh) == 0 {
		return "No nudges.", nil
	}
	var lines []quote.Text
	for i := range fresh {
		lines = append(lines, prompt.FrameNudge(&fresh[i])+"\n")
	}
	return prompt.Preamble + "\n\n" + listed(lines, 20, "", "nudge_respond answers those that want it"), nil
}

func respond(ctx context.Context, me *actor.Actor, in respondArgs) (quote.Text, error) {
	sent, err := me.Respond(ctx, in.Message)
	if err != nil {
		return "", err
	}
	var to []string
	for _, a := range sent {
		to = append(to, string(a.To))
	}
	return quote.Sprintf("answered %s", strings.Join(to, ", ")), nil
}

func writeHandoff(_ context.Context, me *actor.Actor, in handoffArgs) (quote.Text, error) {
	h, err := me.WriteHandoff(in.Summary, in.Remaining)
	if err != nil {
		return "", err
	}
	return quote.Sprintf("left for your next session: %s", h.Timestamp.Stamp()), nil
}

func showHandoff(_ context.Context, me *actor.Actor, in agentArgs) (quote.Text, error) {
	id, err := whose(me, in.Agent)
	if err != nil {
		return "", err
	}
	h, err := me.Handoffs.Latest(id, "")
	if err != nil {
		return "", err
	}
	if h == nil {
		return quote.Sprintf("%s has left none.", id), nil
	}
	return prompt.HandoffText(h), nil
}
