package bd

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
)

// Outcome says what an import did with an issue.
type Outcome string

const (
	// Added: a bead was made.
	Added Outcome = "added"
	// Updated: the bead was changed to match the issue.
	Updated Outcome = "updated"
	// Unchanged: the bead already matches the issue.
	Unchanged Outcome = "unchanged"
	// Kept: the issue has changed, but somebody is working on the bead or has finished it.
	Kept Outcome = "kept"
	// Skipped: the issue is not a work item.
	Skipped Outcome = "skipped"
)

// Result is the outcome for one line.
type Result struct {
	Line    int          `json:"line"`
	Issue   string       `json:"issue"`
	ID      state.BeadID `json:"id,omitempty"`
	Outcome Outcome      `json:"outcome"`
	Detail  string       `json:"detail,omitempty"`
}

// Options of an import.
type Options struct {
	// DryRun writes nothing.
	DryRun bool
	// DropUnknown leaves out dependencies on unknown issues, instead of
	// refusing the import.
	DropUnknown bool
	// Workers accepts the workers that issues name, which are commands.
	Workers bool
	// CheckWorker refuses a worker that could never be started; nil accepts all.
	CheckWorker func(string) error
}

// Report is what an import did.
type Report struct {
	// Results are in the order of the lines.
	Results []Result
	// Dropped counts dependencies that were left out, OfferedWorkers workers that
	// were not accepted.
	Dropped, OfferedWorkers int
}

// Import makes beads from issues, and changes those that nobody is working on.
// Nothing is written if any line has a problem. Durable when it returns nil; after
// another error, or a crash, some beads are made, and repeating the import makes the
// rest. Errors: Problems, those of the state.
func Import(ctx context.Context, r *rig.Rig, by state.AgentID, lines []Line, options Options) (Report, error) {
	// Concurrent changes of dependencies could close a cycle.
	lock, err := r.Tree.Lock(ctx, state.LockDispatch, "dependencies")
	if err != nil {
		return Report{}, err
	}
	defer lock.Unlock()
	beads, _, err := r.Beads.All()
	if err != nil {
		return Report{}, err
	}
	p, err := makePlan(lines, beads, options)
	if err != nil {
		return Report{}, err
	}
	im := importer{plan: p, r: r, by: by, now: r.Clock.Now(), report: Report{Results: p.ignored, Dropped: p.dropped}}
	if err := im.prepare(); err != nil {
		return Report{}, err
	}
	if !options.DryRun {
		if err := im.create(ctx); err != nil {
			return im.report, err
		}
		if err := im.update(ctx); err != nil {
			return im.report, err
		}
	}
	slices.SortStableFunc(im.report.Results, func(a, b Result) int { return a.Line - b.Line })
	return im.report, nil
}

type importer struct {
	*plan
	r      *rig.Rig
	by     state.AgentID
	now    state.Time
	layers [][]bead.Bead
	edits  []*entry
	report Report
}

// prepare makes the new beads and tries the changes, without writing anything.
func (im *importer) prepare() error {
	made := map[state.BeadID]bead.Bead{}
	for _, e := range im.entries {
		if !im.options.Workers && e.issue.ours().Worker != "" {
			im.report.OfferedWorkers++
		}
		res := Result{Line: e.line, Issue: e.issue.ID, ID: e.id, Outcome: Added}
		var err error
		if e.there == nil {
			made[e.id], err = im.made(e, im.by, im.now)
		} else {
			b := *e.there
			res.Outcome, res.Detail, err = im.change(&b, e)
			if res.Outcome == Updated {
				im.edits = append(im.edits, e)
			}
		}
		if err != nil {
			im.refuse(e.line, err)
		}
		im.report.Results = append(im.report.Results, res)
	}
	if len(im.bad) > 0 {
		return im.bad
	}
	im.arrange(made)
	return nil
}

// arrange puts the new beads into layers: each waits only for beads in earlier
// layers, or for existing ones. A layer is durable before the next one is started,
// so that no bead ever waits for a missing one.
func (im *importer) arrange(made map[state.BeadID]bead.Bead) {
	all := make(bead.Graph, len(im.waits))
	for id, says := range im.waits {
		all[id] = says
		if e := im.byBead[id]; e != nil {
			all[id] = append(slices.Clone(says), e.implied...)
		}
	}
	layer := map[state.BeadID]int{}
	for _, group := range all.Groups() { // dependencies come first
		id := group[0]
		b, isNew := made[id]
		if !isNew {
			continue
		}
		for _, before := range all[id] {
			if _, isNew := made[before]; isNew {
				layer[id] = max(layer[id], layer[before]+1)
			}
		}
		if layer[id] == len(im.layers) {
			im.layers = append(im.layers, nil)
		}
		im.layers[layer[id]] = append(im.layers[layer[id]], b)
	}
}

func (im *importer) create(ctx context.Context) error {
	for _, layer := range im.layers {
		if err := ctx.Err(); err != nil {
			return err
		}
		var failed error
		for n, err := range im.r.Beads.By(im.by, "").CreateAll(layer, func(b *bead.Bead) string { return string(b.ID) }) {
			if err != nil {
				failed = fmt.Errorf("bead %s: %w", layer[n].ID, err)
			}
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

// updaters is how many beads are changed concurrently, so that they share commits of
// the file system's journal.
const updaters = 16

func (im *importer) update(ctx context.Context) error {
	errs := make([]error, len(im.edits))
	var wg sync.WaitGroup
	for w := range min(updaters, len(im.edits)) {
		wg.Go(func() {
			for n := w; n < len(im.edits); n += updaters {
				if errs[n] = im.edit(ctx, im.edits[n]); errs[n] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for n, err := range errs {
		if err != nil {
			return fmt.Errorf("bead %s: %w", im.edits[n].id, err)
		}
	}
	return nil
}

// edit changes one bead under its locks. A bead that was taken up meanwhile is left
// alone; the next import reports it.
func (im *importer) edit(ctx context.Context, e *entry) error {
	lock, err := im.r.Tree.Lock(ctx, state.LockDispatch, string(e.id), dispatch.Dir)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	_, err = im.r.Beads.By(im.by, "imported again").Edit(ctx, e.id, func(b *bead.Bead) error {
		outcome, _, err := im.change(b, e)
		if err == nil && outcome != Updated {
			return state.ErrUnchanged
		}
		return err
	})
	return err
}

// change makes a bead match its issue, if it may be changed.
func (im *importer) change(b *bead.Bead, e *entry) (Outcome, string, error) {
	s, imported := sourceOf(b)
	if e.same {
		if !b.Editable() || !imported || slices.Equal(s.Implied, e.implied) {
			return Unchanged, "", nil
		}
		return Updated, "what it waits for", im.rewrite(b, e, s.As)
	}
	was := s.Issue.Status
	if !imported {
		exported, err := export(b, map[state.BeadID]string{})
		if err != nil {
			return Kept, "", err
		}
		was = exported.Status
	}
	if e.reopens(b, s, imported) {
		if err := b.Become(bead.Open, "", im.now); err != nil {
			return Kept, "", err
		}
	} else if !b.Editable() {
		return Kept, "it is " + string(b.Status), nil
	}
	if e.issue.Status == statusTombstone {
		return Updated, "deleted in bd", im.cancel(b, e)
	}
	detail, err := im.restate(b, e, was, s.As)
	return Updated, detail, err
}

// rewrite copies the fields of an issue, except for the status.
func (im *importer) rewrite(b *bead.Bead, e *entry, as bead.Status) error {
	if !e.same {
		if err := im.fill(b, e); err != nil {
			return err
		}
	}
	b.BlockedBy = append(slices.Clone(e.says), e.implied...)
	b.Touch(im.now)
	return im.note(b, e, as)
}

func (im *importer) cancel(b *bead.Bead, e *entry) error {
	if err := b.Become(bead.Cancelled, "deleted in bd", im.now); err != nil {
		return err
	}
	return im.note(b, e, b.Status)
}

// restate copies the fields of an issue, and its status if bd has changed that. was is
// the issue's previous status, as the status that the last import gave the bead.
func (im *importer) restate(b *bead.Bead, e *entry, was string, as bead.Status) (string, error) {
	if err := im.rewrite(b, e, as); err != nil {
		return "", err
	}
	to, reason := e.issue.standing(e.waits)
	moved := was != e.issue.Status && to != b.Status
	if to == bead.Open && (b.Status == bead.Failed || b.Status == bead.Blocked && as != bead.Blocked) {
		moved = false // the rig has reasons of its own
	}
	if !moved {
		return "", nil
	}
	if err := become(b, to, reason, e.issue.ClosedAt, im.now); err != nil {
		return "", err
	}
	return "it is " + string(b.Status), im.note(b, e, b.Status)
}
