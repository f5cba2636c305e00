package git

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's own checksum, no secret
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// maxIndex bounds the index that is checked byte by byte, in bytes; a larger one is taken for whole.
const maxIndex = 64 << 20

// tornIndex says why an index can't be the one that git wrote, or "". None at all is what "reset" makes anew.
func tornIndex(path string) string {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "is missing"
	case err != nil || !info.Mode().IsRegular():
		return "is no file"
	case info.Size() > maxIndex:
		return ""
	}
	data, err := os.ReadFile(path)
	if err != nil || len(data) < 12+sha1.Size || !bytes.HasPrefix(data, []byte("DIRC")) {
		return "is torn"
	}
	for _, size := range []int{sha1.Size, sha256.Size} {
		if len(data) < 12+size {
			continue
		}
		body, sum := data[:len(data)-size], data[len(data)-size:]
		var want []byte
		if size == sha1.Size {
			got := sha1.Sum(body) //nolint:gosec // git's own checksum, no secret
			want = got[:]
		} else {
			got := sha256.Sum256(body)
			want = got[:]
		}
		if bytes.Equal(sum, want) || len(bytes.Trim(sum, "\x00")) == 0 { // index.skipHash writes zeros
			return ""
		}
	}
	return "is torn"
}

// writeGitFile durably puts one of git's small files in place that git itself can't write any more: it takes no
// command in a worktree or on a ref whose files it can't read.
func writeGitFile(path, text string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:forbidigo // a folder of git's own
		return err
	}
	f, err := os.CreateTemp(dir, "chipset-mend-") //nolint:forbidigo // a file of git's own, below no state tree
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path) //nolint:forbidigo // the file was synced just now
	}
	if err != nil {
		return errors.Join(err, removeGitFile(f.Name()))
	}
	return syncFolder(dir)
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// EmptyObjects lists the loose objects of no bytes at all, which a power cut leaves of what no git had synced. They
// hold nothing, but git takes them for there, and would write their content never again.
func (r *Repo) EmptyObjects() ([]string, error) {
	root := filepath.Join(r.common, "objects")
	fans, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	var empty []string
	for _, fan := range fans {
		if len(fan.Name()) != 2 || !fan.IsDir() {
			continue
		}
		objects, err := os.ReadDir(filepath.Join(root, fan.Name()))
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			info, err := o.Info()
			if err == nil && info.Mode().IsRegular() && info.Size() == 0 && Hash(fan.Name()+o.Name()).check() == nil {
				empty = append(empty, filepath.Join(root, fan.Name(), o.Name()))
			}
		}
	}
	return empty, nil
}

// DropEmptyObjects removes what EmptyObjects lists.
func (r *Repo) DropEmptyObjects() error {
	empty, err := r.EmptyObjects()
	for _, path := range empty {
		err = errors.Join(err, removeGitFile(path))
	}
	return err
}
