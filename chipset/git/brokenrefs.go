package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// BrokenRef is a ref that names nothing, and why.
type BrokenRef struct {
	Ref    Ref
	Reason string
}

// BrokenRefs finds the refs below the prefixes (with a slash at the end, or whole names) whose file is torn, or
// whose commit is not there, and of whole names those that are gone though their reflog is not.
func (r *Repo) BrokenRefs(ctx context.Context, prefixes ...string) ([]BrokenRef, error) {
	var broken []BrokenRef
	held := map[Ref]Hash{}
	for _, prefix := range prefixes {
		torn, err := r.looseRefs(prefix, held)
		if err != nil {
			return nil, err
		}
		broken = append(broken, torn...)
	}
	out, err := r.read(ctx, append([]string{"for-each-ref", "--format=%(objectname) %(refname)", "--"}, prefixes...)...)
	if err != nil {
		return nil, err
	}
	for l := range strings.Lines(string(out)) {
		if object, name, ok := strings.Cut(strings.TrimSuffix(l, "\n"), " "); ok {
			held[Ref(name)] = Hash(object)
		}
	}
	missing, err := r.Missing(ctx, held)
	for _, ref := range missing {
		broken = append(broken, BrokenRef{ref, "names the commit " + held[ref].Short() + ", which is not there"})
	}
	for _, name := range prefixes {
		ref := Ref(name)
		told := held[ref] != "" || slices.ContainsFunc(broken, func(b BrokenRef) bool { return b.Ref == ref })
		if strings.HasSuffix(name, "/") || told {
			continue
		}
		reason, lostErr := r.lostRef(ctx, ref)
		if err = errors.Join(err, lostErr); reason != "" {
			broken = append(broken, BrokenRef{ref, reason})
		}
	}
	return broken, err
}

// lostRef says that a ref which is not there has left its reflog behind. One of which no commit is left was never
// durable: nobody was told of it.
func (r *Repo) lostRef(ctx context.Context, ref Ref) (string, error) {
	last, all, err := r.lastWhole(ctx, filepath.Join(r.common, "logs", filepath.FromSlash(string(ref))))
	if err != nil || last == "" && all {
		return "", err
	}
	return "is gone, though its reflog is not: git itself takes both away", nil
}

// looseRefs adds what the files of refs hold, and returns those that hold nothing.
func (r *Repo) looseRefs(prefix string, held map[Ref]Hash) ([]BrokenRef, error) {
	var broken []BrokenRef
	root := filepath.Join(r.common, filepath.FromSlash(prefix))
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || e.IsDir() || strings.HasSuffix(path, ".lock"):
			return err
		case strings.HasSuffix(prefix, "/") && path == root:
			return nil // Obstacles tells of it
		}
		name, err := filepath.Rel(r.common, path)
		if err != nil {
			return err
		}
		ref := Ref(filepath.ToSlash(name))
		if ref.check() != nil {
			return nil // no ref: git skips it as well
		}
		text, err := readPlain(path)
		switch h := Hash(text); {
		case err == nil && strings.HasPrefix(text, "ref: "):
		case err == nil && h.check() == nil && !h.IsZero():
			held[ref] = h
		case !errors.Is(err, fs.ErrNotExist):
			broken = append(broken, BrokenRef{ref, "its file holds no commit"})
		}
		return nil
	})
	return broken, err
}

// Missing returns the keys whose commits are not there, in one process. A commit whose tree is gone counts as such.
func (r *Repo) Missing(ctx context.Context, commits map[Ref]Hash) ([]Ref, error) {
	if len(commits) == 0 {
		return nil, nil
	}
	var stdin strings.Builder
	var order []Ref
	for ref, h := range commits {
		if err := h.check(); err != nil {
			return nil, err
		}
		stdin.WriteString(string(h) + "^{tree}\n")
		order = append(order, ref)
	}
	out, err := r.run(ctx, r.plain(), Command{Args: []string{"cat-file", "--batch-check=%(objecttype)"}, Stdin: []byte(stdin.String()), Read: true})
	if err != nil {
		return r.missingOneByOne(ctx, commits, order)
	}
	answers := strings.Split(line(out), "\n")
	if len(answers) != len(order) {
		return r.missingOneByOne(ctx, commits, order)
	}
	var missing []Ref
	for i, answer := range answers {
		if answer != "tree" {
			missing = append(missing, order[i])
		}
	}
	return missing, nil
}

// missingOneByOne is for repositories in which a torn object ends a git that looks at many.
func (r *Repo) missingOneByOne(ctx context.Context, commits map[Ref]Hash, order []Ref) ([]Ref, error) {
	var missing []Ref
	for _, ref := range order {
		whole, err := r.wholeCommit(ctx, commits[ref])
		if err != nil {
			return missing, err
		}
		if !whole {
			missing = append(missing, ref)
		}
	}
	return missing, nil
}

// RefExists tells whether a ref has a file of its own or is packed, whatever it holds.
func (r *Repo) RefExists(ctx context.Context, ref Ref) (bool, error) {
	if err := ref.check(); err != nil {
		return false, err
	}
	if _, err := os.Lstat(filepath.Join(r.common, filepath.FromSlash(string(ref)))); err == nil {
		return true, nil
	}
	_, found, err := r.ResolveRef(ctx, ref)
	return found, err
}
