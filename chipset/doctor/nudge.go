package doctor

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/handoff"
)

func (l *inspection) slot(id state.AgentID, known bool) error {
	slot := l.r.Slot(id)
	all, bad, err := slot.All()
	switch {
	case errors.Is(err, state.ErrCorrupt):
		bad = append(bad, err) // from/ is not a folder
	case err != nil:
		return err
	}
	latest, err := slot.Latest()
	hasLatest := err == nil
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		bad = append(bad, err)
	}
	seen, err := slot.Seen()
	if err != nil {
		bad = append(bad, err)
	}
	for _, err := range bad {
		l.addUnreadable(err, func(ctx context.Context, c *state.Corruption) error {
			return slot.Quarantine(ctx, state.Path(c.Path), l.r.Clock.Now())
		})
	}
	if !known {
		l.addSettled("nudge-agent", slot.Dir(), Warning, "", "%s is not registered", id)
	}
	if len(bad) > 0 {
		return nil // the unreadable ones come first
	}
	if hasLatest != (len(all) > 0) || hasLatest && !latest.Timestamp.Equal(all[len(all)-1].Timestamp.Time) {
		l.add("nudge-latest", slot.Dir().Join("latest.json"), Warning, "", "it is not the newest nudge in from/").repair = l.reconciles(slot)
	} else if _, alone, err := slot.LatestAlone(); alone && err == nil {
		l.add("nudge-latest", slot.Dir().Join("latest.json"), Info, "", "from/ has no file of its sender: another program wrote it, or the file was lost").repair = l.reconciles(slot)
	}
	l.nudges(slot, all, &seen)
	return nil
}

// reconciles makes latest.json and seen.json agree with the nudges.
func (l *inspection) reconciles(slot nudge.Slot) func(context.Context) error {
	return func(ctx context.Context) error { return slot.Reconcile(ctx, l.r.Clock.Now()) }
}

func (l *inspection) nudges(slot nudge.Slot, all []nudge.Nudge, seen *nudge.Seen) {
	newest := map[state.AgentID]state.Time{}
	for i := range all {
		n := &all[i]
		newest[n.From] = n.Timestamp
		p := slot.Dir().Join("from", string(n.From)+".json")
		if n.Type == nudge.Abort && n.From != state.Human && n.From != l.r.Mayor() {
			l.addSettled("nudge-abort", p, Warning, "", "%s sent an abort, which only the mayor and the person may do", n.From)
		}
		l.form(p, n)
	}
	for _, from := range slices.Sorted(maps.Keys(seen.Seen)) {
		if t := seen.Seen[from]; t.After(newest[from].Time) && t.After(l.r.Clock()) {
			l.add("nudge-seen", slot.Dir().Join("seen.json"), Error, "",
				"for %s it says %s, which is in the future: nudges before that time would be ignored", from, t).repair = l.reconciles(slot)
		}
	}
}

// isCanonical reports whether a file is the canonical form of v, or can't be read now.
func (l *inspection) isCanonical(p state.Path, v any) bool {
	data, err := l.r.Tree.Read(p, state.MaxFile)
	want, encErr := state.Encode(v)
	return err != nil || encErr != nil || bytes.Equal(data, want)
}

// form reports a small file that is not in the canonical form. Nothing rewrites it:
// its next version is canonical.
func (l *inspection) form(p state.Path, v any) {
	if !l.isCanonical(p, v) {
		l.add(ruleCanonical, p, Info, "", "in the form of another program")
	}
}

func (l *inspection) handoffs(id state.AgentID, known bool) error {
	dir := handoff.Dir.Join(string(id))
	all, bad, err := l.r.Handoffs.List(id)
	reported := map[state.Path]bool{}
	for _, err := range bad {
		f := l.addUnreadable(err, func(_ context.Context, c *state.Corruption) error {
			_, err := l.r.Tree.Quarantine(state.Path(c.Path), c.Reason, l.r.Clock.Now())
			return err
		})
		if f != nil {
			reported[state.Path(f.Path)] = true
		}
	}
	if !known && len(all) > 0 {
		l.addSettled("handoff-agent", dir, Warning, "", "%s is not registered", id)
	}
	for i := range all {
		p := handoffPath(&all[i])
		reported[p] = true
		l.form(p, &all[i])
	}
	entries, listErr := l.r.Tree.List(dir)
	for _, e := range entries {
		if p := dir.Join(e.Name()); !reported[p] {
			l.add("handoff-name", p, Warning, "", "its name is not its time").repair = func(context.Context) error { return renameHandoff(l.r, p) }
		}
	}
	return errors.Join(err, listErr)
}

func handoffPath(h *handoff.Handoff) state.Path {
	return handoff.Dir.Join(string(h.AgentID), h.Timestamp.Stamp()+".json")
}

// renameHandoff names a hand-off after its time, if that name is free.
func renameHandoff(r *rig.Rig, p state.Path) error {
	var h handoff.Handoff
	if err := r.Tree.ReadJSON(p, &h); err != nil {
		return err
	}
	if handoffPath(&h).Dir() != p.Dir() {
		return state.Conflictf("hand-off "+string(p), "is by %q", h.AgentID)
	}
	return r.Tree.Move(p, handoffPath(&h))
}
