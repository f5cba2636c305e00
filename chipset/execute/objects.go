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

// keepObjects has git keep a copy of what tip reaches: a worker may write, and so delete, in the folder of objects. Without the copy all
// goes on.
func (b *base) keepObjects(ctx context.Context, tip git.Hash) {
	if err := b.Rig.Git.KeepObjects(ctx, tip); err != nil && ctx.Err() == nil {
		b.Say("%s: %v", b.ID, err)
	}
}

// restoreObjects puts back what was deleted of the repository's objects, and tells the person who worked meanwhile. work is the attempt
// that has ended, if there is one.
func (b *base) restoreObjects(ctx context.Context, work event.Work) {
	back, err := b.Rig.Git.RestoreObjects(ctx)
	if err != nil && ctx.Err() == nil {
		b.Say("%s: %v", b.ID, err)
	}
	if back == 0 {
		return
	}
	text := wording.Count(back, "object") + " of the repository had been deleted or damaged, and can be read again"
	b.Rig.Events.Tell(event.Warning(b.ID, work, string(b.ID), text))
	b.Say("%s: %s", b.ID, text)
	while := ""
	if who := b.working(work); len(who) > 0 {
		while = " while there worked " + strings.Join(who, ", ")
	}
	err = b.send(ctx, mail.Message{To: state.Human, Type: mail.Coordination, Priority: mail.Urgent,
		ID:      fmt.Sprintf("objects:%s:%s:%d", b.ID, work.Assignment, back),
		Subject: wording.Clip("Somebody deleted objects of the repository"+while, 200),
		Body: text + ". It happened" + while + ". If it was none of your own programs, look at what that worker did " +
			"(chipset tail) before you let it go on. Other branches than the target, and stashes, are not kept: git fsck says whether they are whole.\n"})
	if err != nil {
		b.Say("%s: %v", b.ID, err)
	}
}

// working names the agents that hold a bead, and the beads: first that of an attempt that has ended.
func (b *base) working(ended event.Work) (all []string) {
	if ended.Bead != "" {
		all = append(all, string(b.ID)+" on "+string(ended.Bead))
	}
	hooks, _, _ := b.Rig.Hooks.All() // it only says whom to look at
	for i := range hooks {
		if h := &hooks[i]; h.Status == hook.Active && h.WorkItem != nil && h.WorkItem.BeadID != ended.Bead {
			all = append(all, string(h.AgentID)+" on "+string(h.WorkItem.BeadID))
		}
	}
	return all
}
