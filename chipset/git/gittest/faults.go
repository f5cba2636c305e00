package gittest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// Faults stands in front of git in PATH and lets one of its runs fail.
type Faults struct{ dir string }

// killed counts its runs. The one that is to fail ends as by the kernel that is out of memory.
const killed = `#!/bin/sh
printf . >>%[1]s/runs
if read -r n <%[1]s/fail && [ "$(wc -c <%[1]s/runs)" -eq "$n" ]; then
	kill -KILL $$
fi
exec %[2]s "$@"
`

// NewFaults changes PATH, so that the test can't be parallel. A repository that is opened
// afterwards runs the git that may fail.
func NewFaults(t *testing.T) *Faults {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	f := &Faults{dir: Dir(t)}
	bin := filepath.Join(f.dir, "bin")
	Write(t, f.dir, "bin/git", fmt.Sprintf(killed, f.dir, git))
	if err := os.Chmod(filepath.Join(bin, "git"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.fail(t, 0)
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return f
}

// fail lets the nth run from now on fail, counted from 1, or none.
func (f *Faults) fail(t *testing.T, n int) {
	t.Helper()
	Write(t, f.dir, "runs", "")
	Write(t, f.dir, "fail", strconv.Itoa(n)+"\n")
}

// Play is what a Sweep plays.
type Play struct {
	// World is the folder that it changes.
	World string
	// Do does it, and returns what the caller goes by.
	Do func() (any, error)
	// Standing is what stands in the world afterwards.
	Standing func() string
	// Once says that what has failed is not done again.
	Once bool
}

// Sweep plays the same again and again, always from the same beginning, and lets another
// run of git fail each time. If Do returns no error, all is as without a fault. If it
// does, it is done once more on what the failure has left, and then all is so.
func (f *Faults) Sweep(t *testing.T, p Play) {
	t.Helper()
	saved := filepath.Join(Dir(t), "saved")
	dup(t, p.World, saved)
	restore := func() {
		if err := os.RemoveAll(p.World); err != nil {
			t.Fatal(err)
		}
		dup(t, saved, p.World)
	}
	defer restore()
	f.fail(t, 0)
	want, err := p.Do()
	if err != nil {
		t.Fatalf("without a fault: %v", err)
	}
	runs, err := os.ReadFile(filepath.Join(f.dir, "runs"))
	if err != nil {
		t.Fatal(err)
	}
	whole := fmt.Sprintf("%+v\n%s", want, p.Standing())
	for n := 1; n <= len(runs); n++ {
		restore()
		f.fail(t, n)
		got, err := p.Do()
		f.fail(t, 0)
		if err != nil && p.Once {
			continue
		}
		if err != nil {
			if got, err = p.Do(); err != nil {
				t.Errorf("once more, after run %d of git had failed: %v", n, err)
				continue
			}
		}
		if now := fmt.Sprintf("%+v\n%s", got, p.Standing()); now != whole {
			t.Errorf("run %d of git fails:\n%s\nwithout a fault:\n%s", n, now, whole)
		}
	}
}

func dup(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
