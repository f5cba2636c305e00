package execute

import (
	"context"
	"fmt"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/wording"
)

// keepObjects has git keep a copy of what tip reaches: a worker may write to the folder of objects, and so delete from it. A failure is
// logged, and stops nothing.
func (b *base) keepObjects(ctx context.Context, tip git.Hash) {
	if err := b.Rig.Git.KeepObjects(ctx, tip); err != nil && ctx.Err() == nil {
		b.Say("%s: %v", b.ID, err)
	}
}

// restoreObjects restores deleted objects of the repository from that copy, and tells the person who was working meanwhile. work is the
// attempt that has ended, if there is one.
func (b *base) restoreObjects(ctx context.Context, work event.Work) {
	back, err := b.Rig.Git.RestoreObjects(ctx)
	if err != nil && ctx.Err() == nil {
		b.Say("%s: %v", b.ID, err)
	}
	if back == 0 {
		return
	}
	text := wording.Count(back, "object") + " of the repository had been deleted or damaged, and restored"
	b.Rig.Events.Tell(event.Warning(b.ID, work, string(b.ID), text))
	b.Say("%s: %s", b.ID, text)
	while := ""
	if who := b.working(work); len(who) > 0 {
		while = " while " + strings.Join(who, ", ")
	}
	err = b.send(ctx, mail.Message{To: state.Human, Type: mail.Coordination, Priority: mail.Urgent,
		ID:      fmt.Sprintf("objects:%s:%s:%d", b.ID, work.Assignment, back),
		Subject: wording.Clip("Objects were deleted from the repository"+while, 200),
		Body: text + ". They were deleted" + while + ". If it was not one of your own programs, look at what that worker did " +
			"(chipset tail) before you let it continue. Only the target branch is kept: git fsck says whether other branches and stashes are intact.\n"})
	if err != nil {
		b.Say("%s: %v", b.ID, err)
	}
}

// working says which agents were working on which beads. The attempt that has ended comes first.
func (b *base) working(ended event.Work) (all []string) {
	if ended.Bead != "" {
		all = append(all, string(b.ID)+" was working on "+string(ended.Bead))
	}
	hooks, _, _ := b.Rig.Hooks.All() // it only says whom to look at
	for i := range hooks {
		if h := &hooks[i]; h.Status == hook.Active && h.WorkItem != nil && h.WorkItem.BeadID != ended.Bead {
			all = append(all, string(h.AgentID)+" was working on "+string(h.WorkItem.BeadID))
		}
	}
	return all
}
