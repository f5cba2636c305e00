//go:build !linux

package state

import "errors"

// born is the time when an open file was created, or 0.
func born(int) int64 { return 0 }

// Entries returns the entries of the folder, unsorted, without temp files and other
// dot-files.
func (f *Folder) Entries() ([]FolderEntry, error) {
	entries, err := f.tree.List(f.dir)
	if err != nil {
		return nil, err
	}
	names := make([]FolderEntry, 0, len(entries))
	for _, e := range entries {
		stamp, err := f.Stat(e.Name())
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		names = append(names, FolderEntry{Name: e.Name(), Inode: stamp.Inode})
	}
	return names, nil
}
