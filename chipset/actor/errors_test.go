package actor

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A disk that takes nothing is the person's to mend, and the hint says how.
func TestHintsForTheDisk(t *testing.T) {
	t.Parallel()
	for cause, want := range map[error]string{unix.ENOSPC: "free some space", unix.EDQUOT: "free some space", unix.EROFS: "writable"} {
		err := fmt.Errorf("write state/work/gt-a.json: %w", &fs.PathError{Op: "write", Path: "x", Err: cause})
		if got := HintFor(err); !strings.Contains(got, want) || !strings.Contains(got, "nothing is lost") {
			t.Errorf("%v: %q", cause, got)
		}
	}
}
