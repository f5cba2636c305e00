package mayor

import (
	"fmt"
	"strings"

	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/wording"
)

// plea is the mail to the person about a bead that waits for them: what, why, the
// history, the likely causes, and what to do.
func plea(b *bead.Bead, reason, causes string) (subject, body string) {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %q waits for you: %s\n\n%s\n", b.ID, b.Title, reason, causes)
	fmt.Fprintf(&text, "\nHistory: %s; last on %s, branch %s.\n", b.FailureCounts(), b.Assignee, b.Branch)
	for _, n := range b.ReworkNotes {
		fmt.Fprintf(&text, "- %s\n", n)
	}
	fmt.Fprintf(&text, "\nEverything that happened: chipset why %s\nTo go on: chipset work reopen %s   To give up: chipset work cancel %s\n", b.ID, b.ID, b.ID)
	return fmt.Sprintf("%s is blocked: %s", b.ID, wording.Reason(reason)), text.String()
}

// charged is the bead as it stands after the charge.
func charged(b bead.Bead, c Charge) *bead.Bead {
	c.To(&b)
	return &b
}
