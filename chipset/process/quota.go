package process

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// firstLook is when a command is first measured, and the usual time between two looks at its processes; lookInterval is that
	// between two looks at its folders.
	firstLook    = time.Second
	lookInterval = 10 * time.Second
	// lookShare keeps the time that looking takes below one part in so many.
	lookShare = 50
)

// watch trims the log while the command runs, and reports a limit that the command exceeds. Stop ends it.
func (s *supervisor) watch() (over <-chan string, stop func()) {
	limits := s.spec.Limits
	found, done := make(chan string, 2), make(chan struct{}) // one for each of those who look
	look := func(longest time.Duration, look func() string) {
		go func() {
			for wait := firstLook; ; {
				select {
				case <-done:
					return
				case <-time.After(wait):
				}
				begun := time.Now()
				if what := look(); what != "" {
					found <- what
					return
				}
				wait = max(min(2*wait, longest), lookShare*time.Since(begun))
			}
		}()
	}
	if limits.Disk > 0 || limits.Log > 0 {
		look(lookInterval, func() string {
			s.trimLog()
			if limits.Disk > 0 && diskUse(done, s.spec.Dir, s.spec.temp()) > limits.Disk {
				return OverDisk
			}
			return ""
		})
	}
	if limits.Memory > 0 || limits.Tasks > 0 {
		look(firstLook, s.exceeded)
	}
	return found, func() { close(done) }
}

// diskUse is what folders and everything below them take on the disk, in bytes, as far as they can be read. Holes in files count
// nothing. It ends early when done is closed.
func diskUse(done <-chan struct{}, folders ...string) int64 {
	var all int64
	for _, folder := range folders {
		if folder == "" {
			continue
		}
		_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			select {
			case <-done:
				return fs.SkipAll
			default:
			}
			if err != nil {
				return nil //nolint:nilerr // what is gone or can't be read is not counted
			}
			var info unix.Stat_t
			if unix.Lstat(path, &info) == nil {
				all += onDisk(&info)
			}
			return nil
		})
	}
	return all
}

func onDisk(info *unix.Stat_t) int64 {
	const block = 512
	return info.Blocks * block
}

// trimLog gives the beginning of a log that is too long back to the disk. Offsets in it stay what they are: what was
// there reads as zeros. The command goes on writing meanwhile.
func (s *supervisor) trimLog() {
	if s.spec.Limits.Log <= 0 || s.spec.Log == "" {
		return
	}
	log, err := openRegular(s.spec.Log, os.O_RDWR)
	if err != nil {
		return
	}
	defer log.Close()
	var info unix.Stat_t
	if unix.Fstat(int(log.Fd()), &info) != nil || onDisk(&info) <= s.spec.Limits.Log {
		return
	}
	_ = dropBeginning(log, info.Size-s.spec.Limits.Log/2)
}
