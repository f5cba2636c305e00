package doctor

import (
	"context"
	"errors"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/handoff"
	"github.com/gastown-chipset/chipset/state/wording"
)

// channels checks mail, nudges and hand-offs.
func (l *inspection) channels(ctx context.Context) error {
	var failed []error
	for _, c := range []struct {
		dir   state.Path
		check func(*inspection, state.AgentID, bool) error
	}{{mail.Dir, (*inspection).mailbox}, {nudge.Dir, (*inspection).slot}, {handoff.Dir, (*inspection).handoffs}} {
		entries, err := l.r.Tree.List(c.dir)
		failed = append(failed, l.notice(err))
		for _, e := range entries {
			id, err := state.ParseAgentID(e.Name())
			if err != nil || !e.IsDir() {
				continue // tree reports it
			}
			_, err = l.r.Agents.Get(string(id))
			known := !errors.Is(err, state.ErrNotFound) || id == state.Human
			failed = append(failed, l.notice(c.check(l, id, known)))
		}
	}
	return errors.Join(append(failed, ctx.Err())...)
}

func (l *inspection) mailbox(id state.AgentID, known bool) error {
	box := l.r.Mailbox(id)
	current, bad, err := box.List()
	if err != nil {
		return err
	}
	archived, badToo, err := box.Archive()
	if err != nil && !errors.Is(err, state.ErrCorrupt) {
		return err // an archive that is not a folder is among bad
	}
	for _, c := range append(bad, badToo...) {
		l.addUnreadable(c, func(ctx context.Context, c *state.Corruption) error {
			_, err := box.Quarantine(ctx, c, l.r.Clock.Now())
			return err
		})
	}
	l.senders(box, current)
	if !known && len(current) > 0 {
		l.add("mail-unknown-recipient", box.Dir(), Error, "name the agent in chipset.yaml and start the rig, or move the mail to the right mailbox",
			"it holds %s, but that agent is not registered", wording.Count(len(current), "message"))
	}
	l.archiveTwins(box, current, archived)
	foreign, old := 0, 0
	for _, e := range current {
		p := box.Dir().Join(string(e.Name))
		if !e.Read && !l.isCanonical(p, e.Message) {
			foreign++ // a read one may have been marked since it was listed
		}
		if !e.Read && l.r.Def != nil && l.r.Clock().Sub(e.Timestamp.Time) > l.r.Def.Mail.Retention {
			old++
		}
		l.future(p, e.Timestamp)
	}
	if foreign > 0 {
		l.addSettled(ruleCanonical, box.Dir(), Info, "", "it holds %s in another program's form", wording.Count(foreign, "unread message"))
	}
	if old > 0 {
		l.addSettled("unread-mail", box.Dir(), Info, "chipset mail inbox "+string(id)+" --unread",
			"it holds %s older than %s; unread mail is never archived by age", wording.Count(old, "unread message"), l.r.Def.Mail.Retention)
	}
	return nil
}

// archiveTwins finds messages that are both in the mailbox and in its archive.
func (l *inspection) archiveTwins(box *mail.Mailbox, current, archived []mail.Entry) {
	byName := make(map[mail.Name]*mail.Entry, len(archived))
	for i := range archived {
		byName[archived[i].Name] = &archived[i]
	}
	for i := range current {
		n := current[i].Name
		old, there := byName[n]
		if !there {
			continue
		}
		f := l.add("mail-twice", box.Dir().Join(string(n)), Error, "", "the archive has a message with the same name")
		if current[i].SameArchived(&old.Message) {
			f.repair = func(ctx context.Context) error { return box.DropArchived(ctx, n) }
		}
	}
}

// senders checks that mail is from registered agents, and that no sender's id was delivered twice.
func (l *inspection) senders(box *mail.Mailbox, current []mail.Entry) {
	type key struct {
		from state.AgentID
		id   string
	}
	seen := map[key]mail.Name{}
	asked := map[state.AgentID]bool{state.Human: true}
	for i := range current {
		e := &current[i]
		p := box.Dir().Join(string(e.Name))
		if !asked[e.From] {
			asked[e.From] = true
			if _, err := l.r.Agents.GetCached(string(e.From)); errors.Is(err, state.ErrNotFound) {
				l.addSettled("mail-unknown-sender", p, Warning, "", "it is from %s, which is not registered", e.From)
			}
		}
		k := key{e.From, e.ID}
		if other, twice := seen[k]; twice && e.ID != "" {
			l.addSettled("mail-same-id", p, Warning, "", "%s from the same sender has the id %q, too", other, e.ID)
		}
		seen[k] = e.Name
	}
}
