package git

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/gastown-chipset/chipset/state/wording"
)

const (
	// maxPath bounds a path of a tree, in bytes: with a worktree's root before it, it must be short enough for system calls.
	maxPath = 2048
	// maxName bounds a component, in bytes, as file systems do.
	maxName = 255
	// maxNewFiles bounds how many files a commit may add or change. A few small nested trees can expand to more files than a
	// disk holds.
	maxNewFiles = 1_000_000
	// maxNewBytes bounds the size of those files together. Zeros compress well, and git stores a file under a thousand names
	// once.
	maxNewBytes = 8 << 30
	// maxLink bounds the target of a symbolic link, in bytes.
	maxLink = 4000
)

// Inspect reads what head adds to the history of base, commit by commit, as a strict fetch would, and returns an
// *UnfitError for what git or a file system can't check out: malformed commits and trees, paths too long or named .git,
// submodules whose addresses run commands, messages with control characters, missing commits. It does not look at what base has already.
// It asks only the coprocess, unless the history is not linear or .gitmodules changes. An object that can't be read is an ErrTorn.
func (r *Repo) Inspect(ctx context.Context, base, head Hash) error {
	commits, err := r.newCommits(ctx, base, head)
	if err != nil {
		return err
	}
	i := &inspection{repo: r, trees: map[string]extent{}, checked: map[Hash]int64{}}
	for _, c := range commits {
		if err := i.commit(ctx, c); err != nil {
			return fmt.Errorf("commit %s: %w", c.Short(), err)
		}
	}
	return nil
}

// newCommits lists the commits that head reaches and base does not.
func (r *Repo) newCommits(ctx context.Context, base, head Hash) (commits []Hash, err error) {
	if err := checkCommits(base, head); err != nil {
		return nil, err
	}
	if walked, known := r.walkRange(ctx, base, head); known {
		for at := head; at != walked.fork; {
			commits = append(commits, at)
			c, err := r.commit(ctx, at)
			if err != nil {
				return nil, err
			}
			at = c.parents[0]
		}
		return commits, nil
	}
	out, err := r.read(ctx, "rev-list", string(base)+".."+string(head), "--")
	if exited(err, 128) {
		if _, e := r.read(ctx, "rev-list", "--count", string(base), "--"); e == nil { // base is complete, so what is missing belongs to head
			err = &UnfitError{Reason: fmt.Sprintf("objects of the worktree are missing: what %s descends from can't be read", head.Short()), Unreadable: true}
		}
	}
	for l := range strings.Lines(string(out)) {
		commits = append(commits, Hash(strings.TrimSpace(l)))
	}
	return commits, err
}

// inspection is one run of Inspect.
type inspection struct {
	repo *Repo
	// trees caches the extent of a tree by its name and those of the trees before it; checked has the sizes of the
	// files that were checked.
	trees   map[string]extent
	checked map[Hash]int64
}

// extent is how much a tree adds.
type extent struct {
	files   int
	bytes   int64
	longest int // path, in bytes
}

// identLine matches the value of an author or committer line.
var identLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[^<>\n]*<[^<>\n]*> [0-9]{1,19} [+-][0-9]{4,7}$`)
})

// steering matches terminal control characters and those that change the direction of text: tools print history raw.
var steering = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u0080-\u009f\u202a-\u202e\u2066-\u2069]|\r[^\n]")
})

func (i *inspection) commit(ctx context.Context, h Hash) error {
	o, err := i.object(ctx, h, "commit")
	if err != nil {
		return err
	}
	head, _, _ := bytes.Cut(o.content, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	next := func(key string) (string, bool) {
		if len(lines) == 0 {
			return "", false
		}
		value, ok := strings.CutPrefix(lines[0], key+" ")
		if !ok {
			return "", false
		}
		lines = lines[1:]
		return value, true
	}
	tree, _ := next("tree")
	var before []Hash
	for parent, ok := next("parent"); ok; parent, ok = next("parent") {
		c, err := i.repo.commit(ctx, Hash(parent))
		if err != nil {
			return torn(Hash(parent), err)
		}
		before = append(before, c.tree)
	}
	author, _ := next("author")
	committer, _ := next("committer")
	if Hash(tree).check() != nil || !identLine().MatchString(author) || !identLine().MatchString(committer) || bytes.IndexByte(o.content, 0) >= 0 {
		return unfit("the commit is malformed")
	}
	shown := o.content
	if slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "encoding ") }) {
		// In ISO-8859-1, for example, a byte that is not valid UTF-8 starts an escape sequence.
		text, err := i.repo.read(ctx, "show", "--no-patch", "--encoding=UTF-8", "--format=%an%n%ae%n%cn%n%ce%n%B", string(h), "--")
		if err != nil {
			return err
		}
		shown = slices.Concat(shown, []byte("\n"), text)
	}
	if steering().Match(shown) {
		return unfit("its message or author has control characters, or characters that change the direction of text")
	}
	all, err := i.tree(ctx, Hash(tree), before, 0)
	switch {
	case err != nil:
		return err
	case all.longest > maxPath:
		return &UnfitError{Reason: fmt.Sprintf("a path has %d bytes, and at most %d can be checked out", all.longest, maxPath), Unreadable: true}
	case all.files > maxNewFiles:
		return &UnfitError{Reason: fmt.Sprintf("it changes more than %d files", maxNewFiles), Unreadable: true}
	case all.bytes > maxNewBytes:
		return unfit("the files that it changes hold more than %d GiB", maxNewBytes>>30)
	}
	return nil
}

// tree checks the entries of a tree that none of the trees before has.
func (i *inspection) tree(ctx context.Context, h Hash, before []Hash, depth int) (extent, error) {
	key := fmt.Sprint(h, before)
	if known, seen := i.trees[key]; seen || slices.Contains(before, h) {
		return known, nil
	}
	if depth > maxPath/2 {
		return extent{}, &UnfitError{Reason: "its folders are nested too deeply to be checked out", Unreadable: true}
	}
	entries, err := i.entries(ctx, h)
	if err != nil {
		return extent{}, err
	}
	seen := map[string]bool{}
	for _, e := range entries { // a file and a folder of one name need not stand side by side
		if seen[e.name] {
			return extent{}, unfit("a tree has two entries with the name %s", wording.Clip(e.name, 100))
		}
		seen[e.name] = true
	}
	there := map[string][]Entry{}
	for _, b := range before {
		old, err := i.entries(ctx, b)
		if err != nil {
			return extent{}, err
		}
		for _, e := range old {
			there[e.name] = append(there[e.name], e.Entry)
		}
	}
	var all extent
	for n, e := range entries {
		if slices.Contains(there[e.name], e.Entry) {
			continue
		}
		if n > 0 && entries[n-1].sortKey() >= e.sortKey() {
			return extent{}, unfit("a tree is not sorted at %s", wording.Clip(e.name, 100))
		}
		inner, err := i.entry(ctx, e, there[e.name], depth)
		if err != nil {
			return extent{}, err
		}
		all.files = min(all.files+inner.files, maxNewFiles+1)
		all.bytes = min(all.bytes+inner.bytes, maxNewBytes+1)
		all.longest = max(all.longest, len(e.name)+1+inner.longest)
	}
	i.trees[key] = all
	return all, nil
}

// entry checks a new or changed entry.
func (i *inspection) entry(ctx context.Context, e treeEntry, before []Entry, depth int) (extent, error) {
	if why := badName(e.name); why != "" {
		return extent{}, unfit("%s can't be checked out: %s", wording.Clip(e.name, 200), why)
	}
	switch e.Mode {
	case folder:
		var folders []Hash
		for _, b := range before {
			if b.Mode == folder {
				folders = append(folders, b.Hash)
			}
		}
		return i.tree(ctx, e.Hash, folders, depth+1)
	case modePlain, ModeExecutable, ModeSymlink:
		size, err := i.blob(ctx, e, depth)
		return extent{files: 1, bytes: min(size, maxNewBytes+1)}, err
	case ModeSubmodule:
		return extent{files: 1}, nil
	}
	return extent{}, unfit("%s has a mode that git does not know: %s", wording.Clip(e.name, 200), e.Mode)
}

// blob checks a file or link, and returns its size in bytes.
func (i *inspection) blob(ctx context.Context, e treeEntry, depth int) (int64, error) {
	modules := strings.EqualFold(e.name, ".gitmodules")
	if modules && e.Mode == ModeSymlink {
		return 0, unfit("%s is a symbolic link", e.name)
	}
	if size, seen := i.checked[e.Hash]; seen && !modules && e.Mode != ModeSymlink {
		return size, nil
	}
	o, found, err := i.repo.info(ctx, string(e.Hash))
	switch {
	case err != nil || !found:
		return 0, torn(e.Hash, err)
	case o.kind != "blob":
		return 0, unfit("%s should be a file and is a %s", wording.Clip(e.name, 200), o.kind)
	case e.Mode == ModeSymlink && (o.size == 0 || o.size > maxLink):
		return 0, unfit("%s is a link to a path of %d bytes", wording.Clip(e.name, 200), o.size)
	}
	i.checked[e.Hash] = int64(o.size)
	if modules && depth == 0 {
		return int64(o.size), i.repo.checkModules(ctx, e.Hash)
	}
	return int64(o.size), nil
}

// object reads an object of the given kind.
func (i *inspection) object(ctx context.Context, h Hash, kind string) (object, error) {
	o, found, err := i.repo.content(ctx, string(h))
	switch {
	case err != nil || !found:
		return o, torn(h, err)
	case o.kind != kind:
		return o, unfit("%s should be a %s and is a %s", h.Short(), kind, o.kind)
	}
	return o, nil
}

// torn returns the error for an object that can't be read.
func torn(h Hash, cause error) error {
	if cause == nil {
		cause = fmt.Errorf("it is missing")
	}
	return fmt.Errorf("%w: %s: %w", ErrTorn, h.Short(), cause)
}

// treeEntry is one line of a tree.
type treeEntry struct {
	Entry
	name string
}

// sortKey orders entries as git does: the name of a folder ends in a slash.
func (e treeEntry) sortKey() string {
	if e.Mode == folder {
		return e.name + "/"
	}
	return e.name
}

// modePlain is the mode of a plain file.
const modePlain = "100644"

func (i *inspection) entries(ctx context.Context, h Hash) (list []treeEntry, err error) {
	o, err := i.object(ctx, h, "tree")
	if err != nil {
		return nil, err
	}
	size := hex.DecodedLen(len(h))
	for rest := o.content; len(rest) > 0; {
		mode, after, ok := bytes.Cut(rest, []byte(" "))
		name, after, named := bytes.Cut(after, []byte{0})
		if !ok || !named || len(after) < size {
			return nil, unfit("the tree %s is malformed", h.Short())
		}
		e := treeEntry{Entry{Mode: string(mode), Hash: Hash(hex.EncodeToString(after[:size]))}, string(name)}
		if e.Mode == strings.TrimPrefix(folder, "0") {
			e.Mode = folder
		} else if e.Mode == folder {
			e.Mode = "0" + folder // zero-padded, which git never writes
		}
		if e.Hash.IsZero() {
			return nil, unfit("the tree %s names an object of zeros", h.Short())
		}
		list, rest = append(list, e), after[size:]
	}
	return list, nil
}

// checkModules refuses submodules whose addresses or settings would run programs when somebody checks them out.
func (r *Repo) checkModules(ctx context.Context, blob Hash) error {
	out, err := r.read(ctx, "config", "--blob="+string(blob), "--null", "--list")
	if err != nil {
		if exited(err, 1, 3, 128) {
			return unfit(".gitmodules is malformed")
		}
		return err
	}
	for _, record := range fields(out) {
		key, value, _ := strings.Cut(record, "\n")
		name, isModule := strings.CutPrefix(key, "submodule.")
		dot := strings.LastIndexByte(name, '.')
		if !isModule || dot < 0 {
			continue
		}
		name, field := name[:dot], name[dot+1:]
		bad := slices.Contains(strings.Split(name, "/"), "..")
		switch field {
		case "url":
			bad = bad || strings.HasPrefix(value, "-") || strings.Contains(value, "::") || strings.ContainsAny(value, "\n\r")
		case "update":
			bad = bad || strings.HasPrefix(value, "!")
		case "path":
			bad = bad || strings.HasPrefix(value, "-") || checkPath(strings.TrimSuffix(value, "/")) != nil
		}
		if bad {
			return unfit("the submodule %s in .gitmodules could run commands: %s = %s", wording.Clip(name, 80), field, wording.Clip(value, 120))
		}
	}
	return nil
}

// checkPath returns an *UnfitError for a path that git or a file system can't check out.
func checkPath(path string) error {
	if len(path) > maxPath {
		return unfit("%s… is a path of %d bytes, and at most %d can be checked out", wording.Clip(path, 100), len(path), maxPath)
	}
	for name := range strings.SplitSeq(path, "/") {
		if why := badName(name); why != "" {
			return unfit("%s can't be checked out: %s", wording.Clip(path, 200), why)
		}
	}
	return nil
}

// badName returns why git on some system can't check out a path with this component, or "".
func badName(name string) string {
	switch {
	case name == "" || name == "." || name == ".." || strings.Contains(name, "/"):
		return "a component is empty or leads elsewhere"
	case len(name) > maxName:
		return "a component is longer than a file name may be"
	case isDotGit(name):
		return "a component is .git on some file systems"
	}
	return ""
}

// isDotGit reports whether a name means .git on a file system that ignores case or invisible code points (HFS+), or
// that has streams, trailing dots and short names (NTFS).
func isDotGit(name string) bool {
	return slices.ContainsFunc(strings.Split(name, `\`), func(part string) bool {
		part = plainName(part)
		return strings.EqualFold(part, ".git") || strings.EqualFold(part, "git~1")
	})
}

// ligatures are the letters that some file systems compare as two.
var ligatures = strings.NewReplacer( //nolint:gochecknoglobals // it never changes
	"ß", "ss", "ẞ", "ss", "\ufb00", "ff", "\ufb01", "fi", "\ufb02", "fl", "\ufb03", "ffi", "\ufb04", "ffl", "\ufb05", "st", "\ufb06", "st")

// plainName is the name that some file system takes a component of a path for, beside its case: without code points that say
// nothing (HFS+, ext4), with letters for ligatures (APFS, ext4), or without a stream, trailing dots and spaces (NTFS).
func plainName(name string) string {
	plain := strings.Map(func(c rune) rune {
		if c >= 0x80 && unicode.In(c, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return -1
		}
		return c
	}, name)
	plain = ligatures.Replace(plain)
	plain, _, _ = strings.Cut(plain, ":")
	return strings.TrimRight(plain, ". ")
}
