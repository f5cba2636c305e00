package git

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state/statetest/lostsync"
)

// TestLostCopiesOfObjects: what a failed sync may have lost takes the place of no object.
func TestLostCopiesOfObjects(t *testing.T) {
	lostsync.Run(t, func(fail func()) {
		f := newFixture(t)
		head := f.head(f.TopLevel())
		before, err := os.Lstat(f.loose(head))
		f.must(err)
		fail()
		if _, err := f.RewriteObjects(f.ctx, []Hash{head}); !errors.Is(err, unix.EIO) {
			t.Errorf("RewriteObjects: %v", err)
		}
		if now, err := os.Lstat(f.loose(head)); err != nil || !os.SameFile(before, now) {
			t.Errorf("it is another file: %v", err)
		}
		if err := f.MakeDurable(f.ctx, head, ""); !errors.Is(err, unix.EIO) {
			t.Errorf("MakeDurable: %v", err)
		}
	})
}
