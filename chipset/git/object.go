package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gastown-chipset/chipset/state/wording"
)

// Questions about objects go to two coprocesses: "cat-file --batch-command" and "diff-tree --stdin". Both look for
// new packs when an object is missing, and resolve names again each time.

func newObjects() coprocess {
	return coprocess{args: []string{"cat-file", "--batch-command"}}
}

// newTrees also lists folders (-t), so that a difference names every new object.
func newTrees() coprocess {
	return coprocess{args: []string{"diff-tree", "--stdin", "-r", "-t", "-z", "--raw", "--no-abbrev", "--no-renames"}}
}

// object is an object as cat-file describes it.
type object struct {
	hash    Hash
	kind    string // "commit", "tree", "blob", "tag"
	size    int    // of its content, in bytes
	content []byte
}

// info finds the object that a revision names. found is false if it names none, or the object is
// missing.
func (r *Repo) info(ctx context.Context, revision string) (o object, found bool, err error) {
	return r.askObject(ctx, "info", revision)
}

// content is info with the object's content, which git verifies.
func (r *Repo) content(ctx context.Context, revision string) (o object, found bool, err error) {
	return r.askObject(ctx, "contents", revision)
}

func (r *Repo) askObject(ctx context.Context, command, revision string) (o object, found bool, err error) {
	if revision == "" || strings.ContainsAny(revision, "\x00\n") {
		return o, false, nil
	}
	err = r.ask(ctx, &r.objects, command+" "+revision+"\n", func(from *bufio.Reader) error {
		o, found = object{}, false
		head, err := from.ReadString('\n')
		if err != nil {
			return err
		}
		head = strings.TrimSuffix(head, "\n")
		if head == revision+" missing" || head == revision+" ambiguous" {
			return nil
		}
		parts := strings.Split(head, " ")
		if len(parts) != 3 {
			return fmt.Errorf("cat-file: unexpected answer %q", wording.Clip(head, 120))
		}
		if o.hash, err = ParseHash(parts[0]); err != nil {
			return err
		}
		o.kind, found = parts[1], true
		if o.size, err = strconv.Atoi(parts[2]); err != nil || o.size < 0 {
			return fmt.Errorf("cat-file: unexpected size %q", wording.Clip(head, 120))
		}
		if command != "contents" {
			return nil
		}
		if o.size > maxOutput {
			return fmt.Errorf("cat-file: %s has %d bytes", revision, o.size)
		}
		o.content = make([]byte, o.size)
		if _, err = io.ReadFull(from, o.content); err == nil {
			_, err = from.Discard(1) // the newline after it
		}
		return err
	})
	return o, found && err == nil, err
}

// commitFacts are a commit's tree and parents.
type commitFacts struct {
	tree    Hash
	parents []Hash
}

// commit reads a commit. A hash of anything else is an error.
func (r *Repo) commit(ctx context.Context, h Hash) (c commitFacts, err error) {
	if known, ok := r.commits.get(h); ok {
		return known, nil
	}
	o, found, err := r.content(ctx, string(h))
	if err != nil {
		return c, err
	}
	for text := range strings.Lines(string(o.content)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(text, "\n"), " ")
		switch key {
		case "tree":
			c.tree = Hash(value)
			continue
		case "parent":
			c.parents = append(c.parents, Hash(value))
			continue
		}
		break
	}
	if !found || o.kind != "commit" || c.tree.check() != nil {
		return commitFacts{}, fmt.Errorf("%s: not a commit of this repository", h.Short())
	}
	r.commits.put(h, c)
	return c, nil
}

// HasCommit reports whether a commit and its tree exist and can be read.
func (r *Repo) HasCommit(ctx context.Context, h Hash) (bool, error) {
	if err := h.check(); err != nil {
		return false, err
	}
	o, found, err := r.content(ctx, string(h)+"^{tree}")
	if err == nil || ctx.Err() != nil {
		return found && o.kind == "tree", err
	}
	// A torn object kills the coprocess; ask once more in a process of its own.
	_, err = r.read(ctx, "cat-file", "-e", string(h)+"^{tree}")
	if exited(err, 1, 128) {
		return false, nil
	}
	return err == nil, err
}

// MissingCommits returns the refs whose commits, or their trees, are missing.
func (r *Repo) MissingCommits(ctx context.Context, commits map[Ref]Hash) (missing []Ref, err error) {
	for ref, h := range commits {
		whole, err := r.HasCommit(ctx, h)
		if err != nil {
			return missing, err
		}
		if !whole {
			missing = append(missing, ref)
		}
	}
	return missing, nil
}

func (r *Repo) treeOf(ctx context.Context, commit Hash) (Hash, error) {
	c, err := r.commit(ctx, commit)
	return c.tree, err
}

// Entry is a path's entry in a tree; the zero Entry means that the tree does not have it.
type Entry struct {
	Mode string // one of the modes below
	Hash Hash
}

func newEntry(mode, hash string) Entry {
	if h := Hash(hash); !h.IsZero() {
		return Entry{Mode: mode, Hash: h}
	}
	return Entry{}
}

// The modes of entries other than plain files.
const (
	folder         = "040000"
	ModeExecutable = "100755"
	ModeSymlink    = "120000"
	ModeSubmodule  = "160000" // the hash is that of a commit elsewhere
)

// Change is one path that differs between two trees.
type Change struct {
	Path     string
	Old, New Entry
}

// isFolder reports whether the change is that of a folder itself, and not of a file in it.
func (c Change) isFolder() bool { return c.Old.Mode == folder || c.New.Mode == folder }

// Changes lists the paths that differ between two commits. A rename is both of its paths.
func (r *Repo) Changes(ctx context.Context, old, new Hash) ([]Change, error) {
	before, err := r.treeOf(ctx, old)
	if err != nil {
		return nil, err
	}
	return r.changesFrom(ctx, before, new)
}

func (r *Repo) changesFrom(ctx context.Context, before, head Hash) ([]Change, error) {
	after, err := r.treeOf(ctx, head)
	if err != nil {
		return nil, err
	}
	list, err := r.diffTrees(ctx, before, after)
	return slices.DeleteFunc(list, Change.isFolder), err
}

// endOfDiff is not an object name, so diff-tree copies it to its output and flushes.
const endOfDiff = "end"

// diffTrees lists the differences between two trees, including folders.
func (r *Repo) diffTrees(ctx context.Context, old, new Hash) (list []Change, err error) {
	if err := checkCommits(old, new); err != nil || old == new {
		return nil, err
	}
	question := string(old) + " " + string(new) + "\n" + endOfDiff + "\n"
	err = r.ask(ctx, &r.trees, question, func(from *bufio.Reader) error {
		list = nil
		head, err := from.ReadString('\n')
		if err == nil && head != string(old)+" "+string(new)+"\n" {
			err = fmt.Errorf("diff-tree: unexpected answer %q", wording.Clip(head, 120))
		}
		for err == nil {
			first, failed := from.Peek(1)
			if err = failed; err != nil {
				break
			}
			if first[0] != ':' {
				end, err := from.ReadString('\n')
				if err == nil && end != endOfDiff+"\n" {
					err = fmt.Errorf("diff-tree: unexpected answer %q", wording.Clip(end, 120))
				}
				return err
			}
			var c Change
			if c, err = readChange(from); err == nil {
				list = append(list, c)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// readChange reads ":mode mode hash hash status", NUL, the path, and NUL.
func readChange(from *bufio.Reader) (c Change, err error) {
	record, err := from.ReadString(0)
	if err != nil {
		return c, err
	}
	parts := strings.Fields(strings.Trim(record, ":\x00"))
	if len(parts) != 5 {
		return c, fmt.Errorf("diff-tree: unexpected record %q", wording.Clip(record, 120))
	}
	path, err := from.ReadString(0)
	return Change{Path: strings.TrimSuffix(path, "\x00"), Old: newEntry(parts[0], parts[2]), New: newEntry(parts[1], parts[3])}, err
}

// reached lists at least the objects that head reaches and none of have does, and none that head does not reach.
func (r *Repo) reached(ctx context.Context, head Hash, have []Hash) ([]Hash, error) {
	have = slices.DeleteFunc(slices.Clone(have), func(h Hash) bool { return h == "" })
	if len(have) == 1 {
		if c, known := r.walkRange(ctx, have[0], head); known {
			if objects, err := r.reachedInLine(ctx, head, c.fork); err == nil {
				return objects, nil
			}
		}
	}
	args := []string{"rev-list", "--objects", "--no-object-names", string(head)}
	for _, h := range have {
		args = append(args, "^"+string(h))
	}
	out, err := r.read(ctx, append(args, "--")...)
	if err != nil {
		return nil, err
	}
	var all []Hash
	for text := range strings.Lines(string(out)) {
		all = append(all, Hash(strings.TrimSpace(text)))
	}
	return all, nil
}

// reachedInLine is reached for a linear history down to fork. A missing object is an error.
func (r *Repo) reachedInLine(ctx context.Context, head, fork Hash) (objects []Hash, err error) {
	seen := map[Hash]bool{}
	reach := func(h Hash) error {
		if seen[h] || h == "" {
			return nil
		}
		seen[h] = true
		objects = append(objects, h)
		_, found, err := r.info(ctx, string(h))
		if err == nil && !found {
			err = fmt.Errorf("%s is missing", h)
		}
		return err
	}
	for at := head; at != fork; {
		c, err := r.commit(ctx, at)
		if err != nil {
			return nil, err
		}
		before, err := r.treeOf(ctx, c.parents[0])
		if err != nil {
			return nil, err
		}
		list, err := r.diffTrees(ctx, before, c.tree)
		failed := []error{err, reach(at), reach(c.tree)}
		for _, d := range list {
			if d.New.Mode != ModeSubmodule {
				failed = append(failed, reach(d.New.Hash))
			}
		}
		if err := errors.Join(failed...); err != nil {
			return nil, err
		}
		at = c.parents[0]
	}
	return objects, nil
}
