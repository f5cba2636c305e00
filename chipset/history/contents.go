package history

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/audit"
)

// batchSize bounds the contents in memory, in bytes.
const batchSize = 64 << 20

// object is one line of cat-file's answer.
type object struct {
	id   git.Hash
	kind string
}

// objectLines parses the output of --batch-check. A missing object has no kind.
// Names with a newline are never asked for.
func objectLines(out []byte) []object {
	var all []object
	for l := range strings.Lines(string(out)) {
		id, kind, _ := strings.Cut(strings.TrimSuffix(l, "\n"), " ")
		o := object{git.Hash(id), kind}
		if o.id.IsZero() || strings.HasSuffix(l, " missing\n") || strings.HasSuffix(l, " ambiguous\n") {
			o = object{}
		}
		all = append(all, o)
	}
	return all
}

// judgeAll judges the pairs in the order of the history, in batches of batchSize.
func (v *verifier) judgeAll(ctx context.Context) error {
	sizes, err := v.sizes(ctx)
	if err != nil {
		return err
	}
	logs, err := v.logs(ctx, sizes)
	if err != nil {
		return err
	}
	if err := v.lookAhead(ctx); err != nil {
		return err
	}
	for start := 0; start < len(v.pairs); {
		end, bytes := start, int64(0)
		for end < len(v.pairs) && (end == start || bytes < batchSize) {
			for _, id := range v.needed(v.pairs[end], logs) {
				bytes += sizes[id]
			}
			end++
		}
		if err := v.judgeSome(ctx, v.pairs[start:end], logs); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// needed lists the contents that the judge needs and that are not loaded.
func (v *verifier) needed(p *pair, logs map[git.Hash][]byte) []git.Hash {
	var ids []git.Hash
	for _, c := range p.changes {
		if !v.judge.NeedsContent(c.path) {
			continue
		}
		for _, id := range []git.Hash{c.before, c.after} {
			if _, known := logs[id]; id != "" && !known {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func (v *verifier) judgeSome(ctx context.Context, pairs []*pair, logs map[git.Hash][]byte) error {
	var ids []git.Hash
	for _, p := range pairs {
		ids = append(ids, v.needed(p, logs)...)
	}
	contents, err := v.load(ctx, ids)
	if err != nil {
		return err
	}
	file := func(id git.Hash) audit.File {
		data, known := contents[id]
		if !known {
			data = logs[id]
		}
		return audit.File{ID: string(id), Data: data}
	}
	for _, p := range pairs {
		if err := v.judgePair(ctx, p, file); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) judgePair(ctx context.Context, p *pair, file func(git.Hash) audit.File) error {
	changes := make([]audit.Change, len(p.changes))
	for i, c := range p.changes {
		changes[i] = audit.Change{Path: c.path, Before: file(c.before), After: file(c.after)}
	}
	v.report.Steps++
	v.report.Changes += len(changes)
	found, err := v.judge.Check(changes, func(path string) (audit.File, error) { return v.at(ctx, p.commit.tree, path) })
	for _, f := range found {
		v.violation(p, f.Path, f.Reason)
	}
	return err
}

// place is a path in a tree.
type place struct {
	tree git.Hash
	path string
}

// lookAhead finds, in one batch, the files at the other place (mailbox or archive) of messages that appeared or
// disappeared.
func (v *verifier) lookAhead(ctx context.Context) error {
	var places []place
	for _, p := range v.pairs {
		for _, c := range p.changes {
			if other := v.judge.Destination(c.path); other != "" && (c.before == "" || c.after == "") {
				places = append(places, place{p.commit.tree, other})
			}
		}
	}
	objects, err := v.objects(ctx, places)
	v.places = make(map[place]object, len(places))
	for i, o := range objects {
		v.places[places[i]] = o
	}
	return err
}

// at returns a file of a tree that did not change in the step.
func (v *verifier) at(ctx context.Context, tree git.Hash, p string) (audit.File, error) {
	o, known := v.places[place{tree, p}]
	if !known {
		found, err := v.objects(ctx, []place{{tree, p}})
		if err != nil {
			return audit.File{}, err
		}
		o = found[0]
	}
	if o.kind != "blob" {
		return audit.File{}, nil
	}
	contents, err := v.load(ctx, []git.Hash{o.id})
	return audit.File{ID: string(o.id), Data: contents[o.id]}, err
}

// objects returns the objects at places.
func (v *verifier) objects(ctx context.Context, places []place) ([]object, error) {
	if len(places) == 0 {
		return nil, nil
	}
	var in strings.Builder
	for _, p := range places {
		if strings.Contains(p.path, "\n") { // git's answer would be two lines, and no file of the tree has such a name
			p = place{tree: git.ZeroHash}
		}
		fmt.Fprintf(&in, "%s:%s\x00", p.tree, p.path)
	}
	out, err := v.git(ctx, git.Command{Args: []string{"cat-file", "--batch-check=%(objectname) %(objecttype)", "--buffer", "-z"},
		Stdin: []byte(in.String())})
	if err != nil {
		return nil, err
	}
	found := objectLines(out)
	if len(found) != len(places) {
		return nil, fmt.Errorf("%d answers about %d places of trees", len(found), len(places))
	}
	return found, nil
}

// load returns the contents of blobs, not nil for any that exists.
func (v *verifier) load(ctx context.Context, ids []git.Hash) (map[git.Hash][]byte, error) {
	contents := make(map[git.Hash][]byte, len(ids))
	ids = unique(ids)
	if len(ids) == 0 {
		return contents, nil
	}
	out, err := v.git(ctx, git.Command{Args: []string{"cat-file", "--batch", "--buffer"}, Stdin: []byte(joined(ids))})
	if err != nil {
		return nil, err
	}
	for len(out) > 0 {
		head, rest, _ := bytes.Cut(out, []byte{'\n'})
		parts := strings.Fields(string(head))
		if len(parts) != 3 {
			return nil, fmt.Errorf("contents: %w: git can't read %.100q", state.ErrCorrupt, head)
		}
		size, err := strconv.Atoi(parts[2])
		if err != nil || size < 0 || size >= len(rest) {
			return nil, fmt.Errorf("contents: unexpected answer %.100q", head)
		}
		contents[git.Hash(parts[0])] = rest[:size:size]
		out = rest[size+1:]
	}
	return contents, nil
}

// sizes asks git for the sizes of the needed contents.
func (v *verifier) sizes(ctx context.Context) (map[git.Hash]int64, error) {
	var ids []git.Hash
	for _, p := range v.pairs {
		ids = append(ids, v.needed(p, nil)...)
	}
	sizes := make(map[git.Hash]int64, len(ids))
	if ids = unique(ids); len(ids) == 0 {
		return sizes, nil
	}
	out, err := v.git(ctx, git.Command{Stdin: []byte(joined(ids)),
		Args: []string{"cat-file", "--batch-check=%(objectname) %(objectsize)", "--buffer"}})
	if err != nil {
		return nil, err
	}
	for _, o := range objectLines(out) {
		n, err := strconv.ParseInt(o.kind, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("contents: %w: git can't read an object of the history", state.ErrCorrupt)
		}
		sizes[o.id] = n
	}
	return sizes, nil
}

// logs loads the append-only files, each once: the longest of all versions of a day. A shorter version
// is a prefix if the same number of bytes of the longest has its hash. A version that is not a prefix
// is loaded like every other file.
func (v *verifier) logs(ctx context.Context, sizes map[git.Hash]int64) (map[git.Hash][]byte, error) {
	versions := map[string][]git.Hash{}
	for _, p := range v.pairs {
		for _, c := range p.changes {
			if path.Ext(c.path) == ".jsonl" && v.judge.NeedsContent(c.path) {
				versions[c.path] = append(versions[c.path], c.before, c.after)
			}
		}
	}
	known := map[git.Hash][]byte{}
	for _, ids := range versions {
		ids = slices.DeleteFunc(unique(ids), func(id git.Hash) bool { return id == "" })
		longest := slices.MaxFunc(ids, func(a, b git.Hash) int { return int(sizes[a] - sizes[b]) })
		contents, err := v.load(ctx, []git.Hash{longest})
		if err != nil {
			return nil, err
		}
		whole := contents[longest]
		name := newNamer(map[bool]string{true: "sha256"}[len(longest) == 64])
		for _, id := range ids {
			if n := sizes[id]; id == longest || name("blob", whole[:n]) == id {
				known[id] = whole[:n:n]
			}
		}
	}
	return known, nil
}

func unique(ids []git.Hash) []git.Hash {
	sorted := slices.Clone(ids)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

func joined(ids []git.Hash) string {
	var all strings.Builder
	for _, id := range ids {
		all.WriteString(string(id) + "\n")
	}
	return all.String()
}
