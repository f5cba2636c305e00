package model

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// File is one file, folder or link of a tree.
type File struct {
	Data   []byte
	Mode   fs.FileMode // type bits only
	Target string      // of a link
	// node tells which names lead to the same file.
	node int
}

// Files is a tree: paths relative to .chipset, such as "state/rig.json".
type Files map[string]File

// Names lists the files in a folder and below it, without temp files.
func (f Files) Names(dir string) []string {
	var names []string
	for p, file := range f {
		if strings.HasPrefix(p, dir+"/") && file.Mode.IsRegular() && !strings.HasPrefix(filepath.Base(p), ".") {
			names = append(names, p)
		}
	}
	slices.Sort(names)
	return names
}

// Holding lists the files in a folder and below it, without temp files, that
// contain a text.
func (f Files) Holding(dir, text string) []string {
	return slices.DeleteFunc(f.Names(dir), func(p string) bool {
		return !bytes.Contains(f[p].Data, []byte(text))
	})
}

func (f Files) String() string {
	var b strings.Builder
	for _, p := range slices.Sorted(maps.Keys(f)) {
		file := f[p]
		switch {
		case file.Mode.IsDir():
			continue
		case len(file.Data) > 64:
			fmt.Fprintf(&b, "      %s: %d bytes, %q…\n", p, len(file.Data), file.Data[:64])
		default:
			fmt.Fprintf(&b, "      %s: %q\n", p, file.Data)
		}
	}
	return b.String()
}

// files is the state that the walk stands at.
func (c *crashes) files() Files {
	folders := map[int]map[string]int{}
	for at, to := range c.names {
		if to == 0 || at == itself(at.dir) {
			continue
		}
		if folders[at.dir] == nil {
			folders[at.dir] = map[string]int{}
		}
		folders[at.dir][at.name] = to
	}
	all := Files{}
	c.descend(all, "", root, folders)
	return all
}

func (c *crashes) descend(all Files, prefix string, dir int, folders map[int]map[string]int) {
	for name, number := range folders[dir] {
		n, p := c.s.h.nodes[number], prefix+name
		switch {
		case n.mode.IsDir():
			if c.s.known[itself(number)] && c.names[itself(number)] == 0 {
				continue
			}
			if rel, inside := strings.CutPrefix(p, ".chipset/"); inside {
				all[rel] = File{Mode: n.mode, node: number}
			}
			c.descend(all, p+"/", number, folders)
		case c.chosen[number] != missing:
			rel, _ := strings.CutPrefix(p, ".chipset/")
			all[rel] = File{Data: c.data(number), Mode: n.mode, Target: n.target, node: number}
		}
	}
}

func (c *crashes) data(number int) []byte {
	f, touched := c.s.files[number]
	if !touched {
		return c.s.h.nodes[number].last()
	}
	return c.s.h.choices(number, f)[c.chosen[number]]
}

// write puts a tree below top, where nothing stands.
func (f Files) write(top string) error {
	base := filepath.Join(top, ".chipset")
	if err := os.MkdirAll(base, 0o755); err != nil {
		return err
	}
	written := map[int]string{}
	for _, p := range slices.Sorted(maps.Keys(f)) {
		file, at := f[p], filepath.Join(base, p)
		var err error
		switch first, again := written[file.node]; {
		case file.Mode.IsDir():
			err = os.Mkdir(at, 0o755)
		case again: // a second name of the same file
			err = os.Link(first, at)
		case file.Mode&fs.ModeSymlink != 0:
			err = os.Symlink(file.Target, at)
		default:
			err = os.WriteFile(at, file.Data, 0o644)
		}
		if err != nil {
			return err
		}
		written[file.node] = at
	}
	return nil
}

// read is the tree as programs see it.
func (r *Recorder) read() (Files, error) {
	all := Files{}
	base := filepath.Join(r.top, ".chipset")
	err := filepath.WalkDir(base, func(at string, e fs.DirEntry, err error) error {
		if err != nil || at == base {
			return err
		}
		if r.volatile(at) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		file := File{Mode: e.Type(), node: r.number(at)}
		if e.Type().IsRegular() {
			file.Data, err = os.ReadFile(at)
		} else if e.Type()&fs.ModeSymlink != 0 {
			file.Target, err = os.Readlink(at)
		}
		all[filepath.ToSlash(strings.TrimPrefix(at, base+"/"))] = file
		return err
	})
	return all, err
}

// whole lists, for each node, the content that a final name may lead to: what
// was there at the beginning, and what was written to its end.
func (h *history) whole(number int, data []byte) bool {
	n := h.nodes[number]
	if !n.born && bytes.Equal(data, n.versions[0]) {
		return true
	}
	return !n.short && len(n.versions) > 1 && bytes.Equal(data, n.last())
}

// torn returns the first file under a final name that is not whole. Logs are
// appended to and may end in a torn line.
func (h *history) torn(all Files) error {
	for p, file := range all {
		if !file.Mode.IsRegular() || strings.HasPrefix(filepath.Base(p), ".") || strings.HasSuffix(p, ".jsonl") {
			continue
		}
		if !h.whole(file.node, file.Data) {
			return fmt.Errorf("%s is torn: %d bytes, %.80q", p, len(file.Data), file.Data)
		}
	}
	return nil
}
