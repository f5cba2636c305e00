package git

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gastown-chipset/chipset/chipset/git/internal/gitfile"
)

// Workers can write the index and the settings of a linked worktree. Marks in the index (assume-unchanged, skip-worktree)
// and a sparse checkout hide files from git, and would do so for the next worker too.

// mayHide reports whether files of a linked worktree may be hidden from git: its index has a mark, or can't be read here, or its sparse
// checkout differs from the person's.
func (w *Worktree) mayHide(p place) bool {
	return markedIndex(filepath.Join(p.gitDir, "index")) || w.strangeSparse(p) != ""
}

// unhide clears the marks in a linked worktree's index, and restores the person's sparse checkout.
func (w *Worktree) unhide(ctx context.Context, p place) error {
	if err := w.restoreSparse(p); err != nil {
		return err
	}
	if !markedIndex(filepath.Join(p.gitDir, "index")) {
		return nil
	}
	out, err := w.repo.run(ctx, p, Command{Args: []string{"ls-files", "-v", "-z"}, Read: true})
	if err != nil {
		return nil //nolint:nilerr // an index that git can't read is rebuilt later
	}
	var assumed, skipped []string
	for _, record := range fields(out) {
		tag, path, _ := bytes.Cut([]byte(record), []byte(" "))
		if bytes.ToUpper(tag)[0] != tag[0] {
			assumed = append(assumed, string(path))
		}
		if bytes.EqualFold(tag, []byte("S")) {
			skipped = append(skipped, string(path))
		}
	}
	if _, err := os.Stat(filepath.Join(p.gitDir, "config.worktree")); err == nil {
		skipped = nil // the person's own sparse checkout skips missing files, and none that exist
	}
	for mark, paths := range map[string][]string{"--no-assume-unchanged": assumed, "--no-skip-worktree": skipped} {
		if len(paths) == 0 {
			continue
		}
		if _, err := w.repo.run(ctx, p, Command{Args: []string{"update-index", mark, "-z", "--stdin"}, Stdin: terminated(paths)}); err != nil {
			return err
		}
	}
	return nil
}

// markedIndex reports whether an index has an entry marked assume-unchanged or skip-worktree. An unknown format
// counts as marked, a missing index does not.
func markedIndex(path string) bool {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	for _, hash := range []int{20, 32} {
		if marked, known := marks(data, hash); known {
			return marked
		}
	}
	return true
}

// marks reads the entries of an index of version 2 or 3, with hashes of the given size in bytes.
func marks(data []byte, hash int) (marked, known bool) {
	const head, stat, assumed, extended, nameMask, skip = 12, 40, 0x8000, 0x4000, 0x0fff, 0x4000
	if len(data) < head+hash || string(data[:4]) != "DIRC" {
		return false, false
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version != 2 && version != 3 {
		return false, false
	}
	rest := data[head : len(data)-hash]
	for range count {
		name := stat + hash + 2
		if len(rest) < name {
			return false, false
		}
		flags := binary.BigEndian.Uint16(rest[name-2:])
		if flags&extended != 0 {
			if version != 3 || len(rest) < name+2 {
				return false, false
			}
			marked = marked || binary.BigEndian.Uint16(rest[name:])&skip != 0
			name += 2
		}
		marked = marked || flags&assumed != 0
		end := bytes.IndexByte(rest[name:], 0)
		if end <= 0 || flags&nameMask != nameMask && end != int(flags&nameMask) {
			return false, false
		}
		next := (name + end + 8) &^ 7 // one to eight NULs
		if next > len(rest) {
			return false, false
		}
		rest = rest[next:]
	}
	return marked, !bytes.HasPrefix(rest, []byte("link")) // a split index has entries elsewhere
}

// sparseFiles returns the files in a git directory that make a checkout sparse.
func sparseFiles() []string { return []string{"config.worktree", "info/sparse-checkout"} }

// strangeSparse returns the file that makes a linked worktree's checkout sparse in another way than the person's,
// or "".
func (w *Worktree) strangeSparse(p place) string {
	for _, name := range sparseFiles() {
		own, ownErr := os.ReadFile(filepath.Join(p.gitDir, name))
		persons, err := os.ReadFile(filepath.Join(w.repo.common, name))
		switch {
		case ownErr != nil && errors.Is(ownErr, fs.ErrNotExist) && err != nil:
		case err == nil && name == "config.worktree" && ownErr == nil: // git does not copy the main worktree's own settings
		case err == nil && ownErr == nil && bytes.Equal(own, persons):
		default:
			return name
		}
	}
	return ""
}

// restoreSparse gives a linked worktree the person's sparse checkout, or none.
func (w *Worktree) restoreSparse(p place) error {
	if w.strangeSparse(p) == "" {
		return nil
	}
	for _, name := range sparseFiles() {
		if err := gitfile.Remove(filepath.Join(p.gitDir, name)); err != nil {
			return err
		}
		persons, err := os.ReadFile(filepath.Join(w.repo.common, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && name == "config.worktree" {
			persons = []byte("[core]\n\tsparseCheckout = true\n") // the rest applies to the main worktree only
			if !sparseOnly(filepath.Join(w.repo.common, name)) {
				continue
			}
		}
		if err == nil {
			err = os.MkdirAll(filepath.Join(p.gitDir, filepath.Dir(name)), 0o755) //nolint:forbidigo // git's own folder
		}
		if err == nil {
			err = gitfile.Write(filepath.Join(p.gitDir, name), string(persons))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
