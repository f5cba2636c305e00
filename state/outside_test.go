package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReadOutside(t *testing.T) {
	dir := t.TempDir()
	file, fifo, link := filepath.Join(dir, "file"), filepath.Join(dir, "fifo"), filepath.Join(dir, "link")
	must(t, os.WriteFile(file, []byte("12345"), 0o644))
	must(t, unix.Mkfifo(fifo, 0o644))
	must(t, os.Symlink(file, link))
	for _, path := range []string{file, link} {
		if got, err := ReadOutside(path, 5); err != nil || string(got) != "12345" {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	for path, want := range map[string]error{
		filepath.Join(dir, "none"): fs.ErrNotExist,
		fifo:                       ErrNotRegular,
		dir:                        ErrNotRegular,
		"/dev/zero":                ErrNotRegular,
	} {
		if _, err := ReadOutside(path, 5); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	if _, err := ReadOutside(file, 4); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one byte over the limit: %v, want ErrTooLarge", err)
	}
}
