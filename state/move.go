package state

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
)

// FileMove is a move of one file.
type FileMove struct{ From, To Path }

// Move renames a file to a name that does not exist. It returns ErrExists when the name
// is taken by a different file, and ErrNotFound when there is no file to move. When it
// returns nil, the move survives a power cut. After an error the file has its old name,
// or both names with the same content; calling Move again then completes the move.
func (t *Tree) Move(from, to Path) error { return t.MoveAll([]FileMove{{From: from, To: to}})[0] }

// MoveAll is Move for many files, with one sync for each folder. It returns for each,
// in their order, what Move would have returned.
func (t *Tree) MoveAll(moves []FileMove) []error {
	errs := make([]error, len(moves))
	for i, m := range moves {
		if errs[i] = t.check(m.From); errs[i] == nil {
			errs[i] = t.makeRoom(m.To)
		}
	}
	if t.able().Journal || volatile(moves) {
		t.renameAll(moves, errs)
	} else {
		t.copyAll(moves, errs)
	}
	return errs
}

// volatile reports whether all moves are within run/, so that nothing need survive. They
// are always made by rename, so that of many callers that want a file one gets it.
func volatile(moves []FileMove) bool {
	for _, m := range moves {
		if !inRun(m.From) || !inRun(m.To) {
			return false
		}
	}
	return true
}

// renameAll renames the files, then syncs their new folders, then the old ones, so that a
// power cut never leaves a file without a name.
func (t *Tree) renameAll(moves []FileMove, errs []error) {
	moved := make([]bool, len(moves))
	to, from := map[Path]error{}, map[Path]error{}
	for i, m := range moves {
		if errs[i] != nil {
			continue
		}
		err := t.disk.RenameNew(t.Abs(m.From), t.Abs(m.To))
		switch {
		case errors.Is(err, fs.ErrExist):
			errs[i] = t.finishMove(m)
		case err != nil:
			errs[i] = wrapPath(m.From, err)
		default:
			moved[i], to[m.To.Dir()], from[m.From.Dir()] = true, nil, nil
		}
	}
	t.syncEach(to)
	for i, m := range moves {
		if err := to[m.To.Dir()]; moved[i] && err != nil {
			errs[i], moved[i] = err, false
			_ = t.disk.RenameNew(t.Abs(m.To), t.Abs(m.From)) // the first error counts
		}
	}
	t.syncEach(from)
	for i, m := range moves {
		if moved[i] {
			errs[i] = from[m.From.Dir()]
		}
	}
}

func (t *Tree) syncEach(dirs map[Path]error) {
	for dir := range dirs {
		dirs[dir] = t.SyncDir(dir)
	}
}

// copyAll publishes a copy of each file and then removes the original, for file systems
// on which a renamed file can lose its old name before its new name is on the disk.
// Folders, links and other files that Read refuses are renamed: their durability was
// never promised.
func (t *Tree) copyAll(moves []FileMove, errs []error) {
	var copies []NewFile
	var at, rest []int
	for i, m := range moves {
		if errs[i] != nil {
			continue
		}
		data, err := t.Read(m.From, MaxFile)
		switch {
		case err == nil:
			copies, at = append(copies, NewFile{Path: m.To, Data: data}), append(at, i)
		case errors.Is(err, ErrCorrupt):
			rest = append(rest, i)
		default:
			errs[i] = err
		}
	}
	gone := map[Path]error{}
	for k, err := range t.WriteAll(copies) {
		i := at[k]
		if errs[i] = err; errors.Is(err, ErrExists) {
			errs[i] = t.same(moves[i])
		}
		if errs[i] == nil {
			errs[i] = wrapPath(moves[i].From, t.disk.Remove(t.Abs(moves[i].From)))
			gone[moves[i].From.Dir()] = nil
		}
	}
	t.syncEach(gone)
	for _, i := range at {
		if errs[i] == nil {
			errs[i] = gone[moves[i].From.Dir()]
		}
	}
	for _, i := range rest {
		one := errs[i : i+1]
		t.renameAll(moves[i:i+1], one)
	}
}

// finishMove completes a move that a crash interrupted: if both names have the same
// content, it removes the old one. Otherwise it returns ErrExists.
func (t *Tree) finishMove(m FileMove) error {
	if err := t.same(m); err != nil {
		return err
	}
	if err := t.SyncDir(m.To.Dir()); err != nil {
		return err
	}
	return t.Remove(m.From)
}

// same returns nil if both names have the same content, and ErrExists if not.
func (t *Tree) same(m FileMove) error {
	from, fromErr := t.Read(m.From, MaxFile)
	to, toErr := t.Read(m.To, MaxFile)
	if errors.Is(fromErr, ErrNotFound) {
		return fromErr
	}
	if fromErr != nil || toErr != nil || !bytes.Equal(from, to) {
		return t.exists(m.To)
	}
	return nil
}

// exists returns ErrExists after it has made the entry of the other writer durable,
// because the caller may rely on it.
func (t *Tree) exists(p Path) error {
	if err := t.SyncDir(p.Dir()); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", p, ErrExists)
}
