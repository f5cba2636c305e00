package repair

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/internal/gitfile"
)

// BrokenRef is a ref that names no existing commit, and why.
type BrokenRef struct {
	Ref    git.Ref
	Reason string
}

// BrokenRefs finds the refs below the prefixes (with a slash at the end, or whole names) whose file is torn or
// whose commit is missing, and whole names of refs that are gone although their reflog is not.
func BrokenRefs(ctx context.Context, r *git.Repo, prefixes ...string) ([]BrokenRef, error) {
	names, err := looseRefs(r, prefixes)
	if err != nil {
		return nil, err
	}
	out, err := r.Run(ctx, git.Command{Read: true, Args: append([]string{"for-each-ref", "--format=%(refname)", "--"}, prefixes...)})
	if err != nil {
		return nil, err
	}
	names = append(names, strings.Fields(string(out))...)
	for _, name := range prefixes {
		if !strings.HasSuffix(name, "/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var broken []BrokenRef
	for _, name := range slices.Compact(names) {
		ref, err := git.ParseRef(name)
		if err != nil {
			continue // not a ref: git skips it too
		}
		reason, err := brokenReason(ctx, r, ref)
		if err != nil {
			return broken, err
		}
		if reason != "" {
			broken = append(broken, BrokenRef{ref, reason})
		}
	}
	return broken, nil
}

// looseRefs lists the refs that have a file of their own, whatever it holds: git does not list torn ones.
func looseRefs(r *git.Repo, prefixes []string) (names []string, err error) {
	for _, prefix := range prefixes {
		root := filepath.Join(r.CommonDir(), filepath.FromSlash(prefix))
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil || e.IsDir() || strings.HasSuffix(path, ".lock"):
				return err
			case strings.HasSuffix(prefix, "/") && path == root:
				return nil // Obstacles reports it
			}
			name, err := filepath.Rel(r.CommonDir(), path)
			names = append(names, filepath.ToSlash(name))
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

func refFile(r *git.Repo, ref git.Ref) string {
	return filepath.Join(r.CommonDir(), filepath.FromSlash(string(ref)))
}

func reflogOf(r *git.Repo, ref git.Ref) string {
	return filepath.Join(r.CommonDir(), "logs", filepath.FromSlash(string(ref)))
}

// brokenReason returns why a ref can't be used, or "": its file is torn, its commit is missing, or it is gone while its
// reflog, which git would have removed with it, still names a commit.
func brokenReason(ctx context.Context, r *git.Repo, ref git.Ref) (string, error) {
	text, err := gitfile.ReadLine(refFile(r, ref))
	if err == nil && strings.HasPrefix(text, "ref: ") {
		return "", nil
	}
	h, notHash := git.ParseHash(text)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		packed, found, err := r.ResolveRef(ctx, ref)
		if err != nil {
			return "", err
		}
		if !found {
			last, complete, err := newestCommit(ctx, r, reflogOf(r, ref))
			if err != nil || last == "" && complete {
				return "", err // it was never durable, so nothing was acknowledged
			}
			return "is gone, though its reflog is not: git itself takes both away", nil
		}
		h = packed
	case err != nil && !errors.Is(err, fs.ErrInvalid):
		return "", err // its content is unknown
	case notHash != nil || h.IsZero():
		return "its file holds no commit", nil
	}
	whole, err := r.HasCommit(ctx, h)
	if err != nil || whole {
		return "", err
	}
	return "names the commit " + h.Short() + ", which is not there", nil
}

// RestoreRef sets a broken ref to the newest existing commit in its reflog, else to the first existing one of
// instead. A ref that is not broken stays. Errors: git.ErrNoCommits if there is no such commit. It is durable when
// it returns nil.
func RestoreRef(ctx context.Context, r *git.Repo, ref git.Ref, instead ...git.Hash) error {
	if reason, err := checkedReason(ctx, r, ref); err != nil || reason == "" {
		return err
	}
	to, _, err := newestCommit(ctx, r, reflogOf(r, ref))
	for _, h := range instead {
		if _, notHash := git.ParseHash(string(h)); err != nil || to != "" || notHash != nil {
			continue
		}
		var whole bool
		if whole, err = r.HasCommit(ctx, h); whole {
			to = h
		}
	}
	if err == nil && to == "" {
		err = git.ErrNoCommits
	}
	if err == nil { // git does not update a ref whose file it can't read
		err = gitfile.Write(refFile(r, ref), string(to)+"\n")
	}
	if err != nil {
		return fmt.Errorf("restore %s: %w", ref, err)
	}
	return r.Sync(ctx)
}

// RemoveRef removes a broken ref. A ref that is not broken stays. It is durable when it returns nil.
func RemoveRef(ctx context.Context, r *git.Repo, ref git.Ref) error {
	reason, err := checkedReason(ctx, r, ref)
	if err != nil || reason == "" {
		return err
	}
	// git does not delete a ref whose file it can't read. A packed ref under the torn file may be whole.
	if err := gitfile.Remove(refFile(r, ref)); err != nil {
		return err
	}
	if _, found, err := r.ResolveRef(ctx, ref); err != nil {
		return err
	} else if found {
		reason, err := brokenReason(ctx, r, ref)
		if err == nil && reason != "" {
			_, err = r.Run(ctx, git.Command{Args: []string{"update-ref", "-d", string(ref)}})
		}
		if err != nil {
			return err
		}
	}
	return r.Sync(ctx)
}

func checkedReason(ctx context.Context, r *git.Repo, ref git.Ref) (string, error) {
	if _, err := git.ParseRef(string(ref)); err != nil {
		return "", err
	}
	return brokenReason(ctx, r, ref)
}

const (
	// maxReflog bounds how much of the end of a reflog is read, in bytes.
	maxReflog = 1 << 20
	// maxTries bounds how many of its commits are tried.
	maxTries = 50
)

// newestCommit returns the newest existing commit in a reflog, or "". complete reports whether all of the reflog's commits were
// tried.
func newestCommit(ctx context.Context, r *git.Repo, file string) (h git.Hash, complete bool, err error) {
	all, complete, err := reflog(file)
	for i, h := range all {
		if i == maxTries {
			return "", false, nil
		}
		if whole, err := r.HasCommit(ctx, h); err != nil || whole {
			return h, true, err
		}
	}
	return "", complete, err
}

// reflog lists the new values in a reflog, each once, the newest first; none if it is not a regular
// file. Git does not read the reflog of a ref that it can't resolve.
func reflog(file string) (all []git.Hash, complete bool, err error) {
	if _, isFile, err := regularFile(file); err != nil || !isFile {
		return nil, true, err // there is no reflog
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	from := max(0, info.Size()-maxReflog)
	data, err := io.ReadAll(io.NewSectionReader(f, from, maxReflog))
	lines := strings.Split(string(data), "\n")
	if from > 0 {
		lines = lines[1:] // the first line may be cut
	}
	known := map[git.Hash]bool{}
	for _, l := range slices.Backward(lines) {
		parts := strings.SplitN(l, " ", 3)
		if len(parts) < 3 {
			continue
		}
		if h, err := git.ParseHash(parts[1]); err == nil && !h.IsZero() && !known[h] {
			known[h] = true
			all = append(all, h)
		}
	}
	return all, from == 0, err
}
