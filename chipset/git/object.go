package git

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git's own object names, no secret
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"os"
	"strconv"
	"strings"
)

// What a rig asks of commits is nearly always about those that it made itself a moment ago, which are loose objects:
// files of git's own that never change under their name. Reading one costs a hundredth of a process. Whatever
// is not there, not whole, too large, or could mean something else than it says (replacements, grafts)
// is left to git: the functions here say known == false.

const (
	// maxLoose bounds a commit or tree that is read here, in bytes.
	maxLoose = 1 << 20
	// maxWalk bounds how many commits or trees are read for one answer; beyond that git is faster.
	maxWalk = 256
)

// object reads a loose object of a kind ("commit", "tree") that is what its name says.
func (r *Repo) object(h Hash, kind string) (content []byte, known bool) {
	if h.check() != nil {
		return nil, false
	}
	f, err := os.Open(r.loose(h))
	if err != nil {
		return nil, false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxLoose {
		return nil, false
	}
	z, err := zlib.NewReader(bufio.NewReader(f))
	if err != nil {
		return nil, false
	}
	whole, err := io.ReadAll(io.LimitReader(z, maxLoose+1))
	if err != nil || len(whole) > maxLoose {
		return nil, false
	}
	sum := newSum(h)
	sum.Write(whole)
	head, content, found := bytes.Cut(whole, []byte{0})
	if !found || string(head) != kind+" "+strconv.Itoa(len(content)) || hex.EncodeToString(sum.Sum(nil)) != string(h) {
		return nil, false
	}
	return content, true
}

func newSum(h Hash) hash.Hash {
	if len(h) == hex.EncodedLen(sha256.Size) {
		return sha256.New()
	}
	return sha1.New() //nolint:gosec // git's own object names, no secret
}

// there reports whether a name is a loose commit's. False is no proof of the contrary.
func (r *Repo) there(h Hash) bool {
	if !r.historyFixed() {
		return false
	}
	_, known := r.object(h, "commit")
	return known
}

// whole reports whether a loose commit and its tree are there. False is no proof of the contrary.
func (r *Repo) whole(h Hash) bool {
	if !r.there(h) {
		return false
	}
	c, known := r.commitFacts(h)
	if !known {
		return false
	}
	_, known = r.object(c.tree, "tree")
	return known
}

// commitFacts are what a commit says of its place in history.
type commitFacts struct {
	tree    Hash
	parents []Hash
}

// commitFacts reads the head of a loose commit. It is not for repositories whose history is not fixed.
func (r *Repo) commitFacts(h Hash) (c commitFacts, known bool) {
	if c, known := r.facts.commits.get(pair{h, h}); known {
		return c, true
	}
	content, known := r.object(h, "commit")
	if !known {
		return c, false
	}
	for text := range strings.Lines(string(content)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(text, "\n"), " ")
		if key != "tree" && key != "parent" {
			break
		}
		name, err := ParseHash(value)
		if err != nil {
			return commitFacts{}, false
		}
		if key == "tree" {
			c.tree = name
		} else {
			c.parents = append(c.parents, name)
		}
	}
	if c.tree == "" {
		return c, false
	}
	r.facts.commits.put(pair{h, h}, c)
	return c, true
}

// lineage is a walk from a commit to its parents, as long as each has one.
type lineage struct {
	commits []Hash
	at      map[Hash]int
	ended   bool
}

func lineageOf(h Hash) *lineage { return &lineage{commits: []Hash{h}, at: map[Hash]int{h: 0}} }

func (l *lineage) last() Hash { return l.commits[len(l.commits)-1] }

func (l *lineage) extend(r *Repo) {
	c, known := r.commitFacts(l.last())
	if l.ended = !known || len(c.parents) != 1; l.ended {
		return
	}
	l.at[c.parents[0]] = len(l.commits)
	l.commits = append(l.commits, c.parents[0])
}

// walkRange is commitRange without git: for a head whose history is a line down to where it left base's, and a base
// of which the same is true. The commits of head's line above that fork can't be in base's history another
// way: that goes on below the fork, where none of them is an ancestor of itself.
func (r *Repo) walkRange(base, head Hash) (result commitRange, known bool) {
	if !r.historyFixed() {
		return commitRange{}, false
	}
	ours, theirs := lineageOf(head), lineageOf(base)
	for range maxWalk {
		if n, met := ours.at[theirs.last()]; met {
			return commitRange{count: n, fork: theirs.last()}, true
		}
		if _, met := theirs.at[ours.last()]; met {
			return commitRange{count: len(ours.commits) - 1, fork: ours.last()}, true
		}
		if ours.ended && theirs.ended {
			break
		}
		if !ours.ended {
			ours.extend(r)
		}
		if n, met := ours.at[theirs.last()]; met {
			return commitRange{count: n, fork: theirs.last()}, true
		}
		if !theirs.ended {
			theirs.extend(r)
		}
	}
	return commitRange{}, false
}

// treeEntry is one line of a tree.
type treeEntry struct {
	mode, name string
	hash       Hash
}

func (e treeEntry) isTree() bool { return e.mode == "40000" }

// isLink tells whether the entry is a commit of another repository.
func (e treeEntry) isLink() bool { return e.mode == "160000" }

// sortName is the name by which git orders trees.
func (e treeEntry) sortName() string {
	if e.isTree() {
		return e.name + "/"
	}
	return e.name
}

// treeEntries reads a loose tree; the empty Hash is no tree.
func (r *Repo) treeEntries(h Hash) (entries []treeEntry, known bool) {
	if h == "" {
		return nil, true
	}
	content, known := r.object(h, "tree")
	if !known {
		return nil, false
	}
	raw := len(h) / 2
	for len(content) > 0 {
		head, rest, found := bytes.Cut(content, []byte{0})
		mode, name, divided := strings.Cut(string(head), " ")
		if !found || !divided || name == "" || len(rest) < raw || !usualMode(mode) {
			return nil, false
		}
		entries = append(entries, treeEntry{mode: mode, name: name, hash: Hash(hex.EncodeToString(rest[:raw]))})
		content = rest[raw:]
	}
	return entries, true
}

// usualMode leaves out what old versions of git wrote, which git takes for one of these.
func usualMode(mode string) bool {
	switch mode {
	case "40000", "100644", "100755", "120000", "160000":
		return true
	}
	return false
}

// treeWalk compares trees, which may be empty, and reports what is only in the new one, or other there.
type treeWalk struct {
	r *Repo
	// left is how many trees may still be read.
	left int
	// changed is called for each path that is not the same in both.
	changed func(path string)
	// reached is called for each tree and file that only the new one has, at this place.
	reached func(h Hash)
}

// compare reports whether it could read all it needed. What it has reported until then is worthless otherwise.
func (t *treeWalk) compare(before, after Hash, prefix string) bool {
	if t.left--; t.left < 0 {
		return false
	}
	from, known := t.r.treeEntries(before)
	if !known {
		return false
	}
	to, known := t.r.treeEntries(after)
	if !known {
		return false
	}
	if after != "" {
		t.reached(after)
	}
	for len(from) > 0 || len(to) > 0 {
		var old, new treeEntry
		switch {
		case len(to) == 0 || len(from) > 0 && from[0].sortName() < to[0].sortName():
			old, from = from[0], from[1:]
		case len(from) == 0 || to[0].sortName() < from[0].sortName():
			new, to = to[0], to[1:]
		default:
			old, new, from, to = from[0], to[0], from[1:], to[1:]
		}
		if old != new && !t.entry(old, new, prefix) {
			return false
		}
	}
	return true
}

// entry goes on with two entries of one name and sort, of which one may be nothing.
func (t *treeWalk) entry(old, new treeEntry, prefix string) bool {
	path := prefix + old.name
	if old.name == "" {
		path = prefix + new.name
	}
	if old.isTree() || new.isTree() {
		return t.compare(old.hash, new.hash, path+"/")
	}
	t.changed(path)
	if new.hash != "" && new.hash != old.hash && !new.isLink() {
		t.reached(new.hash)
	}
	return true
}

// walkPaths lists what differs between the trees of two commits, as diff-tree does.
func (r *Repo) walkPaths(from, to Hash) (paths []string, known bool) {
	if !r.historyFixed() {
		return nil, false
	}
	before, known := r.commitFacts(from)
	if !known {
		return nil, false
	}
	after, known := r.commitFacts(to)
	if !known {
		return nil, false
	}
	walk := treeWalk{r: r, left: maxWalk, changed: func(path string) { paths = append(paths, path) }, reached: func(Hash) {}}
	if before.tree != after.tree && !walk.compare(before.tree, after.tree, "") {
		return nil, false
	}
	return paths, true
}

// walkReached lists what head reaches and have does not: at least that, and nothing that head does not reach.
func (r *Repo) walkReached(head, have Hash) (objects []Hash, known bool) {
	c, known := r.walkRange(have, head)
	if !known {
		return nil, false
	}
	seen := map[Hash]bool{}
	reach := func(h Hash) {
		if !seen[h] {
			seen[h] = true
			objects = append(objects, h)
		}
	}
	walk := treeWalk{r: r, left: maxWalk, changed: func(string) {}, reached: reach}
	for at := head; at != c.fork; {
		commit, known := r.commitFacts(at)
		// What is remembered of a commit does not say that it is still there.
		if !known || len(commit.parents) != 1 || !r.there(at) {
			return nil, false
		}
		parent, known := r.commitFacts(commit.parents[0])
		if !known {
			return nil, false
		}
		reach(at)
		if parent.tree != commit.tree && !walk.compare(parent.tree, commit.tree, "") {
			return nil, false
		}
		at = commit.parents[0]
	}
	for _, o := range objects {
		if _, err := os.Lstat(r.loose(o)); err != nil {
			return nil, false // in a pack, or lost
		}
	}
	return objects, true
}
