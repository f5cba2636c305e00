package actor

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/permission"
)

// Ruling is the person's decision about one rule for an agent.
type Ruling struct {
	// Decision is "" while the person has not decided.
	Decision permission.Decision
	Reason   string
	// Asked is the request that waits for the decision, "" if nobody asked.
	Asked mail.Name
	at    state.Time
}

// RulingOn returns the person's decision about rules that all mean the same, for the
// work on an agent's hook: an answer to a request about this assignment, or a
// remembered decision. The latest one counts.
func RulingOn(r *rig.Rig, who state.AgentID, item *hook.WorkItem, rules []string) (Ruling, error) {
	var ruling Ruling
	asked, err := Questions(r, who, item)
	if err != nil {
		return ruling, err
	}
	for i := range asked {
		if !slices.Contains(rules, ruleAsked(&asked[i])) {
			continue
		}
		if !asked[i].Answered() {
			ruling.Asked = asked[i].Name
		} else if d := decisionOf(r, &asked[i]); d.Decision != "" && !d.at.Before(ruling.at.Time) {
			d.Asked, ruling = ruling.Asked, d
		}
	}
	for _, rule := range rules {
		known, err := r.Permissions.Find(rule, who)
		if errors.Is(err, state.ErrNotFound) {
			continue
		}
		if err != nil {
			return ruling, err
		}
		if known.CreatedAt.After(ruling.at.Time) {
			ruling.Decision, ruling.Reason, ruling.at = known.Decision, known.Reason, known.CreatedAt
		}
	}
	return ruling, nil
}

// Granted returns the rules that the person has approved for the work on an agent's
// hook, once or for good, and has not denied since.
func Granted(r *rig.Rig, who state.AgentID, item *hook.WorkItem) ([]string, error) {
	asked, err := Questions(r, who, item)
	if err != nil {
		return nil, err
	}
	known, _, err := r.Permissions.All()
	if err != nil {
		return nil, err
	}
	var rules, granted []string
	for i := range asked {
		rules = append(rules, ruleAsked(&asked[i]))
	}
	for i := range known {
		if known[i].AgentID == "" || known[i].AgentID == who {
			rules = append(rules, known[i].Rule)
		}
	}
	slices.Sort(rules)
	for _, rule := range slices.Compact(rules) {
		ruling, err := RulingOn(r, who, item, []string{rule})
		if err != nil {
			return nil, err
		}
		if rule != "" && ruling.Decision == permission.Approve {
			granted = append(granted, rule)
		}
	}
	return granted, nil
}

// ruleAsked returns the rule that a question asks for, "" for one about a plan.
func ruleAsked(q *Question) string {
	if q.Request.Type != mail.PermissionRequest {
		return ""
	}
	return mail.AskOf(&q.Request).Rule
}

// decisionOf returns what the answer to a question decides by itself. A remembered
// decision counts only through its rule, so that revoking the rule revokes it.
func decisionOf(r *rig.Rig, q *Question) Ruling {
	answer, decides := mail.AnswerOf(&q.Reply.Message, r.Mayor())
	if !decides || answer.Remembered != "" {
		return Ruling{}
	}
	ruling := Ruling{Decision: permission.Approve, Reason: answer.Reason, at: q.Reply.Timestamp}
	if !*answer.Approved {
		ruling.Decision = permission.Deny
	}
	return ruling
}

// RequestPermission asks the person for a permission, named by a rule: one line such
// as Bash(npm publish). If a decision about the rule is remembered, it returns that
// rule and sends no mail. A request is not repeated for the same work. Errors:
// ErrInvalid.
func (a *Actor) RequestPermission(ctx context.Context, rule, why string) (mail.Name, *permission.Rule, error) {
	if err := permission.CheckRule(rule); err != nil {
		return "", nil, Invalidf("%v", err)
	}
	known, err := a.Permissions.Find(rule, a.ID)
	if err == nil {
		a.Events.Tell(event.PermissionRemembered(a.ID, known.ID, string(known.Decision), rule))
		return "", &known, nil
	}
	if !errors.Is(err, state.ErrNotFound) {
		return "", nil, err
	}
	if asked, err := a.askedBefore(func(m *mail.Message) bool { return m.Type == mail.PermissionRequest && mail.AskOf(m).Rule == rule }); err != nil || asked != "" {
		return asked, nil, err
	}
	meta, err := json.Marshal(mail.Ask{Rule: rule})
	if err != nil {
		return "", nil, err
	}
	p, err := a.Present()
	if err != nil {
		return "", nil, err
	}
	body := "It asks for: " + rule + "\n\n" + why
	n, err := a.SendMail(ctx, mail.Message{Type: mail.PermissionRequest, Priority: mail.Urgent, Subject: string(a.ID) + " asks for a permission",
		Body: body, Ref: p.ref(), Metadata: meta}, string(state.Human))
	return n, nil, err
}

func (a *Actor) remember(ctx context.Context, rule string, asker state.AgentID, d Decision) (permission.Rule, error) {
	if err := permission.CheckRule(rule); err != nil {
		return permission.Rule{}, Invalidf("there is nothing to remember: %v", err)
	}
	holds := permission.Rule{Rule: rule, Decision: permission.Approve, Reason: d.Reason, By: a.ID, CreatedAt: a.Clock.Now()}
	if !d.Approved {
		holds.Decision = permission.Deny
	}
	if d.OnlyAgent {
		holds.AgentID = asker
	}
	holds.ID = permission.IDOf(rule, holds.AgentID)
	return a.Permissions.Decide(ctx, holds)
}

// DecideHost allows or refuses for good a host that was asked for, by the name of its rule. It applies to workers that start
// from now on. Only the person may. Errors: state.ErrNotFound, state.ErrConflict.
func (a *Actor) DecideHost(ctx context.Context, id string, d Decision) (permission.Rule, error) {
	if a.ID != state.Human {
		return permission.Rule{}, state.Conflictf("permission "+id, "only the person may grant one, and you speak as %s", a.ID)
	}
	rule, err := a.Permissions.Get(id)
	if err != nil {
		return rule, err
	}
	d.OnlyAgent = false
	return a.remember(ctx, rule.Rule, "", d)
}

// Revoke forgets a decision that was remembered. Only the person may.
func (a *Actor) Revoke(id string) (permission.Rule, error) {
	if a.ID != state.Human {
		return permission.Rule{}, state.Conflictf("permission "+id, "only the person may revoke one, and you speak as %s", a.ID)
	}
	return a.Permissions.Revoke(id, a.ID)
}
