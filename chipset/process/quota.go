package process

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// firstLook is when the folders of a command are first measured, lookInterval the usual time between two looks.
	firstLook    = time.Second
	lookInterval = 10 * time.Second
	// lookShare keeps the time that looking takes below one part in so many.
	lookShare = 50
)

// watch keeps the log small while the command runs, and signals once when the command takes more disk than it may.
func (s *supervisor) watch() (over <-chan struct{}, stop func()) {
	if s.spec.MaxDisk <= 0 && s.spec.MaxLog <= 0 {
		return nil, func() {}
	}
	signal, done := make(chan struct{}, 1), make(chan struct{})
	go func() {
		wait := firstLook
		for {
			select {
			case <-done:
				return
			case <-time.After(wait):
			}
			begun := time.Now()
			s.trimLog()
			if s.spec.MaxDisk > 0 && diskUse(done, s.spec.Dir, s.spec.temp()) > s.spec.MaxDisk {
				signal <- struct{}{}
				return
			}
			wait = max(min(2*wait, lookInterval), lookShare*time.Since(begun))
		}
	}()
	return signal, func() { close(done) }
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
	if s.spec.MaxLog <= 0 || s.spec.Log == "" {
		return
	}
	log, err := openRegular(s.spec.Log, os.O_RDWR)
	if err != nil {
		return
	}
	defer log.Close()
	var info unix.Stat_t
	if unix.Fstat(int(log.Fd()), &info) != nil || onDisk(&info) <= s.spec.MaxLog {
		return
	}
	_ = dropBeginning(log, info.Size-s.spec.MaxLog/2)
}
