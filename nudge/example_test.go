package nudge_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
)

// A newer nudge of the same sender replaces the older one. What was marked as seen
// is not returned again.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	check(err)
	defer os.RemoveAll(dir)
	tree, err := state.Create(filepath.Join(dir, ".chipset"))
	check(err)

	now := state.At(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))
	slot := nudge.NewSlot(tree, "polecat-alpha", nil)
	_, err = slot.Send(ctx, nudge.Nudge{From: "witness", Type: nudge.HealthCheck, Message: "still there?"}, now)
	check(err)
	_, err = slot.Send(ctx, nudge.Nudge{From: "witness", Type: nudge.StallWarning, Message: "no progress for 10m"}, now)
	check(err)

	unseen, _, err := slot.Unseen()
	check(err)
	for _, n := range unseen {
		fmt.Printf("%s: %s\n", n.Type, n.Message)
		check(slot.MarkSeen(ctx, n))
	}
	unseen, _, err = slot.Unseen()
	check(err)
	fmt.Println(len(unseen), "unseen")
	// Output:
	// stall_warning: no progress for 10m
	// 0 unseen
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
