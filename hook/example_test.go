package hook_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
)

// The mayor puts work on an agent's hook, the agent does it, and the mayor clears
// the hook. A step that is not legal is refused and changes nothing.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	check(err)
	defer os.RemoveAll(dir)
	tree, err := state.Create(filepath.Join(dir, ".chipset"))
	check(err)

	now := state.At(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))
	hooks := hook.NewStore(tree, nil)
	check(hooks.Ensure(ctx, "polecat-alpha", now))

	work := hook.WorkItem{AssignedAt: now, AssignmentID: "as-1", BeadID: "gt-abc12", Title: "Fix the parser"}
	h, err := hooks.Set(ctx, "polecat-alpha", work, now)
	check(err)
	fmt.Println(h.Status, h.WorkItem.BeadID)

	_, err = hooks.Set(ctx, "polecat-alpha", work, now)
	fmt.Println("set again:", errors.Is(err, state.ErrConflict))

	h, err = hooks.Activate(ctx, "polecat-alpha", "as-1", "ses-1", now)
	check(err)
	fmt.Println(h.Status)
	h, err = hooks.Complete(ctx, "polecat-alpha", "as-1", "ses-1", now)
	check(err)
	fmt.Println(h.Status)
	h, err = hooks.Clear(ctx, "polecat-alpha", "as-1", now)
	check(err)
	fmt.Println(h.Status)
	// Output:
	// pending gt-abc12
	// set again: true
	// active
	// completed
	// empty
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
