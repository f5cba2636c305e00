package git

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/git/gittest"
)

// A git that is killed, or a call on a file that fails, is an error, and never an answer. What is then done once more comes to
// what it would have come to.
func TestGitIsKilled(t *testing.T) {
	t.Setenv("TMPDIR", gittest.Dir(t)) // where nothing waits for a disk
	f := newFixture(t)
	w := f.prepared()
	first := f.head(w.Path())
	f.git(w.Path(), "checkout", "-q", "-b", "polecat/two")
	tip := f.commit(w.Path(), map[string]string{"b.txt": "b\n", "c/d.txt": "d\n"})
	f.git(w.Path(), "checkout", "-q", "--detach")
	remote := filepath.Join(f.TopLevel(), ".git", "far")
	f.git(f.TopLevel(), "init", "-q", "--bare", "-b", "main", remote)
	f.git(f.TopLevel(), "remote", "add", "far", remote)
	f.git(f.TopLevel(), "push", "-q", "far", "main")
	next := f.commit(f.TopLevel(), map[string]string{"e.txt": "e\n"})
	f.git(f.TopLevel(), "branch", "loose", string(tip))
	f.write(w.Path(), "new.txt", "new\n")
	f.write(w.Path(), "a.txt", "changed\n")

	later := f.commit(f.TopLevel(), map[string]string{"f.txt": "f\n"})
	f.git(f.TopLevel(), "reset", "-q", "--hard", string(next))
	merged := Hash(f.git(f.TopLevel(), "commit-tree", string(tip)+"^{tree}", "-p", string(tip), "-p", string(next), "-m", "merged"))

	faults, refusals := gittest.NewFaults(t), &gittest.Refusals{Within: "/chipset/git/", Depth: 3}
	play := func(name string, once bool, do func(r *Repo, w *Worktree) (any, error)) {
		t.Run(name, func(t *testing.T) {
			p := gittest.Play{World: f.TopLevel(), Once: once, Standing: f.standing, Do: func() (any, error) {
				r, err := Open(f.ctx, f.TopLevel())
				if err != nil {
					return nil, err
				}
				defer r.Close()
				return do(r, r.In(w.Path()))
			}}
			faults.Sweep(t, p)
			faults.Silence(t, p, 12)
			p.Once = once || name == "salvage" // what could not be read is saved beside what was
			refusals.Sweep(t, p, "")
		})
	}
	ctx := f.ctx
	play("prepare", false, func(r *Repo, w *Worktree) (any, error) {
		return nil, r.PrepareWorktree(ctx, w.Path(), "polecat/y", next)
	})
	play("prepare anew", false, func(r *Repo, w *Worktree) (any, error) {
		return nil, r.PrepareWorktree(ctx, w.Path()+"-new", "polecat/y", next)
	})
	play("prepare detached", false, func(r *Repo, w *Worktree) (any, error) {
		return nil, r.PrepareDetached(ctx, w.Path(), next)
	})
	play("release", false, func(r *Repo, w *Worktree) (any, error) { return nil, r.ReleaseWorktree(ctx, w.Path(), "") })
	play("check out", false, func(_ *Repo, w *Worktree) (any, error) { return nil, w.CheckoutDetached(ctx, next) })
	play("status", false, func(_ *Repo, w *Worktree) (any, error) { return answer(w.Status(ctx)) })
	play("staged", false, func(_ *Repo, w *Worktree) (any, error) { return answer(w.Staged(ctx, first)) })
	play("commit", false, func(_ *Repo, w *Worktree) (any, error) {
		c, err := w.CommitAll(ctx, "message", "polecat-alpha")
		return c.Embedded, err
	})
	play("salvage", false, func(_ *Repo, w *Worktree) (any, error) {
		s, err := w.Salvage(ctx, SalvageRequest{Base: first, Ref: "refs/chipset/salvage/x", Message: "m", AgentID: "polecat-alpha"})
		return s.Saved, err
	})
	play("rebase", false, func(_ *Repo, w *Worktree) (any, error) {
		if err := w.CheckoutDetached(ctx, tip); err != nil {
			return nil, err
		}
		_, err := w.Rebase(ctx, tip, next, "refinery")
		return nil, err
	})
	play("rebase of a merge", false, func(_ *Repo, w *Worktree) (any, error) {
		if err := w.CheckoutDetached(ctx, merged); err != nil {
			return nil, err
		}
		_, err := w.Rebase(ctx, merged, next, "refinery")
		return nil, err
	})
	play("rebase of what is there", false, func(_ *Repo, w *Worktree) (any, error) { return answer(w.Rebase(ctx, tip, first, "refinery")) })
	play("advance", false, func(r *Repo, _ *Worktree) (any, error) { return nil, r.Advance(ctx, "polecat/x", first, tip) })
	play("advance what is checked out", false, func(r *Repo, _ *Worktree) (any, error) {
		return nil, r.Advance(ctx, "main", next, later)
	})
	play("update", true, func(r *Repo, _ *Worktree) (any, error) { return nil, r.UpdateBranch(ctx, "loose", next, tip) })
	play("swap", true, func(r *Repo, _ *Worktree) (any, error) {
		return nil, r.SwapRef(ctx, "refs/chipset/new", next, Hash(zero(next)), "refs/heads/loose")
	})
	play("delete", false, func(r *Repo, _ *Worktree) (any, error) {
		return nil, r.DeleteBranches(ctx, BranchDeletion{Branch: "loose", Holds: tip, Keep: "refs/chipset/kept"})
	})
	play("fetch", false, func(r *Repo, _ *Worktree) (any, error) { return answer(r.Fetch(ctx, "far", "main")) })
	play("fetch nothing", false, func(r *Repo, _ *Worktree) (any, error) {
		_, err := r.Fetch(ctx, "far", "none")
		return errors.Is(err, ErrNoRemoteBranch), ignore(err, ErrNoRemoteBranch)
	})
	play("remote", false, func(r *Repo, _ *Worktree) (any, error) {
		h, found, err := r.RemoteHash(ctx, "far", "main")
		return []any{h, found}, err
	})
	play("push", false, func(r *Repo, _ *Worktree) (any, error) { return nil, r.Push(ctx, "far", next, "main") })
	play("push what is refused", false, func(r *Repo, _ *Worktree) (any, error) {
		err := r.Push(ctx, "far", tip, "main")
		if err == nil {
			err = r.Push(ctx, "far", next, "main")
		}
		return errors.Is(err, ErrRejected), ignore(err, ErrRejected)
	})
	play("inspect", false, func(r *Repo, _ *Worktree) (any, error) { return nil, r.Inspect(ctx, first, tip) })
	play("make durable", false, func(r *Repo, _ *Worktree) (any, error) {
		err := r.MakeDurable(ctx, tip, first)
		var torn *TornError
		if errors.As(err, &torn) && len(torn.Objects) > 0 {
			t.Errorf("torn: %v", err)
		}
		return nil, err
	})
	play("keep", false, func(r *Repo, _ *Worktree) (any, error) {
		if err := r.KeepObjects(ctx, tip); err != nil {
			return nil, err
		}
		return answer(looseIn(r.kept()))
	})
	play("store files", false, func(_ *Repo, w *Worktree) (any, error) { return nil, w.StoreFiles(ctx) })
	play("facts", false, func(r *Repo, _ *Worktree) (any, error) {
		var all []any
		var errs []error
		note := func(v any, err error) { all, errs = append(all, v), append(errs, err) }
		note(answer(r.IsAncestor(ctx, first, tip)))
		note(answer(r.IsAncestor(ctx, next, tip)))
		note(answer(r.MergeBase(ctx, next, tip)))
		note(answer(r.CountCommits(ctx, first, tip)))
		note(answer(r.CountCommits(ctx, first, merged)))
		note(answer(r.MergeBase(ctx, later, merged)))
		note(answer(r.ChangedPaths(ctx, first, merged)))
		note(answer(r.Log(ctx, first, tip, 9)))
		note(answer(r.ChangedPaths(ctx, first, tip)))
		note(answer(r.TouchesPath(ctx, first, tip, "c")))
		note(answer(r.Changes(ctx, first, tip)))
		note(answer(r.HasCommit(ctx, tip)))
		note(answer(r.MissingCommits(ctx, map[Ref]Hash{"refs/heads/loose": tip})))
		note(answer(r.ListRefs(ctx, "refs/heads")))
		note(answer(r.DefaultTarget(ctx)))
		note(answer(r.BranchExists(ctx, "loose")))
		note(answer(r.TakenBack(ctx, "main", first, next)))
		note(answer(r.Committer(ctx, "polecat-alpha")))
		note(answer(r.Unreadable(ctx, []Hash{tip, first})))
		note(answer(r.ListWorktrees(ctx)))
		path, used, err := r.CheckedOutAt(ctx, "main")
		note([]any{path, used}, err)
		h, found, err := r.ResolveCommit(ctx, "loose")
		note([]any{h, found}, err)
		h, found, err = r.ResolveCommit(ctx, "none")
		note([]any{h, found}, err)
		by, found, err := r.BroughtBy(ctx, tip, next)
		note([]any{by, found}, err)
		return all, errors.Join(errs...)
	})
	play("facts of a worktree", false, func(_ *Repo, w *Worktree) (any, error) {
		h, found, err := w.Head(ctx)
		b, on, branchErr := w.HeadBranch(ctx)
		return []any{h, found, b, on}, errors.Join(err, branchErr)
	})
}

// answer keeps what was answered without an error: what comes with one is for nobody.
func answer[T any](v T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

// ignore takes an error that was asked for as none.
func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

func zero(h Hash) string {
	text := make([]byte, len(h))
	for i := range text {
		text[i] = '0'
	}
	return string(text)
}

// standing is what refs and worktrees hold, but for the time at which it was committed.
func (f *fixture) standing() string {
	text := f.git(f.TopLevel(), "for-each-ref", "--format=%(refname) %(tree) %(subject)")
	for _, line := range strings.Split(f.git(f.TopLevel(), "worktree", "list", "--porcelain"), "\n") {
		if dir, ok := strings.CutPrefix(line, "worktree "); ok {
			text += "\n" + dir + "\n" + f.git(dir, "log", "--format=%T %an %s") + "\n" + f.git(dir, "status", "--porcelain", "--branch", "--untracked-files=all")
		}
	}
	return text
}
