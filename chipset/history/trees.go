package history

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/git"
)

// namer computes the hash of an object in the repository's format, SHA-1 or SHA-256.
type namer func(kind string, data []byte) git.Hash

func newNamer(format string) namer {
	return func(kind string, data []byte) git.Hash {
		var h hash.Hash
		if format == "sha256" {
			h = sha256.New()
		} else {
			h = sha1.New()
		}
		h.Write(fmt.Appendf(nil, "%s %d\x00", kind, len(data)))
		h.Write(data)
		return git.Hash(hex.EncodeToString(h.Sum(nil)))
	}
}

// entry is one name in a folder.
type entry struct {
	name string
	id   git.Hash
	tree bool
}

// key returns what git orders names by.
func (e entry) key() string {
	if e.tree {
		return e.name + "/"
	}
	return e.name
}

// folders are the git trees of a snapshot, by the path below state/; "." is the root. They are
// made here because fast-import scans a folder once for each file in it, which
// is too slow for a mailbox of 100,000 messages.
func folders(files map[string]version, name namer) (map[string][]entry, git.Hash) {
	all := map[string][]entry{".": nil}
	for p, v := range files {
		dir := path.Dir(p)
		all[dir] = append(all[dir], entry{name: path.Base(p), id: v.id})
		for dir != "." { // a folder with only folders in it
			dir = path.Dir(dir)
			if _, known := all[dir]; known {
				break
			}
			all[dir] = nil
		}
	}
	deepestFirst := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return depth(b) - depth(a) })
	var id git.Hash
	for _, dir := range deepestFirst {
		entries := all[dir]
		slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key(), b.key()) })
		if id = name("tree", encoded(entries)); dir != "." {
			up := path.Dir(dir)
			all[up] = append(all[up], entry{path.Base(dir), id, true})
		}
	}
	return all, id
}

func depth(dir string) int {
	if dir == "." {
		return 0
	}
	return 1 + strings.Count(dir, "/")
}

// encoded is a tree as git stores it.
func encoded(entries []entry) []byte {
	var b bytes.Buffer
	for _, e := range entries {
		mode := "100644"
		if e.tree {
			mode = "40000"
		}
		raw, _ := hex.DecodeString(string(e.id)) // it was encoded here
		b.WriteString(mode + " " + e.name + "\x00")
		b.Write(raw)
	}
	return b.Bytes()
}

// movedFolders returns the folders whose content has changed, and ".".
func movedFolders(all map[string][]entry, changed []string) []string {
	moved := map[string]bool{".": true}
	for _, p := range changed {
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			if _, there := all[dir]; there {
				moved[dir] = true
			}
		}
	}
	return slices.Collect(maps.Keys(moved))
}

// writeTrees makes git write the trees of all changed folders.
func (c *Recorder) writeTrees(ctx context.Context, s *step) error {
	var in bytes.Buffer
	for _, dir := range s.moved {
		for _, e := range s.folders[dir] {
			kind := "100644 blob"
			if e.tree {
				kind = "040000 tree"
			}
			fmt.Fprintf(&in, "%s %s\t%s\x00", kind, e.id, e.name)
		}
		in.WriteByte(0)
	}
	out, err := c.rig.Git.Run(ctx, git.Command{Args: []string{"mktree", "-z", "--missing", "--batch"}, Stdin: in.Bytes()})
	if err == nil && !strings.Contains(string(out), string(s.whole)) {
		err = fmt.Errorf("snapshot: git made other trees than %s", s.whole)
	}
	return err
}
