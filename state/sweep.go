package state

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// leftover matches the names of temp files: those of WriteNew, and those of Replace (a
// dot, the final name, a random number). Other dot-files are not ours.
var leftover = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\.tmp-.+|\..+\.jsonl?[0-9]+)$`)
})

// TempAge is the age from which the temp file of an unknown writer counts as abandoned.
// Removing one is always safe: if its writer still runs, the rename fails, and nothing
// was acknowledged.
const TempAge = time.Minute

// TempFiles returns the abandoned temp files below state/: those of processes that have
// ended, those of unknown writers that are older than TempAge, and second names of
// published files that a power cut has left.
func (t *Tree) TempFiles(now time.Time) ([]Path, error) {
	var found []Path
	root := t.Abs(StateDir)
	err := filepath.WalkDir(root, func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			return skipLost(err)
		}
		if e.IsDir() || !leftover().MatchString(e.Name()) {
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return skipLost(err)
		}
		if abandoned(e.Name(), info, now) {
			found = append(found, t.at(at))
		}
		return nil
	})
	return found, err
}

func abandoned(name string, info fs.FileInfo, now time.Time) bool {
	if now.Sub(info.ModTime()) > TempAge {
		return true
	}
	rest, ours := strings.CutPrefix(name, tempPrefix)
	if !ours {
		// A temp file of Replace never has a second name, except after a power cut that
		// undid the removal of the temp name.
		st, ok := info.Sys().(*unixStat)
		return ok && st.Nlink > 1
	}
	number, _, _ := strings.Cut(rest, "-")
	pid, err := strconv.Atoi(number)
	return err == nil && pid > 0 && errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}

// RemoveTempFiles removes abandoned temp files and returns their number.
func (t *Tree) RemoveTempFiles(now time.Time) (int, error) {
	temps, err := t.TempFiles(now)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, p := range temps {
		if err := t.disk.Remove(t.Abs(p)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return n, wrapPath(p, err)
		}
		n++
	}
	return n, nil
}
