package view

import (
	"context"
	"errors"
	"io/fs"
	"reflect"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/environment"
	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// box is what a model has read of one mailbox.
type box struct {
	follow state.Follower
	unread []mail.Entry
	// asked are the messages that ask for tasks.
	asked []mail.Entry
	// damage are the errors of what can't be read.
	damage []error
}

// followMail reads the mailboxes that may have changed, and reports whether any has.
func (m *Model) followMail() (bool, error) {
	changed := false
	owners := map[state.AgentID]bool{state.Human: true}
	for name := range m.agents.rows {
		owners[state.AgentID(name)] = true
	}
	for id := range m.boxes {
		if !owners[id] {
			delete(m.boxes, id)
			changed = true
		}
	}
	var failed []error
	for id := range owners {
		b := m.boxes[id]
		if b == nil {
			b = &box{follow: state.NewFollower(m.r.Tree, m.r.Mailbox(id).Dir(), m.watcher)}
			m.boxes[id] = b
		}
		if is, err := stirred(&b.follow); err != nil || !is {
			failed = append(failed, err)
			continue
		}
		is, err := b.read(m.r, id)
		changed, failed = changed || is, append(failed, err)
	}
	return changed, errors.Join(failed...)
}

// read reads a mailbox and reports whether it has changed. An unreadable message or
// mailbox is noted as damage and is no error.
func (b *box) read(r *rig.Rig, id state.AgentID) (bool, error) {
	before := *b
	unread, asked, bad, err := r.Mailbox(id).UnreadAndRequests()
	b.unread, b.asked, b.damage = unread, asked, nil
	for _, c := range bad {
		b.damage = append(b.damage, c)
	}
	if errors.Is(err, state.ErrCorrupt) || errors.Is(err, fs.ErrPermission) {
		b.unread, b.asked, b.damage, err = nil, nil, append(b.damage, err), nil
	}
	same := reflect.DeepEqual(before.unread, b.unread) && reflect.DeepEqual(before.asked, b.asked) && sameErrors(before.damage, b.damage)
	return !same, err
}

// progressFiles holds the progress that the clients of running sessions report.
type progressFiles struct {
	follow state.Follower
	known  map[state.SessionID]*agentcli.Progress
}

// update reads the progress of the sessions on the hooks that may have changed.
func (p *progressFiles) update(tree *state.Tree, hooks map[string]*hook.Hook) (bool, error) {
	c, err := p.follow.Next()
	if err != nil {
		return false, err
	}
	now, changed := map[state.SessionID]*agentcli.Progress{}, false
	for _, h := range hooks {
		if h.WorkItem == nil || h.WorkItem.Session == "" {
			continue
		}
		id := h.WorkItem.Session
		old, known := p.known[id]
		now[id] = old
		if !known || c.Rescan || c.Names[string(id)+".json"] {
			now[id] = agentcli.ReadProgress(tree, id)
			changed = changed || !reflect.DeepEqual(old, now[id])
		}
	}
	changed = changed || len(now) != len(p.known)
	p.known = now
	return changed, nil
}

// surroundings are the target, the disk and the rest that a rig depends on.
type surroundings struct {
	target, tip, subject, test, sandbox, limits string
	// targetWarnings come first in a status, the others in the middle.
	targetWarnings, warnings []string
	quarantined              int
}

// look finds out the surroundings of a rig. Whatever can't be found out becomes a warning.
func look(ctx context.Context, r *rig.Rig) surroundings {
	var s surroundings
	s.lookAtTarget(ctx, r)
	warn := func(err error) {
		if err != nil {
			s.warnings = append(s.warnings, err.Error())
		}
	}
	if r.Def == nil {
		s.warnings = append(s.warnings, "chipset.yaml can't be used: chipset validate says why")
	}
	if r.Git == nil {
		s.warnings = append(s.warnings, "the git repository of "+r.Dir+" can't be used: chipset doctor says why")
	}
	warn(r.Tree.Verify())
	troubles, err := environment.Look(ctx, r)
	for _, t := range troubles {
		s.warnings = append(s.warnings, t.Detail+" ("+t.Hint+")")
	}
	warn(err)
	kept, err := r.Tree.Quarantined()
	warn(err)
	s.quarantined = len(kept)
	return s
}

func (s *surroundings) lookAtTarget(ctx context.Context, r *rig.Rig) {
	if r.Def == nil || r.Git == nil {
		return
	}
	s.sandbox = sandbox.Describe(sandbox.Mode(r.Def.Sandbox), r.Def.Network.Restricted)
	s.limits = r.Limits().String()
	s.test = r.Def.Merge.Test.String()
	branch, err := r.Target(ctx)
	if err != nil {
		s.targetWarnings = append(s.targetWarnings, "target branch: "+err.Error())
		return
	}
	s.target = string(branch)
	tip, found, err := r.Git.ResolveRef(ctx, branch.Ref())
	if err != nil || !found {
		lost := environment.TargetLost(ctx, r)
		if lost == nil {
			s.targetWarnings = append(s.targetWarnings, "the target branch "+s.target+" does not exist")
		} else {
			s.targetWarnings = append(s.targetWarnings, lost.Error())
		}
		return
	}
	s.tip = string(tip)
	if log, err := r.Git.Log(ctx, "", tip, 1); err == nil && len(log) > 0 {
		s.subject = log[0].Subject
	}
}

// story is the end of the event log.
type story struct {
	log    *event.Log
	follow state.Follower
	at     event.Position
	begun  bool
	last   []event.Event
}

const (
	// storyKept is how many events a view holds.
	storyKept = 500
	// storyRead is how much of the end of the log is read at first, in bytes.
	storyRead = 256 << 10
)

// update reads what was added to the log, and reports whether anything was. Invalid lines
// are left to the doctor.
func (s *story) update() (bool, error) {
	is, err := stirred(&s.follow)
	if err != nil || !is && s.begun {
		return false, err
	}
	var added []event.Event
	if s.begun {
		added, _, s.at, err = s.log.Read(s.at, time.Time{})
	} else {
		added, s.at, err = s.log.Tail(storyRead)
		s.begun = err == nil
	}
	if len(added) == 0 {
		return false, err
	}
	all := append(s.last[:len(s.last):len(s.last)], added...) // views hold the old one
	s.last = all[max(0, len(all)-storyKept):]
	return true, err
}
