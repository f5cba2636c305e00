package git

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxReflog is how much of the end of a reflog is read, in bytes.
const maxReflog = 64 << 10

// PlainRef returns what a ref holds if it is loose, as every ref is that was moved since it was last packed. It
// starts no process.
func (r *Repo) PlainRef(ref Ref) (h Hash, known bool) {
	if ref.check() != nil {
		return "", false
	}
	return r.looseRef(ref)
}

// CheckoutMade reports whether a checkout outside the folder below came to the commit by a command that names itself in the
// reflog, such as commit, merge or pull. A plain update-ref does not. It is also true if the
// repository keeps no reflogs. It starts no process.
func (r *Repo) CheckoutMade(h Hash, below string) (bool, error) {
	dirs, err := r.gitDirs()
	if err != nil {
		return false, err
	}
	for _, dir := range dirs {
		if link, err := registeredLink(dir); dir != r.common && (err != nil || within(link, below)) {
			continue
		}
		log, err := readEnd(filepath.Join(dir, "logs", "HEAD"))
		if errors.Is(err, fs.ErrNotExist) && dir == r.common {
			return true, nil
		}
		for line := range strings.Lines(string(log)) {
			head, message, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			if parts := strings.Fields(head); len(parts) > 2 && parts[1] == string(h) && message != "" {
				return true, nil
			}
		}
	}
	return false, nil
}

// readEnd returns the last maxReflog bytes of a regular file.
func readEnd(path string) ([]byte, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errNotItsName)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(-maxReflog, io.SeekEnd); err != nil {
		_, err = f.Seek(0, io.SeekStart)
		if err != nil {
			return nil, err
		}
	}
	data, err := io.ReadAll(f)
	return bytes.ToValidUTF8(data, nil), err
}
