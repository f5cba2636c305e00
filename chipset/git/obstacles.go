package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Obstacles finds files that stand where git needs the folders of refs, of their reflogs, and of its records of
// worktrees, so that nothing below them can be made. Prefixes end with a slash. Without a journal a power cut leaves them: git removes a folder of
// refs that is empty, and its old name leads to whatever got its inode. A file that holds a commit is none: it is
// somebody's branch.
func (r *Repo) Obstacles(prefixes ...string) ([]string, error) {
	var found []string
	for _, prefix := range prefixes {
		name := filepath.FromSlash(strings.TrimSuffix(prefix, "/"))
		file, isFile, err := plainFile(filepath.Join(r.common, name))
		if err != nil {
			return found, err
		}
		if isFile {
			text, err := readPlain(file)
			if h := Hash(text); err == nil && (h.check() == nil && !h.IsZero() || strings.HasPrefix(text, "ref: ")) {
				continue
			}
			found = append(found, file)
		}
		reflog, isFile, err := plainFile(filepath.Join(r.common, "logs", name))
		if err != nil {
			return found, err
		}
		if isFile && !r.packed(Ref(strings.TrimSuffix(prefix, "/"))) {
			found = append(found, reflog)
		}
	}
	// git keeps what it knows of worktrees in a folder of that name.
	file, isFile, err := plainFile(filepath.Join(r.common, "worktrees"))
	if isFile {
		found = append(found, file)
	}
	return found, err
}

func plainFile(path string) (string, bool, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return path, false, nil
	}
	return path, err == nil && info.Mode().IsRegular(), err
}

// asideName is the folder of git's own in which what stood in its way is kept.
const asideName = "chipset-aside"

// SetAside moves a file away that Obstacles has found, and tells where it is kept: nothing is deleted that nobody
// understands. It is no error when the file is gone.
func (r *Repo) SetAside(path string) (string, error) {
	rel, err := filepath.Rel(r.common, path)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(r.common, asideName)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:forbidigo // a folder of git's own
		return "", err
	}
	for n := 1; ; n++ {
		to := filepath.Join(dir, fmt.Sprintf("%s-%d", strings.ReplaceAll(filepath.ToSlash(rel), "/", "-"), n))
		err := os.Link(path, to) //nolint:forbidigo // never over another file
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		if err := syncFolder(dir); err != nil {
			return "", err
		}
		if err := removeGitFile(path); err != nil {
			return "", err
		}
		return to, syncFolder(filepath.Dir(path))
	}
}
