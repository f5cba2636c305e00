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

// The index and the settings of a linked worktree are written by workers. Marks in it (assume-unchanged, skip-worktree)
// and a sparse checkout of its own make git look past files, in the next worker's worktree too.

// mayHide reports whether git may look past files of a linked worktree: its index has a mark, or can't be read here, or its sparse
// checkout is not the person's.
func (w *Worktree) mayHide(p place) bool {
	return markedIndex(filepath.Join(p.gitDir, "index")) || w.strangeSparse(p) != ""
}

// unhide takes the marks off a linked worktree's index, and makes its sparse checkout the person's again.
func (w *Worktree) unhide(ctx context.Context, p place) error {
	if err := w.restoreSparse(p); err != nil {
		return err
	}
	if !markedIndex(filepath.Join(p.gitDir, "index")) {
		return nil
	}
	out, err := w.repo.run(ctx, p, Command{Args: []string{"ls-files", "-v", "-z"}, Read: true})
	if err != nil {
		return nil //nolint:nilerr // an index that git can't read is made anew
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
		skipped = nil // a sparse checkout of the person's skips what it lacks, and nothing that is there
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

// markedIndex reports whether an entry of an index is marked as assume-unchanged or skip-worktree. One in a form that is
// not known here counts as marked; none is not.
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

// marks reads the entries of an index of version 2 or 3 in a repository whose hashes have so many bytes.
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
	return marked, !bytes.HasPrefix(rest, []byte("link")) // else the entries stand elsewhere
}

// sparseFiles are those of a git directory that make a checkout sparse.
func sparseFiles() []string { return []string{"config.worktree", "info/sparse-checkout"} }

// strangeSparse returns the file of a linked worktree by which its checkout is sparse and the person's is not, or
// another way, or "".
func (w *Worktree) strangeSparse(p place) string {
	for _, name := range sparseFiles() {
		own, ownErr := os.ReadFile(filepath.Join(p.gitDir, name))
		persons, err := os.ReadFile(filepath.Join(w.repo.common, name))
		switch {
		case ownErr != nil && errors.Is(ownErr, fs.ErrNotExist) && err != nil:
		case err == nil && name == "config.worktree" && ownErr == nil: // git leaves out of it what is the main worktree's
		case err == nil && ownErr == nil && bytes.Equal(own, persons):
		default:
			return name
		}
	}
	return ""
}

// restoreSparse makes the sparse checkout of a linked worktree the person's, or none.
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
			persons = []byte("[core]\n\tsparseCheckout = true\n") // the rest of it is the main worktree's
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
