package refinery

import (
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
)

// Who moved the target past the rig is told to the person with all that is known of it, and then remembered.
func TestForeignTip(t *testing.T) {
	told := func(f Foreign) (mail.Message, roles.Group) {
		d := &decision{Facts: Facts{Foreign: f}}
		d.foreign()
		if len(d.groups) == 0 {
			return mail.Message{}, nil
		}
		return d.groups[0][0].(roles.Send).Message, d.groups[0]
	}
	old, tip := strings.Repeat("1", 40), strings.Repeat("2", 40)
	m, group := told(Foreign{Target: "main", Tip: tip, Known: old, Back: true, Commits: []string{"2222222 sneaked in", "3333333 and this"}})
	for _, want := range []string{"main was at 1111111111 and is at 2222222222", "may be gone from it", "Never tested by the rig", "    2222222 sneaked in\n    3333333 and this\n"} {
		if !strings.Contains(m.Body, want) {
			t.Errorf("it does not say %q:\n%s", want, m.Body)
		}
	}
	if m.To != state.Human || m.Priority != mail.Urgent || group[1] != (KnowTip{"main", tip}) {
		t.Errorf("%+v", group)
	}
	m, _ = told(Foreign{Target: "main", Tip: tip, Known: old})
	for _, no := range []string{"may be gone", "Never tested"} {
		if strings.Contains(m.Body, no) {
			t.Errorf("it says %q of what is not so:\n%s", no, m.Body)
		}
	}
	if _, group := told(Foreign{Target: "main"}); group != nil {
		t.Errorf("nothing is told: %+v", group)
	}
}

// A divergence is told once for each fork, with what mends it where the branch is checked out.
func TestDivergenceIsTold(t *testing.T) {
	for checkout, want := range map[string]string{"/work/rig": "/work/rig", "": "git switch main"} {
		d := &decision{}
		d.diverged(Divergence{Fork: strings.Repeat("3", 40), Target: "main", Remote: "origin", Checkout: checkout})
		text := ""
		for _, g := range append(d.groups, d.work) {
			for _, a := range g {
				if s, ok := a.(roles.Send); ok && s.Message.To == state.Human {
					text += s.Message.Subject + s.Message.Body
				}
			}
		}
		if !strings.Contains(text, want) || !strings.Contains(text, "origin") {
			t.Errorf("checked out at %q: %q does not say %q", checkout, text, want)
		}
	}
}
