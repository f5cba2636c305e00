package chipsettest_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// limitActs are those of a worker that takes all there is, and of one whose files change while the rig looks at them.
func limitActs() []hostileAct {
	const comets = `perl -MPOSIX -e '$SIG{TERM} = "IGNORE"; $end = time + 60; fork for 1 .. 6; while (time < $end) { setsid; my $p = fork; exit if $p }' "$PROGRAM" `
	return []hostileAct{
		{name: "it takes all memory", limits: "memory: 128MiB", worker: `perl -e '$x = "x" x 300_000_000; sleep 60'`, refused: "more memory than limits.memory"},
		{name: "it fills the disk", limits: "disk: 32MiB", worker: "head -c 100000000 /dev/zero > big; sleep 60", refused: "more than limits.disk"},
		{
			name: "it floods its transcript", limits: "log: 1MiB", worker: "echo x > x; yes | head -c 200000000",
			after: func(s *siege) { s.transcriptsTakeAtMost(4 << 20) },
		},
		{
			name: "its processes fork, end and leave their session, again and again", limits: "tasks: 32", worker: comets + "& sleep 60",
			refused: "more processes and threads than limits.tasks", after: (*siege).noneOfItRuns,
		},
		{name: "it leaves such processes behind", worker: "echo x > x; " + comets + "&", after: (*siege).noneOfItRuns},
		{
			name: "a file that another program makes a link and a file again while the rig commits", before: (*siege).swapFiles, worker: "echo x > swap",
			after: func(s *siege) {
				if found, err := s.TryGit("grep", "-q", "the key", "main"); err == nil {
					s.Errorf("what the link led to has landed: %s", found)
				}
			},
		},
	}
}

// transcriptsTakeAtMost holds what all transcripts take on the disk together.
func (s *siege) transcriptsTakeAtMost(most int64) {
	var all int64
	err := filepath.WalkDir(filepath.Join(s.Dir, ".chipset", "logs"), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			all += info.Sys().(*syscall.Stat_t).Blocks * 512 //nolint:forcetypeassert // that is what it is on a Unix system
		}
		return err
	})
	if err != nil || all > most {
		s.Errorf("transcripts take %d bytes, at most %d: %v", all, most, err)
	}
}

// noneOfItRuns holds that no process of the hostile worker is left.
func (s *siege) noneOfItRuns() {
	out, err := exec.Command("pgrep", "-f", filepath.Dir(s.canary)).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		s.Errorf("processes are left: %s%v", out, err)
	}
}

// swapFiles makes the files called swap in worktrees links to a key and files again until the work is committed: a program that nobody ends.
func (s *siege) swapFiles() {
	key := s.canary + ".key"
	if err := os.WriteFile(key, []byte("the key\n"), 0o600); err != nil {
		s.Fatal(err)
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for pause := time.Duration(0); ; pause = 100 * time.Microsecond {
			select {
			case <-done:
				return
			case <-time.After(pause):
			}
			if queued, _ := filepath.Glob(filepath.Join(s.Dir, ".chipset", "state", "merge-queue", "*.json")); len(queued) > 0 {
				return // it is committed
			}
			files, _ := filepath.Glob(filepath.Join(s.Dir, ".chipset", "worktrees", "*", "swap"))
			for _, file := range files {
				_ = errors.Join(os.Symlink(key, file+"~"), os.Rename(file+"~", file))
				_ = errors.Join(os.WriteFile(file+"~", []byte(strings.Repeat("y", 8)), 0o600), os.Rename(file+"~", file))
			}
		}
	}()
	s.Cleanup(func() { close(done); <-ended })
}
