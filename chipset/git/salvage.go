package git

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/git/internal/gitfile"
	"github.com/gastown-chipset/chipset/state/wording"
)

// maxSalvages bounds how many versions of one salvage are kept.
const maxSalvages = 1000

// maxNesting bounds the depth of nested repositories.
const maxNesting = 8

// SalvageRequest says what to save and where.
type SalvageRequest struct {
	Base    Hash   // commits reachable from it are not saved; empty: always save HEAD
	Ref     Ref    // refs/chipset/salvage/{assignment-id}
	Message string // of the commit that holds the uncommitted work
	AgentID string // its author, if the person configured none
}

// Salvaged is the outcome of Salvage.
type Salvaged struct {
	Saved bool // false if there was nothing to save
	Ref   Ref  // the ref that holds the work; the requested one, or with -2, -3 … after it
	Hash  Hash
}

// Salvage saves on a ref what would be lost with the worktree: uncommitted and untracked files that are
// not ignored, the files of embedded repositories, commits that Base does not reach, and the
// branch as it was before a rebase in progress. It changes neither files nor index nor HEAD, and
// works in the middle of any operation. Saving the same again does nothing and returns the same ref; if the
// ref holds something else, the first free name with -2, -3 … is used.
//
// An *IncompleteError comes with a valid Salvaged: what could be read is saved.
func (w *Worktree) Salvage(ctx context.Context, q SalvageRequest) (Salvaged, error) {
	p, err := w.place()
	if err != nil {
		return Salvaged{}, err
	}
	if err := q.Ref.check(); err != nil {
		return Salvaged{}, err
	}
	if q.Base != "" {
		if err := checkCommits(q.Base); err != nil {
			return Salvaged{}, err
		}
	}
	head, born, err := w.repo.resolve(ctx, p, "HEAD")
	if err != nil {
		return Salvaged{}, err
	}
	if w.repo.linked(p) {
		if err := w.removeObstacles(ctx, p); err != nil {
			return Salvaged{}, err
		}
	}
	start := head
	var bad *UnfitError
	if born && q.Base != "" && errors.As(w.repo.Inspect(ctx, q.Base, head), &bad) {
		start = q.Base // an index can't hold what was committed since
		if bad.Unreadable {
			head = q.Base // git can't read it: only the files are saved
		}
	}
	tree, dirty, problems, err := w.snapshot(ctx, p, start)
	if err != nil {
		return Salvaged{}, fmt.Errorf("salvage %s: %w", w.path, err)
	}
	parents, unsaved, err := w.salvageParents(ctx, p, head, born, q.Base)
	if err != nil {
		return Salvaged{}, err
	}
	result := Salvaged{}
	if dirty || unsaved {
		result, err = w.keep(ctx, p, q, tree, parents, dirty || len(parents) > 1)
	}
	if err == nil && len(problems) > 0 {
		err = &IncompleteError{Output: strings.Join(problems, "\n")}
	}
	return result, err
}

// scratch is a temporary index in which a salvage builds its tree; the worktree's index stays as it is.
type scratch struct {
	w    *Worktree
	p    place
	file string
}

func (s *scratch) run(ctx context.Context, stdin string, args ...string) ([]byte, error) {
	return s.w.repo.run(ctx, s.p, Command{
		Args:  args,
		Stdin: []byte(stdin),
		Env:   []string{"GIT_INDEX_FILE=" + s.file},
	})
}

func (s *scratch) writeTree(ctx context.Context) (Hash, error) {
	out, err := s.run(ctx, "", "write-tree")
	if err != nil {
		return "", err
	}
	return ParseHash(line(out))
}

func (s *scratch) remove() error {
	return errors.Join(gitfile.Remove(s.file), gitfile.Remove(s.file+".lock"))
}

// snapshot writes the worktree as a tree; dirty reports whether it differs from head's. problems are the files that could not be read.
func (w *Worktree) snapshot(ctx context.Context, p place, head Hash) (tree Hash, dirty bool, problems []string, err error) {
	s := &scratch{w: w, p: p, file: filepath.Join(p.gitDir, "chipset-salvage-"+rand.Text())}
	defer func() { err = errors.Join(err, s.remove()) }()
	start := "--empty"
	if head != "" {
		start = string(head)
	}
	if _, err := s.run(ctx, "", "read-tree", start); err != nil {
		return "", false, nil, err
	}
	before, err := s.writeTree(ctx)
	if err != nil {
		return "", false, nil, err
	}
	paths, embedded, err := s.unsaved(ctx)
	if err != nil {
		return "", false, nil, err
	}
	if problems, err = s.addReadable(ctx, paths); err != nil {
		return "", false, nil, err
	}
	for _, inner := range embedded {
		if err := s.addEmbedded(ctx, inner, 0); err != nil {
			if ctx.Err() != nil {
				return "", false, nil, err
			}
			problems = append(problems, err.Error())
		}
	}
	tree, err = s.writeTree(ctx)
	return tree, tree != before, problems, err
}

// unsaved lists the files that differ from this index, and untracked repositories. It does not read the worktree's own index, which may be torn.
func (s *scratch) unsaved(ctx context.Context) (paths, embedded []string, err error) {
	out, err := s.run(ctx, "", "ls-files", "--others", "--modified", "--deleted", "--exclude-standard", "--deduplicate", "-z")
	for _, path := range fields(out) {
		if inner, ok := strings.CutSuffix(path, "/"); ok {
			embedded = append(embedded, inner)
		} else {
			paths = append(paths, path)
		}
	}
	return paths, embedded, err
}

// addReadable adds the readable files, and returns why the others can't be added.
func (s *scratch) addReadable(ctx context.Context, paths []string) (problems []string, err error) {
	there, gone, unknown := s.p.sortOut(paths)
	for _, why := range unknown {
		problems = append(problems, why.Error())
	}
	if len(gone) > 0 {
		if _, err := s.run(ctx, string(terminated(gone)), "update-index", "--force-remove", "-z", "--stdin"); err != nil {
			return nil, err
		}
	}
	there = slices.DeleteFunc(there, func(path string) bool {
		why := s.unreadable(path)
		if why != nil {
			problems = append(problems, why.Error())
		}
		return why != nil
	})
	err = s.add(ctx, there)
	var failed *Error
	if errors.As(err, &failed) && failed.Cause == nil {
		return append(problems, failed.Stderr), nil
	}
	return problems, err
}

// add adds files to the index, none of them behind a link. One that git's attributes keep it from converting, because a filter fails or an encoding is unknown,
// stops git for all files: then they are added as they are.
func (s *scratch) add(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	_, err := s.run(ctx, string(terminated(paths)), "update-index", "--add", "--remove", "--replace", "-z", "--stdin")
	if !exited(err, 128) {
		return err
	}
	var names, entries strings.Builder
	var modes, plain, others []string
	for _, path := range paths {
		info, err := s.p.look(filepath.FromSlash(path))
		if err != nil {
			return err
		}
		if info == nil || !info.Mode().IsRegular() { // git converts no links
			others = append(others, path)
			continue
		}
		mode := "100644"
		if info.Mode()&0o100 != 0 {
			mode = "100755"
		}
		modes, plain = append(modes, mode), append(plain, path)
		names.WriteString(quotePath(filepath.Join(s.p.workTree, filepath.FromSlash(path))) + "\n")
	}
	out, err := s.run(ctx, names.String(), "hash-object", "-w", "--no-filters", "--stdin-paths")
	if err != nil {
		return err
	}
	hashes := strings.Fields(string(out))
	if len(hashes) != len(plain) {
		return fmt.Errorf("hash-object: %d hashes of %d files", len(hashes), len(plain))
	}
	for i, path := range plain {
		fmt.Fprintf(&entries, "%s %s\t%s\x00", modes[i], hashes[i], path)
	}
	if _, err := s.run(ctx, entries.String(), "update-index", "--add", "--replace", "-z", "--index-info"); err != nil || len(others) == 0 {
		return err
	}
	_, err = s.run(ctx, string(terminated(others)), "update-index", "--add", "--remove", "--replace", "-z", "--stdin")
	return err
}

// quotePath quotes a path like a string in C, as git reads it from a list of lines.
func quotePath(path string) string {
	var quoted strings.Builder
	quoted.WriteByte('"')
	for _, b := range []byte(path) {
		fmt.Fprintf(&quoted, "\\%03o", b)
	}
	quoted.WriteByte('"')
	return quoted.String()
}

// unreadable returns why git can't read a file, or nil.
func (s *scratch) unreadable(path string) error {
	full := filepath.Join(s.p.workTree, filepath.FromSlash(path))
	info, err := s.p.look(filepath.FromSlash(path))
	switch {
	case info == nil:
		return err // nil for a file that is gone: there is nothing to save
	case isSpecial(info.Mode()):
		return fmt.Errorf("%s is a %s", path, describeMode(info.Mode()))
	case !info.Mode().IsRegular():
		return nil
	}
	f, err := os.Open(full)
	if err != nil {
		return err
	}
	return f.Close()
}

// addEmbedded adds the files of a repository inside the worktree as plain files.
func (s *scratch) addEmbedded(ctx context.Context, inner string, depth int) error {
	dir := filepath.Join(s.p.workTree, filepath.FromSlash(inner))
	if depth > maxNesting {
		return fmt.Errorf("salvage %s: repositories nested too deeply", dir)
	}
	// List the inner repository's files with this repository and an empty index: git never runs
	// in the inner one, whose configuration is a worker's.
	at := s.p
	at.dir, at.workTree = dir, dir
	out, err := s.w.repo.run(ctx, at, Command{Args: []string{"ls-files", "--others", "--exclude-standard", "-z"},
		Env: []string{"GIT_INDEX_FILE=" + s.file + "-none"}, Read: true})
	if err != nil {
		return err
	}
	var paths []string
	var failed []error // of repositories inside, which keep nothing else from being saved
	for _, path := range fields(out) {
		if nested, ok := strings.CutSuffix(path, "/"); ok {
			failed = append(failed, s.addEmbedded(ctx, inner+"/"+nested, depth+1))
			continue
		}
		if s.unreadable(inner+"/"+path) != nil {
			continue
		}
		paths = append(paths, inner+"/"+path)
	}
	return errors.Join(append(failed, s.add(ctx, paths))...)
}

// salvageParents returns the commits to keep: HEAD first, then those of an operation in progress. unsaved
// reports whether base does not reach one of them.
func (w *Worktree) salvageParents(ctx context.Context, p place, head Hash, born bool, base Hash) (parents []Hash, unsaved bool, err error) {
	if born {
		parents = append(parents, head)
		if unsaved, err = w.beyond(ctx, head, base); err != nil {
			return nil, false, err
		}
	}
	for _, name := range []string{"MERGE_HEAD", "rebase-merge/orig-head", "rebase-apply/orig-head"} {
		data, err := os.ReadFile(filepath.Join(p.gitDir, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, false, fmt.Errorf("salvage: %w", err)
		}
		for text := range strings.FieldsSeq(string(data)) {
			h, err := ParseHash(text)
			if err != nil || slices.Contains(parents, h) {
				continue
			}
			out, err := w.beyond(ctx, h, base)
			if err != nil {
				return nil, false, err
			}
			if out {
				parents, unsaved = append(parents, h), true
			}
		}
	}
	return parents, unsaved, nil
}

func (w *Worktree) beyond(ctx context.Context, h, base Hash) (bool, error) {
	if base == "" {
		return true, nil
	}
	reached, err := w.repo.IsAncestor(ctx, h, base)
	return !reached, err
}

// keep makes the commit, or takes HEAD if wrap is false, and puts a ref on it.
func (w *Worktree) keep(ctx context.Context, p place, q SalvageRequest, tree Hash, parents []Hash, wrap bool) (Salvaged, error) {
	var h Hash
	if !wrap {
		h = parents[0]
	}
	for n := 1; n <= maxSalvages; n++ {
		ref := q.Ref
		if n > 1 {
			ref = Ref(fmt.Sprintf("%s-%d", q.Ref, n))
		}
		held, found, err := w.repo.ResolveRef(ctx, ref)
		if err != nil {
			return Salvaged{}, err
		}
		if found {
			same, err := w.holds(ctx, held, h, tree, parents)
			if err != nil {
				return Salvaged{}, err
			}
			if same {
				return Salvaged{Saved: true, Ref: ref, Hash: held}, nil
			}
			continue
		}
		if h == "" {
			if h, err = w.commitTree(ctx, p, q, tree, parents); err != nil {
				return Salvaged{}, err
			}
		}
		err = w.repo.UpdateRef(ctx, ref, h, ZeroHash)
		if errors.Is(err, ErrMoved) {
			continue
		}
		return Salvaged{Saved: err == nil, Ref: ref, Hash: h}, err
	}
	return Salvaged{}, fmt.Errorf("salvage on %s: %w: all %d names are taken", q.Ref, ErrMoved, maxSalvages)
}

// holds reports whether a ref's commit saves the same: it is the commit h, or has the same tree and parents.
func (w *Worktree) holds(ctx context.Context, held, h, tree Hash, parents []Hash) (bool, error) {
	if h != "" {
		return held == h, nil
	}
	out, err := w.repo.read(ctx, "rev-parse", string(held)+"^{tree}", string(held)+"^@")
	if err != nil {
		return false, err
	}
	return slices.Equal(strings.Fields(string(out)), wording.Strings(append([]Hash{tree}, parents...))), nil
}

func (w *Worktree) commitTree(ctx context.Context, p place, q SalvageRequest, tree Hash, parents []Hash) (Hash, error) {
	identity, err := w.repo.IdentityEnv(ctx, q.AgentID)
	if err != nil {
		return "", err
	}
	args := []string{"commit-tree", string(tree)}
	for _, parent := range parents {
		args = append(args, "-p", string(parent))
	}
	out, err := w.repo.run(ctx, p, Command{Args: args, Stdin: commitMessage(q.Message), Env: identity})
	if err != nil {
		return "", err
	}
	return ParseHash(line(out))
}
