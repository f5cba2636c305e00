package claudeteam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/bridge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Tasks is a task list of Claude Code: N.json, a task each. A task is
// made under .lock.lock and changed under N.json.lock. Its tie to a bead is the
// tag chipset:bead:ID in its description, which the client's hooks know too.
type Tasks struct {
	// Dir is the list's folder, such as ~/.claude/tasks/session-0a1b2c3d.
	Dir string
	// By makes the beads.
	By *actor.Actor
	// Export makes tasks of the rig's open beads, too.
	Export bool
}

// task is what is read of a task; the rest is kept as it is.
type task struct {
	ID          string `json:"id"`
	Subject     string `json:"subject"`
	Description string `json:"description"`
	Status      string `json:"status"`
	// Owner is the session of the team that has claimed it, or "".
	Owner     string   `json:"owner,omitempty"`
	BlockedBy []string `json:"blockedBy"`

	file string
	raw  json.RawMessage
}

// newTask is what is written of a bead.
type newTask struct {
	task
	Blocks []string `json:"blocks"`
}

// taskFile is a task's file.
var taskFile = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9]{1,9})\.json$`)
})

// origin is the key of a bead's metadata that names the task it was made of.
const origin = "claude-task"

// OpenTasks checks that dir is a folder.
func OpenTasks(dir string, by *actor.Actor) (*Tasks, error) {
	if err := isFolder(dir); err != nil {
		return nil, err
	}
	return &Tasks{Dir: dir, By: by}, nil
}

// Carry makes a bead of each task that has none, lets tasks follow their beads,
// and with Export makes a task of each open bead that has none. It goes on past
// what it can't carry; the error is all of that.
func (c *Tasks) Carry(ctx context.Context) (bridge.Count, error) {
	var n bridge.Count
	tasks, failed := c.tasks()
	beads, _, err := c.By.Beads.All()
	if err != nil {
		return n, err
	}
	byID := bead.Index(beads)
	byOrigin := map[string]*bead.Bead{}
	for i := range beads {
		if from := beads[i].Metadata[origin]; from != "" {
			byOrigin[from] = &beads[i]
		}
	}
	tied := map[state.BeadID]string{}
	beadOf := map[string]state.BeadID{}
	for _, t := range tasks {
		b, made, err := c.tie(ctx, t, byID, byOrigin, beadOf)
		if err != nil {
			failed = append(failed, fmt.Errorf("task %s: %w", t.ID, err))
			continue
		}
		if made {
			n.In++
		}
		if b == nil {
			continue
		}
		tied[b.ID], beadOf[t.ID] = t.ID, b.ID
		if err := c.hold(ctx, t, b); err != nil {
			failed = append(failed, fmt.Errorf("task %s: %w", t.ID, err))
		}
		if moved, err := c.follow(ctx, t, b); err != nil {
			failed = append(failed, fmt.Errorf("task %s: %w", t.ID, err))
		} else if moved {
			n.Out++
		}
	}
	if c.Export {
		made, err := c.export(ctx, beads, tied)
		n.Out += made
		failed = append(failed, err)
	}
	return n, errors.Join(failed...)
}

// tasks reads the list in the order of its numbers.
func (c *Tasks) tasks() ([]*task, []error) {
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return nil, []error{err}
	}
	var tasks []*task
	var failed []error
	for _, e := range entries {
		if !taskFile().MatchString(e.Name()) {
			continue
		}
		t, err := readTask(filepath.Join(c.Dir, e.Name()))
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", e.Name(), err))
			continue
		}
		tasks = append(tasks, t)
	}
	slices.SortFunc(tasks, func(a, b *task) int { return number(a.ID) - number(b.ID) })
	return tasks, failed
}

func number(id string) int {
	n, _ := strconv.Atoi(id)
	return n
}

func readTask(file string) (*task, error) {
	data, err := bridge.ReadFile(file, state.MaxFile)
	if err != nil {
		return nil, err
	}
	t := &task{file: file, raw: data}
	if json.Unmarshal(data, t) != nil || t.ID+".json" != filepath.Base(file) || strings.TrimSpace(t.Subject) == "" {
		return nil, errors.New("no task, and is left as it is")
	}
	return t, nil
}

// change rewrites fields of a task under its lock, if it is still there.
func (c *Tasks) change(ctx context.Context, file string, change func(t *task) map[string]any) error {
	return rewrite(ctx, file, func() (any, error) {
		t, err := readTask(file)
		if err != nil {
			return nil, err
		}
		fields := change(t)
		if len(fields) == 0 {
			return nil, nil
		}
		return withFields(t.raw, fields)
	})
}

// tie finds the bead of a task, or makes it. The bead says which task it was
// made of, so that a crash before the task is tagged makes no second one.
func (c *Tasks) tie(ctx context.Context, t *task, byID map[state.BeadID]*bead.Bead, byOrigin map[string]*bead.Bead, beadOf map[string]state.BeadID) (*bead.Bead, bool, error) {
	if tagged, is := agentcli.TaggedBead(t.Description); is {
		return byID[state.BeadID(tagged)], false, nil // nil: a bead of somebody else's rig
	}
	if t.Status == "completed" || t.Status == "deleted" {
		return nil, false, nil
	}
	from := filepath.Base(c.Dir) + "/" + t.ID
	b, made := byOrigin[from], false
	if b == nil {
		var blockers []state.BeadID
		for _, id := range t.BlockedBy {
			if on, known := beadOf[id]; known {
				blockers = append(blockers, on)
			}
		}
		added, err := c.By.AddBead(ctx, bead.Bead{Title: wording.Subject(t.Subject, bridge.MaxSubject, "task "+t.ID), Description: strings.ToValidUTF8(t.Description, "\uFFFD"),
			BlockedBy: blockers, ReadyAt: c.heldUntil(t), Metadata: map[string]string{origin: from}})
		if err != nil {
			return nil, false, err
		}
		b, made = &added, true
	}
	err := c.change(ctx, t.file, func(now *task) map[string]any {
		return map[string]any{"description": agentcli.TagBead(now.Description, string(b.ID))}
	})
	return b, made, err
}

// claimLease is how long the bead of a claimed task is held without a new look at the
// task. It is renewed when half of it is over, and ends by itself after the bridge has.
const claimLease = 10 * time.Minute

// heldUntil is until when the rig's agents leave the bead of a task alone, nil where no
// session of the team has claimed it.
func (c *Tasks) heldUntil(t *task) *state.Time {
	if t.Owner == "" {
		return nil
	}
	until := state.At(c.By.Clock.Now().Add(claimLease))
	return &until
}

// hold keeps the open bead of a task that a session of the team has claimed, also when that
// has completed it, from being slung. A bead that the rig works on already stays its own.
func (c *Tasks) hold(ctx context.Context, t *task, b *bead.Bead) error {
	until := c.heldUntil(t)
	if until == nil || b.Status != bead.Open {
		return nil
	}
	if b.ReadyAt != nil && b.ReadyAt.After(until.Add(-claimLease/2)) {
		return nil
	}
	return c.By.HoldBead(ctx, b.ID, *until, "claimed by "+wording.Clip(t.Owner, bridge.MaxQuoted)+" in the client's task list")
}

// rank orders what a task can be; it only moves forward.
func rank(status string) int {
	return slices.Index([]string{"pending", "in_progress", "completed"}, status)
}

// follow moves a task to where its bead is.
func (c *Tasks) follow(ctx context.Context, t *task, b *bead.Bead) (bool, error) {
	want := ""
	switch b.Status {
	case bead.Hooked, bead.InProgress, bead.Done:
		want = "in_progress"
	case bead.Merged, bead.Closed:
		want = "completed"
	case bead.Open, bead.Failed, bead.Blocked, bead.Cancelled:
	}
	if rank(t.Status) < 0 || rank(want) <= rank(t.Status) {
		return false, nil
	}
	return true, c.change(ctx, t.file, func(now *task) map[string]any {
		if rank(now.Status) < 0 || rank(want) <= rank(now.Status) {
			return nil
		}
		return map[string]any{"status": want}
	})
}

// export makes a task of each open bead that has none.
func (c *Tasks) export(ctx context.Context, beads []bead.Bead, tied map[state.BeadID]string) (int, error) {
	var missing []*bead.Bead
	for i := range beads {
		if b := &beads[i]; b.Status == bead.Open && tied[b.ID] == "" {
			missing = append(missing, b)
		}
	}
	if len(missing) == 0 {
		return 0, nil
	}
	release, err := takeLock(ctx, filepath.Join(c.Dir, ".lock.lock"))
	if err != nil {
		return 0, err
	}
	defer release()
	// Looked at again under the lock: an earlier run may have come this far.
	tasks, _ := c.tasks()
	last := 0
	for _, t := range tasks {
		last = max(last, number(t.ID))
		if tagged, is := agentcli.TaggedBead(t.Description); is {
			tied[state.BeadID(tagged)] = t.ID
		}
	}
	counter := filepath.Join(c.Dir, ".counter")
	if data, err := state.ReadOutside(counter, 64); err == nil {
		last = max(last, number(strings.TrimSpace(string(data))))
	}
	n := 0
	for _, b := range missing {
		if tied[b.ID] != "" {
			continue
		}
		last++
		t := newTask{Blocks: []string{}, task: task{ID: strconv.Itoa(last), Subject: b.Title, Description: agentcli.TagBead(b.Description, string(b.ID)),
			Status: "pending", BlockedBy: []string{}}}
		for _, on := range b.BlockedBy {
			if id := tied[on]; id != "" {
				t.BlockedBy = append(t.BlockedBy, id)
			}
		}
		// The counter goes first: a number that was skipped is no harm, one that is
		// given twice is.
		if err := state.ReplaceOutside(counter, []byte(strconv.Itoa(last))); err != nil {
			return n, err
		}
		if err := write(filepath.Join(c.Dir, t.ID+".json"), t); err != nil {
			return n, err
		}
		tied[b.ID] = t.ID
		n++
	}
	return n, nil
}
