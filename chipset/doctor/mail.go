package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gastown-chipset/chipset/chipset/view/screen"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/handoff"
)

// checkChannels reads mail, nudges and hand-offs.
func checkChannels(ctx context.Context, r *rig.Rig) ([]finding, error) {
	var found []finding
	var failed []error
	for _, c := range []struct {
		dir  state.Path
		look func(*rig.Rig, state.AgentID, bool) ([]finding, error)
	}{{mail.Dir, checkMailbox}, {nudge.Dir, checkSlot}, {handoff.Dir, checkHandoffs}} {
		entries, err := r.Tree.List(c.dir)
		if found, err = noticed(found, err); err != nil {
			failed = append(failed, err)
		}
		for _, e := range entries {
			id, err := state.ParseAgentID(e.Name())
			if err != nil || !e.IsDir() {
				continue // the walk over the tree reports it
			}
			_, err = r.Agents.Get(string(id))
			known := !errors.Is(err, state.ErrNotFound) || id == state.Human
			more, err := c.look(r, id, known)
			if found, err = noticed(append(found, more...), err); err != nil {
				failed = append(failed, err)
			}
		}
	}
	return found, errors.Join(append(failed, ctx.Err())...)
}

func checkMailbox(r *rig.Rig, id state.AgentID, known bool) ([]finding, error) {
	box := r.Mailbox(id)
	current, bad, err := box.List()
	if err != nil {
		return nil, err
	}
	archived, badToo, err := box.Archive()
	if err != nil && !errors.Is(err, state.ErrCorrupt) {
		return nil, err // an archive that is no folder is among bad
	}
	var found []finding
	for _, c := range append(bad, badToo...) {
		found = append(found, unreadable(c, func(ctx context.Context, c *state.Corruption) error {
			_, err := box.Quarantine(ctx, c, r.Clock.Now())
			return err
		})...)
	}
	found = append(found, checkSenders(r, box, current)...)
	if !known && len(current) > 0 {
		found = append(found, finding{Finding: Finding{Rule: "mail-unknown-recipient", Path: string(box.Dir()), Severity: Error,
			Detail: fmt.Sprintf("%s to an agent that is not registered", screen.Count(len(current), "message")),
			Hint:   "name the agent in chipset.yaml and start the rig, or move the mail to the right mailbox"}})
	}
	found = append(found, checkArchiveTwins(r, box, current, archived)...)
	foreign, old := 0, 0
	cutoff := r.Clock().Add(-retention(r))
	for _, e := range current {
		data, err := r.Tree.Read(box.Dir().Join(string(e.Name)), mail.MaxSize)
		if want, encErr := state.Encode(e.Message); err == nil && encErr == nil && !bytes.Equal(data, want) && !e.Read {
			foreign++ // the flag of a read one may have been flipped since it was listed
		}
		if !e.Read && e.Timestamp.Before(cutoff) {
			old++
		}
		if e.Timestamp.After(r.Clock().Add(maxAhead)) {
			found = append(found, finding{settled: true, Finding: Finding{Rule: "future-time", Path: string(box.Dir().Join(string(e.Name))), Severity: Warning,
				Detail: fmt.Sprintf("%s lies more than %s ahead of the clock", e.Timestamp, maxAhead)}})
		}
	}
	if foreign > 0 {
		found = append(found, finding{settled: true, Finding: Finding{Rule: ruleCanonical, Path: string(box.Dir()), Severity: Info,
			Detail: screen.Count(foreign, "unread message") + " in the form of another program"}})
	}
	if old > 0 {
		found = append(found, finding{settled: true, Finding: Finding{Rule: "unread-mail", Path: string(box.Dir()), Severity: Info,
			Detail: fmt.Sprintf("%s older than %s; unread mail is never archived by age", screen.Count(old, "unread message"), retention(r)),
			Hint:   "chipset mail inbox " + string(id) + " --unread"}})
	}
	return found, nil
}

func retention(r *rig.Rig) time.Duration {
	if r.Def != nil && r.Def.Mail.Retention > 0 {
		return r.Def.Mail.Retention
	}
	return 24 * time.Hour
}

// checkArchiveTwins finds names that stand in the mailbox and in its archive.
func checkArchiveTwins(r *rig.Rig, box *mail.Mailbox, current, archived []mail.Entry) []finding {
	byName := make(map[mail.Name]*mail.Entry, len(archived))
	for i := range archived {
		byName[archived[i].Name] = &archived[i]
	}
	var found []finding
	for i := range current {
		old, there := byName[current[i].Name]
		if !there {
			continue
		}
		n := current[i].Name
		f := finding{Finding: Finding{Rule: "mail-twice", Path: string(box.Dir().Join(string(n))), Severity: Error,
			Detail: "the archive has a message of the same name"}}
		if sameMessage(&current[i].Message, &old.Message) {
			f.Hint = "chipset doctor --fix removes the copy in the mailbox"
			f.repair = func(ctx context.Context) error { return dropTwin(ctx, r, box, n) }
		}
		found = append(found, f)
	}
	return found
}

// sameMessage reports whether an archived message makes the one in the mailbox
// superfluous: the same but for the flag, which the archived one has.
func sameMessage(current, archived *mail.Message) bool {
	a, b := *current, *archived
	if a.Read && !b.Read {
		return false
	}
	a.Read = b.Read
	one, errA := state.Encode(a)
	two, errB := state.Encode(b)
	return errA == nil && errB == nil && bytes.Equal(one, two)
}

func dropTwin(ctx context.Context, r *rig.Rig, box *mail.Mailbox, n mail.Name) error {
	l, err := r.Tree.Lock(ctx, state.LockMailbox, string(box.Owner()), box.Dir(), box.Dir().Join("archive"))
	if err != nil {
		return err
	}
	defer l.Unlock()
	var both [2]mail.Message
	for i, p := range []state.Path{box.Dir().Join(string(n)), box.Dir().Join("archive", string(n))} {
		data, err := r.Tree.Read(p, mail.MaxSize)
		if errors.Is(err, state.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if both[i], err = mail.Decode(string(p), box.Owner(), n, data); err != nil {
			return err
		}
	}
	if !sameMessage(&both[0], &both[1]) {
		return state.Conflictf("message "+string(n), "differs from the archived one by now")
	}
	return r.Tree.Remove(box.Dir().Join(string(n)))
}

// checkSenders checks who the mail is from, and that no sender's id was delivered
// twice.
func checkSenders(r *rig.Rig, box *mail.Mailbox, current []mail.Entry) []finding {
	type key struct {
		from state.AgentID
		id   string
	}
	seen := map[key]mail.Name{}
	known := map[state.AgentID]bool{}
	var found []finding
	for i := range current {
		e := &current[i]
		p := string(box.Dir().Join(string(e.Name)))
		is, asked := known[e.From]
		if !asked {
			_, err := r.Agents.GetCached(string(e.From))
			is = e.From == state.Human || !errors.Is(err, state.ErrNotFound)
			known[e.From] = is
		}
		if !is && !asked {
			found = append(found, finding{settled: true, Finding: Finding{Rule: "mail-unknown-sender", Path: p, Severity: Warning,
				Detail: fmt.Sprintf("it is from %s, which is not registered", e.From)}})
		}
		k := key{e.From, e.ID}
		if other, twice := seen[k]; twice && e.ID != "" {
			found = append(found, finding{settled: true, Finding: Finding{Rule: "mail-same-id", Path: p, Severity: Warning,
				Detail: fmt.Sprintf("%s from the same sender has the id %q as well", other, e.ID)}})
		}
		seen[k] = e.Name
	}
	return found
}
