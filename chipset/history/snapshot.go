package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// maxSnapshotFile and maxLog bound the size of one file, in bytes. A larger file
// does not belong in the tree.
const (
	maxSnapshotFile = 16 * state.MaxFile
	maxLog          = 1 << 30
)

// settledAge is how old a file must be when it is read, so that any later version has another
// time stamp.
const settledAge = 100 * time.Millisecond

// version is one file as it was read.
type version struct {
	id git.Hash
	// data is nil if the file is unchanged since it was last read.
	data []byte
	info fs.FileInfo
	// settled is false if a newer version could have the same time stamp and size.
	settled bool
}

// snapshot is the result of one pass over the tree, by the path below state/.
type snapshot struct {
	files map[string]version
	// skipped lists what was left out, and why.
	skipped []error
}

// reader takes snapshots of one tree and caches what it has read.
type reader struct {
	tree  *state.Tree
	name  namer
	known map[string]version
}

// read takes a snapshot. It returns errors of the disk, and skips what does not belong in the
// tree.
func (r *reader) read(ctx context.Context) (*snapshot, error) {
	s := &snapshot{files: map[string]version{}}
	top, err := r.tree.List(state.StateDir)
	if err != nil {
		return nil, err
	}
	quarantine := state.QuarantineDir.Base()
	var last []fs.DirEntry
	for _, e := range top {
		if e.Name() == quarantine {
			last = append(last, e)
			continue
		}
		if err := r.visit(ctx, s, state.StateDir, e); err != nil {
			return nil, err
		}
	}
	for _, e := range last {
		if err := r.visit(ctx, s, state.StateDir, e); err != nil {
			return nil, err
		}
	}
	s.dropMoved()
	r.known = s.files
	return s, nil
}

// visit reads one entry, and everything below it. The files of a folder come before its
// folders, so that a mailbox is read before its archive is listed.
func (r *reader) visit(ctx context.Context, s *snapshot, dir state.Path, e fs.DirEntry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p := dir.Join(e.Name())
	if !e.IsDir() {
		return s.skip(p, r.file(s, p, e))
	}
	entries, err := r.tree.List(p)
	if err != nil {
		return s.skip(p, err)
	}
	for _, folders := range []bool{false, true} {
		for _, e := range entries {
			if e.IsDir() != folders {
				continue
			}
			if err := r.visit(ctx, s, p, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// skip returns err, or nil if the file does not belong in the tree or has moved meanwhile.
func (s *snapshot) skip(p state.Path, err error) error {
	switch {
	case errors.Is(err, state.ErrNotFound):
		return nil
	case errors.Is(err, state.ErrCorrupt):
		s.skipped = append(s.skipped, err)
		return nil
	case err != nil:
		return fmt.Errorf("snapshot of %s: %w", p, err)
	}
	return nil
}

func (r *reader) file(s *snapshot, p state.Path, e fs.DirEntry) error {
	below := strings.TrimPrefix(string(p), string(state.StateDir)+"/")
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return state.ErrNotFound
	}
	if err != nil {
		return err
	}
	known, seen := r.known[below]
	if seen && known.settled && state.SameVersion(known.info, info) {
		known.data = nil
		s.files[below] = known
		return nil
	}
	v := version{info: info, settled: time.Since(info.ModTime()) > settledAge}
	limit := int64(maxSnapshotFile)
	if p.Dir() == event.Dir {
		limit = maxLog
	}
	v.data, err = r.tree.Read(p, limit)
	if errors.Is(err, state.ErrHardLinked) && seen {
		known.data, known.settled = nil, false // its content is unchanged, as far as its time stamp and size tell
		s.files[below] = known
	}
	if err != nil {
		return err
	}
	if p.Dir() == event.Dir {
		v.data = v.data[:bytes.LastIndexByte(v.data, '\n')+1]
	}
	v.id = r.name("blob", v.data)
	s.files[below] = v
	return nil
}

// dropMoved drops messages from their mailbox that were also seen in its archive.
func (s *snapshot) dropMoved() {
	for p := range s.files {
		dir, name := path.Split(p)
		if mailbox, archived := strings.CutSuffix(dir, "/archive/"); archived && strings.HasPrefix(p, "mail/") {
			delete(s.files, path.Join(mailbox, name))
		}
	}
}
