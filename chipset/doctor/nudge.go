package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/handoff"
)

func checkSlot(r *rig.Rig, id state.AgentID, known bool) ([]finding, error) {
	slot := r.Slot(id)
	all, bad, err := slot.All()
	switch {
	case errors.Is(err, state.ErrCorrupt):
		bad = append(bad, err) // from/ is no folder
	case err != nil:
		return nil, err
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
	var found []finding
	for _, err := range bad {
		found = append(found, unreadable(err, func(ctx context.Context, c *state.Corruption) error {
			return slot.Quarantine(ctx, state.Path(c.Path), r.Clock.Now())
		})...)
	}
	if !known {
		found = append(found, finding{settled: true, Finding: Finding{Rule: "nudge-agent", Path: string(slot.Dir()), Severity: Warning,
			Detail: fmt.Sprintf("%s is not registered", id)}})
	}
	if len(bad) > 0 {
		return found, nil // what is missing is not there yet
	}
	if newest, ok := newestOf(all); ok && (!hasLatest || !latest.Timestamp.Equal(newest.Timestamp.Time)) || !ok && hasLatest {
		found = append(found, finding{Finding: Finding{Rule: "nudge-latest", Path: string(slot.Dir().Join("latest.json")), Severity: Warning,
			Detail: "it is not the newest nudge below from/"}, repair: func(ctx context.Context) error { return slot.Reconcile(ctx, r.Clock.Now()) }})
	}
	return append(found, checkNudges(r, slot, all, &seen)...), nil
}

func newestOf(all []nudge.Nudge) (nudge.Nudge, bool) {
	if len(all) == 0 {
		return nudge.Nudge{}, false
	}
	return all[len(all)-1], true
}

func checkNudges(r *rig.Rig, slot nudge.Slot, all []nudge.Nudge, seen *nudge.Seen) []finding {
	var found []finding
	newest := map[state.AgentID]state.Time{}
	for i := range all {
		n := &all[i]
		newest[n.From] = n.Timestamp
		p := string(slot.Dir().Join("from", string(n.From)+".json"))
		if n.Type == nudge.Abort && n.From != state.Human && n.From != r.Mayor() {
			found = append(found, finding{settled: true, Finding: Finding{Rule: "nudge-abort", Path: p, Severity: Warning,
				Detail: fmt.Sprintf("%s asks to abort, which only the mayor and the person may", n.From)}})
		}
		found = append(found, foreignForm(r, state.Path(p), n)...)
	}
	ahead := []string{}
	for from, t := range seen.Seen {
		if t.After(newest[from].Time) && t.After(r.Clock()) {
			ahead = append(ahead, string(from))
		}
	}
	slices.Sort(ahead)
	for _, from := range ahead {
		found = append(found, finding{Finding: Finding{Rule: "nudge-seen", Path: string(slot.Dir().Join("seen.json")), Severity: Error,
			Detail: fmt.Sprintf("for %s it says %s, which lies ahead: what comes until then would be ignored", from, seen.Seen[state.AgentID(from)])},
			repair: func(ctx context.Context) error { return slot.Reconcile(ctx, r.Clock.Now()) }})
	}
	return found
}

// foreignForm tells of a small file that is not in the canonical form. Nothing
// rewrites it: its next version is.
func foreignForm(r *rig.Rig, p state.Path, v any) []finding {
	data, err := r.Tree.Read(p, state.MaxFile)
	want, encErr := state.Encode(v)
	if err != nil || encErr != nil || bytes.Equal(data, want) {
		return nil
	}
	return []finding{{Finding: Finding{Rule: ruleCanonical, Path: string(p), Severity: Info, Detail: "in the form of another program"}}}
}

func checkHandoffs(r *rig.Rig, id state.AgentID, known bool) ([]finding, error) {
	dir := handoff.Dir.Join(string(id))
	all, bad, err := r.Handoffs.List(id)
	var found []finding
	for _, err := range bad {
		found = append(found, unreadable(err, func(_ context.Context, c *state.Corruption) error {
			_, err := r.Tree.Quarantine(state.Path(c.Path), c.Reason, r.Clock.Now())
			return err
		})...)
	}
	if !known && len(all) > 0 {
		found = append(found, finding{settled: true, Finding: Finding{Rule: "handoff-agent", Path: string(dir), Severity: Warning,
			Detail: fmt.Sprintf("%s is not registered", id)}})
	}
	named := map[state.Path]bool{}
	for i := range all {
		p := handoffPath(&all[i])
		named[p] = true
		found = append(found, foreignForm(r, p, &all[i])...)
	}
	entries, listErr := r.Tree.List(dir)
	if listErr != nil {
		return found, errors.Join(err, listErr)
	}
	for _, e := range entries {
		p := dir.Join(e.Name())
		if named[p] || slices.ContainsFunc(found, func(f finding) bool { return f.Path == string(p) }) {
			continue
		}
		f := finding{Finding: Finding{Rule: "handoff-name", Path: string(p), Severity: Warning, Detail: "its name is not its time"}}
		f.repair = func(context.Context) error { return renameHandoff(r, p) }
		found = append(found, f)
	}
	return found, err
}

func handoffPath(h *handoff.Handoff) state.Path {
	return handoff.Dir.Join(string(h.AgentID), h.Timestamp.Stamp()+".json")
}

// renameHandoff gives a hand-off the name of its time, if nobody has it.
func renameHandoff(r *rig.Rig, p state.Path) error {
	data, err := r.Tree.Read(p, state.MaxFile)
	if err != nil {
		return err
	}
	var h handoff.Handoff
	if err := state.Decode(string(p), data, &h); err != nil {
		return err
	}
	if handoffPath(&h).Dir() != p.Dir() {
		return state.Conflictf("hand-off "+string(p), "is of %q", h.AgentID)
	}
	return r.Tree.Move(p, handoffPath(&h))
}
