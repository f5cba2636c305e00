package powercut

import (
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	typeMask = syscall.S_IFMT
	maxName  = 255
)

// Tree is one state of the disk: what programs see, and below it what would
// survive. It is not safe for concurrent use.
type Tree struct {
	root *node
	// changes are the changes of folders that no fsync has made durable, oldest first.
	changes []*change
	// unsynced are the files with content that no fsync has made durable.
	unsynced map[*node]bool
	lastIno  uint64
	// atomic is set where a journal keeps the two names of a rename together.
	atomic bool
	// gone is set once the machine has stopped: what still runs gets EIO.
	gone bool
}

// AtomicRenames makes it a disk with a journal: of the two names of a rename a cut
// leaves one, never both. The trees that are made of it are the same.
func (t *Tree) AtomicRenames() { t.atomic = true }

// NewTree makes an empty disk.
func NewTree() *Tree {
	t := &Tree{unsynced: map[*node]bool{}}
	t.root = t.newNode(syscall.S_IFDIR | 0o755)
	t.root.nlink = 1
	return t
}

// node is one file, folder or symbolic link.
type node struct {
	tree    *Tree
	ino     uint64 // what programs see; it survives a cut
	id      uint64 // given by FS when the kernel first hears of it
	lookups uint64 // how often the kernel heard of it and has not forgotten
	mode    uint32
	mtime   time.Time
	kept    time.Time // the modification time that a cut leaves
	nlink   uint32

	parent *node  // with name, where it was last seen; for the log
	name   string // empty for the root

	content    content           // of a file
	dirtyClose bool              // written to since the last close
	target     string            // of a symbolic link
	entries    map[string]*entry // of a folder, as programs see them
	durable    map[string]*node  // of a folder, as a cut leaves them
	cookie     uint64            // of a folder, the last one given
}

// entry is a name in a folder. Its cookie never changes, so that a listing can
// go on where it stopped.
type entry struct {
	to     *node
	cookie uint64
}

// change is one name that began to mean something else.
type change struct {
	dir  *node
	name string
	to   *node // nil when the name went away
	at   time.Time
	// needs is the new name of a file whose old name goes away with this change:
	// no file system that journals loses both.
	needs *change
	// mate is the other half of a rename.
	mate *change
}

func (t *Tree) newNode(mode uint32) *node {
	t.lastIno++
	n := &node{tree: t, ino: t.lastIno, mode: mode, mtime: time.Now()}
	n.kept = n.mtime
	if n.isDir() {
		n.entries, n.durable = map[string]*entry{}, map[string]*node{}
	}
	return n
}

func (n *node) isDir() bool  { return n.mode&typeMask == syscall.S_IFDIR }
func (n *node) isFile() bool { return n.mode&typeMask == syscall.S_IFREG }

// path is where the node was last seen.
func (n *node) path() string {
	if n.parent == nil {
		return n.name
	}
	return path.Join(n.parent.path(), n.name)
}

// set lets a name mean another node (nil: nothing) and notes that it is not durable.
func (t *Tree) set(dir *node, name string, to *node, needs *change) *change {
	if old := dir.entries[name]; old != nil {
		old.to.nlink--
		delete(dir.entries, name)
	}
	if to != nil {
		dir.cookie++
		dir.entries[name] = &entry{to: to, cookie: dir.cookie}
		to.nlink++
		to.parent, to.name = dir, name
	}
	dir.mtime = time.Now()
	c := &change{dir: dir, name: name, to: to, at: dir.mtime, needs: needs}
	t.changes = append(t.changes, c)
	return c
}

func (t *Tree) lookup(dir *node, name string) (*node, syscall.Errno) {
	if !dir.isDir() {
		return nil, syscall.ENOTDIR
	}
	if len(name) > maxName {
		return nil, syscall.ENAMETOOLONG
	}
	e := dir.entries[name]
	if e == nil {
		return nil, syscall.ENOENT
	}
	return e.to, 0
}

// make puts a new node into a folder.
func (t *Tree) make(dir *node, name string, mode uint32, target string) (*node, syscall.Errno) {
	switch _, err := t.lookup(dir, name); err {
	case syscall.ENOENT:
	case 0:
		return nil, syscall.EEXIST
	default:
		return nil, err
	}
	n := t.newNode(mode)
	n.target = target
	t.set(dir, name, n, nil)
	return n, 0
}

func (t *Tree) link(n, dir *node, name string) syscall.Errno {
	if n.isDir() {
		return syscall.EPERM
	}
	switch _, err := t.lookup(dir, name); err {
	case syscall.ENOENT:
		t.set(dir, name, n, nil)
		return 0
	case 0:
		return syscall.EEXIST
	default:
		return err
	}
}

func (t *Tree) remove(dir *node, name string, folder bool) syscall.Errno {
	n, err := t.lookup(dir, name)
	switch {
	case err != 0:
		return err
	case folder && !n.isDir():
		return syscall.ENOTDIR
	case !folder && n.isDir():
		return syscall.EISDIR
	case n.isDir() && len(n.entries) > 0:
		return syscall.ENOTEMPTY
	}
	t.set(dir, name, nil, nil)
	return 0
}

func (t *Tree) rename(from *node, oldName string, to *node, newName string, noReplace bool) syscall.Errno {
	n, err := t.lookup(from, oldName)
	if err != 0 {
		return err
	}
	there, err := t.lookup(to, newName)
	switch {
	case err == syscall.ENOENT:
	case err != 0:
		return err
	case noReplace:
		return syscall.EEXIST
	case there == n:
		return 0
	case there.isDir() && !n.isDir():
		return syscall.EISDIR
	case !there.isDir() && n.isDir():
		return syscall.ENOTDIR
	case there.isDir() && len(there.entries) > 0:
		return syscall.ENOTEMPTY
	}
	added := t.set(to, newName, n, nil)
	added.mate = t.set(from, oldName, nil, added)
	added.mate.mate = added
	n.parent, n.name = to, newName
	return 0
}

// syncDir makes the entries of a folder durable.
func (t *Tree) syncDir(dir *node) {
	t.commit(func(c *change) bool { return c.dir == dir })
}

// syncFile makes the content of a file durable.
func (t *Tree) syncFile(n *node) {
	n.content.sync()
	n.kept = n.mtime
	delete(t.unsynced, n)
}

// loseFile is a failed fsync of a file.
func (t *Tree) loseFile(n *node) {
	n.content.lose()
	delete(t.unsynced, n)
}

// syncAll makes everything durable.
func (t *Tree) syncAll() {
	for n := range t.unsynced {
		n.content.sync()
		n.kept = n.mtime
	}
	clear(t.unsynced)
	t.commit(func(*change) bool { return true })
}

// loseAll is a failed sync of everything: the content that waited is gone.
func (t *Tree) loseAll() {
	for n := range t.unsynced {
		n.content.lose()
	}
	clear(t.unsynced)
}

// commit makes the chosen changes durable, and with them what they need: the
// earlier changes of the same names.
func (t *Tree) commit(chosen func(*change) bool) {
	take := t.closure(chosen)
	t.changes = slices.DeleteFunc(t.changes, func(c *change) bool {
		if take[c] {
			apply(c)
		}
		return take[c]
	})
}

func apply(c *change) {
	c.dir.kept = c.at
	if c.to == nil {
		delete(c.dir.durable, c.name)
	} else {
		c.dir.durable[c.name] = c.to
	}
}

// closure is the set of changes that are durable when the chosen ones are.
func (t *Tree) closure(chosen func(*change) bool) map[*change]bool {
	take := map[*change]bool{}
	for _, c := range t.changes {
		if chosen(c) {
			take[c] = true
		}
	}
	for grown := true; grown; {
		grown = t.spread(take)
	}
	return take
}

// spread takes, from the newest on, what the taken ones need and build upon, and
// reports whether another look is needed.
func (t *Tree) spread(take map[*change]bool) (grown bool) {
	type place struct {
		dir  *node
		name string
	}
	upTo := map[place]bool{}
	for _, c := range slices.Backward(t.changes) {
		at := place{c.dir, c.name}
		if !take[c] && !upTo[at] {
			continue
		}
		take[c], upTo[at] = true, true
		if c.needs != nil {
			take[c.needs] = true // it lies before
		}
		if t.atomic && c.mate != nil && !take[c.mate] {
			take[c.mate], grown = true, true
		}
	}
	return grown
}

// Clone is the tree as programs see it, on a disk of its own, all durable.
func (t *Tree) Clone() *Tree {
	return t.build(func(n *node) remains {
		r := remains{mtime: n.mtime, data: n.content.now}
		n.content.shared = true
		if n.isDir() {
			r.entries = make(map[string]*node, len(n.entries))
			for name, e := range n.entries {
				r.entries[name] = e.to
			}
		}
		return r
	})
}

// remains is what is left of a node.
type remains struct {
	entries map[string]*node
	data    []byte
	mtime   time.Time
}

// build makes a tree of what is left of the nodes of the old one.
func (t *Tree) build(left func(*node) remains) *Tree {
	fresh := &Tree{unsynced: map[*node]bool{}, atomic: t.atomic}
	copies := map[*node]*node{}
	var visit func(n *node) *node
	visit = func(n *node) *node {
		c, r := fresh.newNode(n.mode), left(n)
		c.mtime, c.kept, c.ino, c.target, c.name = r.mtime, r.mtime, n.ino, n.target, n.name
		copies[n] = c
		if n.isFile() {
			c.content = durable(r.data)
		}
		for _, name := range slices.Sorted(maps.Keys(r.entries)) {
			old := r.entries[name]
			to := copies[old]
			switch {
			case to == nil:
				to = visit(old)
			case old.isDir():
				continue // a folder that was moved shows at one of its places
			}
			c.cookie++
			c.entries[name] = &entry{to: to, cookie: c.cookie}
			c.durable[name] = to
			to.parent, to.name = c, name
			to.nlink++
		}
		return c
	}
	fresh.root = visit(t.root)
	fresh.root.nlink, fresh.lastIno = 1, t.lastIno
	return fresh
}

// find is the node at a slash-separated path from the root, or nil.
func (t *Tree) find(name string) *node {
	n := t.root
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." {
			continue
		}
		if n = n.child(part); n == nil {
			return nil
		}
	}
	return n
}

func (n *node) child(name string) *node {
	if e := n.entries[name]; e != nil {
		return e.to
	}
	return nil
}
