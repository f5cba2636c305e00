package history

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/audit"
)

// Report is the result of Verify.
type Report struct {
	// Ref is the revision that was verified, Tip its commit.
	Ref string   `json:"ref"`
	Tip git.Hash `json:"tip"`
	// Commits is the number of snapshots, Steps that of pairs of a commit and a
	// parent that differ, Changes that of the files that differ between them.
	Commits int `json:"commits"`
	Steps   int `json:"steps"`
	Changes int `json:"changes"`
	// Violations is empty if every change was legal.
	Violations []Violation `json:"violations"`
}

// Violation is an illegal change of a file, with the commit that shows it.
type Violation struct {
	Commit git.Hash `json:"commit"`
	// Parent is the commit that it was compared with.
	Parent git.Hash   `json:"parent"`
	When   state.Time `json:"when"`
	// Path is the file's path in the commit.
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Verify checks that every change in the whole history of a revision was legal: that of
// the audit branch if revision is "", or of a person's branch that holds the
// state tree. Errors: a *state.Unknown if there is no such history.
func Verify(ctx context.Context, r *rig.Rig, revision string) (*Report, error) {
	tip, name, err := resolve(ctx, r, revision)
	if err != nil {
		return nil, err
	}
	root, err := stateRoot(r)
	if err != nil {
		return nil, err
	}
	v := &verifier{repo: r.Git, judge: NewChecker(), report: &Report{Ref: name, Tip: tip, Violations: []Violation{}}}
	if err := v.history(ctx, tip); err != nil {
		return nil, err
	}
	if err := v.findTrees(ctx, root); err != nil {
		return nil, err
	}
	if v.report.Commits == 0 {
		return nil, &state.Unknown{Kind: "history of the state tree in", Name: name}
	}
	if err := v.compare(ctx); err != nil {
		return nil, err
	}
	if err := v.contentsAreThere(ctx); err != nil {
		return nil, err
	}
	if len(v.report.Violations) == 0 { // of what can't be read nothing can be told
		if err := v.judgeAll(ctx); err != nil {
			return nil, err
		}
	}
	return v.report, v.beginnings(ctx)
}

// beginnings finds commits whose parents are missing: in a shallow clone nothing
// is known about the history before them.
func (v *verifier) beginnings(ctx context.Context) error {
	there := make(map[git.Hash]bool, len(v.commits))
	for _, c := range v.commits {
		there[c.hash] = true
	}
	for _, c := range v.commits {
		cut := slices.ContainsFunc(c.parents, func(p git.Hash) bool { return !there[p] })
		if len(c.parents) == 0 { // or git hides that it has any
			raw, err := v.git(ctx, git.Command{Args: []string{"cat-file", "commit", string(c.hash)}})
			if err != nil {
				return err
			}
			head, _, _ := strings.Cut(string(raw), "\n\n")
			cut = strings.Contains(head, "\nparent ")
		}
		if cut {
			v.violation(&pair{commit: c, parent: &commit{}}, "", "what came before is not in this repository (a shallow clone), so nothing is proved about it")
		}
	}
	return nil
}

func resolve(ctx context.Context, r *rig.Rig, revision string) (git.Hash, string, error) {
	name := revision
	if revision == "" {
		branch, err := git.ParseBranch(r.Def.Audit.Ref)
		if err != nil {
			return "", "", fmt.Errorf("audit.ref: %w", err)
		}
		revision, name = string(branch.Ref()), string(branch)
	}
	tip, found, err := r.Git.ResolveCommit(ctx, revision)
	if err == nil && !found {
		err = &state.Unknown{Kind: "history", Name: name}
	}
	return tip, name, err
}

// commit is a commit of the history.
type commit struct {
	hash    git.Hash
	when    state.Time
	parents []git.Hash
	// tree is its state tree, or "".
	tree git.Hash
}

// pair is a commit and one of its parents.
type pair struct {
	commit, parent *commit
	changes        []change
}

// change is a file that differs, by the hashes of its contents.
type change struct {
	path          string
	before, after git.Hash
}

type verifier struct {
	repo    *git.Repo
	judge   *audit.Checker
	root    string
	commits []*commit
	pairs   []*pair
	places  map[place]object
	report  *Report
}

// git reads the real history: replacements and grafts could show one
// in which nothing ever happened.
func (v *verifier) git(ctx context.Context, c git.Command) ([]byte, error) {
	c.Read, c.Env = true, []string{"GIT_NO_REPLACE_OBJECTS=1", "GIT_GRAFT_FILE=/dev/null"}
	return v.repo.Run(ctx, c)
}

// history lists the commits, parents first.
func (v *verifier) history(ctx context.Context, tip git.Hash) error {
	out, err := v.git(ctx, git.Command{
		Args: []string{"log", "-z", "--topo-order", "--reverse", "--no-color", "--no-decorate", "--format=%H %ct %P", string(tip), "--"}})
	if err != nil {
		return err
	}
	for l := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		parts := strings.Fields(l)
		if len(parts) < 2 {
			return fmt.Errorf("history of %s: unexpected line %q", tip.Short(), l)
		}
		var seconds int64
		if _, err := fmt.Sscan(parts[1], &seconds); err != nil {
			return fmt.Errorf("history of %s: %w", tip.Short(), err)
		}
		c := &commit{hash: git.Hash(parts[0]), when: state.At(time.Unix(seconds, 0))}
		for _, p := range parts[2:] {
			c.parents = append(c.parents, git.Hash(p))
		}
		v.commits = append(v.commits, c)
	}
	return nil
}

// findTrees finds the state tree of every commit: at this rig's path, else
// where the person put that of another rig.
func (v *verifier) findTrees(ctx context.Context, root string) error {
	for _, v.root = range []string{root, rig.DirName + "/" + string(state.StateDir), ""} {
		if err := v.treesAt(ctx, v.root); err != nil || v.report.Commits > 0 {
			return err
		}
	}
	return nil
}

// treesAt looks at one path in all commits. A state tree has a rig.json.
func (v *verifier) treesAt(ctx context.Context, root string) error {
	var places []place
	for _, c := range v.commits {
		places = append(places, place{c.hash, path.Join(root, "rig.json")}, place{c.hash, root})
	}
	found, err := v.objects(ctx, places)
	if err != nil {
		return err
	}
	for i, c := range v.commits {
		marker, tree := found[2*i], found[2*i+1]
		if c.tree = ""; marker.kind == "blob" && tree.kind == "tree" {
			c.tree = tree.id
			v.report.Commits++
		}
	}
	return nil
}

// compare asks git for the differences between every commit and its parents.
func (v *verifier) compare(ctx context.Context) error {
	byHash := make(map[git.Hash]*commit, len(v.commits))
	var in strings.Builder
	for _, c := range v.commits {
		byHash[c.hash] = c
		for _, p := range v.against(c, byHash) {
			v.pairs = append(v.pairs, p)
			fmt.Fprintf(&in, "%s %s\n", p.parent.tree, c.tree)
		}
	}
	if len(v.pairs) == 0 {
		return nil
	}
	out, err := v.git(ctx, git.Command{Stdin: []byte(in.String()),
		Args: []string{"diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--no-ext-diff", "--no-textconv"}})
	if err != nil {
		return err
	}
	return v.parseDiff(out)
}

// against lists the commits that a commit is compared with.
func (v *verifier) against(c *commit, byHash map[git.Hash]*commit) []*pair {
	var all []*pair
	for _, hash := range c.parents {
		p := byHash[hash]
		switch {
		case p == nil || p.tree == "" || p.tree == c.tree:
			// There is no parent, or nothing changed.
		case c.tree == "":
			v.violation(&pair{commit: c, parent: p}, "", "the whole state tree is gone from this commit")
		default:
			all = append(all, &pair{commit: c, parent: p})
		}
	}
	return all
}

// parseDiff parses the output: a line with the two trees, then
// ":mode mode id id status NUL path NUL" for each file.
func (v *verifier) parseDiff(out []byte) error {
	text := string(out)
	next := 0
	var at *pair
	for text != "" {
		if text[0] != ':' {
			l, rest, _ := strings.Cut(text, "\n")
			for next < len(v.pairs) && l != string(v.pairs[next].parent.tree)+" "+string(v.pairs[next].commit.tree) {
				next++
			}
			if next == len(v.pairs) {
				return fmt.Errorf("differences: unexpected line %.100q", l)
			}
			at, text = v.pairs[next], rest
			next++
			continue
		}
		meta, rest, ok := strings.Cut(text, "\x00")
		name, rest, found := strings.Cut(rest, "\x00")
		parts := strings.Fields(meta)
		if !ok || !found || at == nil || len(parts) != 5 {
			return fmt.Errorf("differences: unexpected record %.100q", meta)
		}
		text = rest
		at.add(name, parts)
	}
	return nil
}

// add adds one record of a difference. A link or a submodule in the place of a file is not
// a file; unfinished writes are left out.
func (p *pair) add(name string, parts []string) {
	c := change{path: name}
	if strings.HasPrefix(parts[0], ":100") {
		c.before = git.Hash(parts[2])
	}
	if strings.HasPrefix(parts[1], "100") {
		c.after = git.Hash(parts[3])
	}
	hidden := slices.ContainsFunc(strings.Split(name, "/"), state.IsTemp)
	if !hidden && c.before != c.after {
		p.changes = append(p.changes, c)
	}
}

func (v *verifier) violation(p *pair, file, reason string) {
	v.report.Violations = append(v.report.Violations, Violation{Commit: p.commit.hash, Parent: p.parent.hash, When: p.commit.when,
		Path: path.Join(v.root, file), Reason: reason})
}
