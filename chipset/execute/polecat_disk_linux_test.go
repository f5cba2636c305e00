package execute

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state/fault"
)

// TestPolecatOnAFullDisk: whether git finds no room for a worktree, or the worker none for
// its work, it is the disk.
func TestPolecatOnAFullDisk(t *testing.T) {
	t.Parallel()
	for name, filler := range map[string]int{"before it starts": 3 << 20, "while it works": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			k := newKennel(t, "")
			dir := filepath.Join(k.dir, ".chipset/worktrees")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=3m"); err != nil {
				t.Skip("no file system can be mounted here: ", err)
			}
			t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
			_ = os.WriteFile(filepath.Join(dir, "filler"), make([]byte, filler), 0o600) // as much as there is room
			rec := k.sling("head -c 9000000 /dev/zero > big; exit 1")
			k.until("it is retired", k.retired(rec.AssignmentID))
			if end := k.record(rec.AssignmentID); end.Fault.Kind != fault.DiskFull {
				t.Errorf("%q, %+v", end.Reason, end.Fault)
			}
		})
	}
}
