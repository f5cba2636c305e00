package rolestest

import (
	"fmt"

	"github.com/gastown-chipset/chipset/roles"
)

// Show writes a decision, an action a line, in the words of own for a role's own
// actions and in the same words everywhere for those that roles share. An action
// that follows upon another one in its group is indented.
func Show[S any](d *roles.Decision[S], own func(roles.Action) string) []string {
	var lines []string
	for _, g := range append(d.Groups[:len(d.Groups):len(d.Groups)], d.Work) {
		for i, a := range g {
			indent := ""
			if i > 0 {
				indent = "  "
			}
			lines = append(lines, indent+Words(a, own))
		}
	}
	return lines
}

// Words are one action in words.
func Words(a roles.Action, own func(roles.Action) string) string {
	switch a := a.(type) {
	case roles.Send:
		thread := ""
		if a.Message.Thread != "" {
			thread = " (thread " + a.Message.Thread + ")"
		}
		return fmt.Sprintf("send %s %s: %s%s", a.Message.To, a.Message.Type, a.Message.Subject, thread)
	case roles.Nudge:
		return fmt.Sprintf("nudge %s %s: %s", a.To, a.Nudge.Type, a.Nudge.Message)
	case roles.MarkRead:
		return fmt.Sprintf("read %s of %s%s", a.Entry.Type, a.Entry.From, note(a.Note))
	case roles.MarkSeen:
		return fmt.Sprintf("seen %s of %s%s", a.Nudge.Type, a.Nudge.From, note(a.Note))
	case roles.Finish:
		return "finish"
	}
	return own(a)
}

func note(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}
