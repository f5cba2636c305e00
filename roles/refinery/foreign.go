package refinery

import (
	"fmt"
	"strings"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Foreign is a target that was moved by nobody who is known to move it: not by the rig, nor by a checkout of the person's
// or a remote. The zero Foreign names none.
type Foreign struct {
	Target string
	// Tip is what it holds, Known what it held before.
	Tip, Known string
	// Back is true when Known is not part of it any more.
	Back bool
	// Commits are those that Known does not have, newest first, one line each; only the first few.
	Commits []string
}

// KnowTip records that the person was told about a tip.
type KnowTip struct{ Target, Tip string }

// IsAction makes it an action.
func (KnowTip) IsAction() {}

// foreign tells the person once of commits on the target that were never tested. The queue goes on: they may be the
// person's own.
func (d *decision) foreign() {
	f := d.Foreign
	if f.Tip == "" {
		return
	}
	var body strings.Builder
	fmt.Fprintf(&body, "%s was at %s and is at %s. The rig did not put it there, no remote holds that commit, and no reflog of a checkout of "+
		"yours names it. If it was you, all is well; if not, look at what a worker did.\n", f.Target, wording.ShortHash(f.Known), wording.ShortHash(f.Tip))
	if f.Back {
		body.WriteString("\nWhat it held before is not part of it any more: work that had landed may be gone from it.\n")
	}
	if len(f.Commits) > 0 {
		body.WriteString("\nNever tested by the rig:\n\n")
		for _, c := range f.Commits {
			body.WriteString("    " + c + "\n")
		}
	}
	d.alone(roles.Send{Message: mail.Message{To: state.Human, Type: mail.Coordination, Priority: mail.Urgent, ID: wording.Clip("foreign:"+f.Tip, maxID),
		Subject: fmt.Sprintf("%s was moved to %s by somebody else: it was never tested", f.Target, wording.ShortHash(f.Tip)), Body: body.String()}},
		KnowTip{f.Target, f.Tip})
}
