package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/gastown-chipset/chipset/chipset/git/internal/gitfile"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Committed is the result of CommitAll.
type Committed struct {
	Hash     Hash     // HEAD afterwards
	Made     bool     // a commit was made
	Embedded []string // repositories inside the worktree, which were left out
}

// CommitAll commits everything that is not ignored on HEAD, except the top-level .chipset and embedded
// repositories. Without changes it makes no commit, so it may be
// repeated. It concludes a merge that the worker resolved. It returns *UnmergedError for unresolved
// conflicts, *InProgressError for any other operation, and *UnfitError for what git can't commit.
func (w *Worktree) CommitAll(ctx context.Context, message, agentID string) (Committed, error) {
	p, err := w.ours()
	if err != nil {
		return Committed{}, err
	}
	if err := w.repo.clearLocks(ctx, p.gitDir); err != nil {
		return Committed{}, err
	}
	status, err := w.status(ctx, p)
	if err != nil {
		return Committed{}, contentFault(err)
	}
	if len(status.Unmerged) > 0 {
		return Committed{}, &UnmergedError{Paths: status.Unmerged}
	}
	if status.Operation != NoOperation && status.Operation != OperationMerge {
		return Committed{}, &InProgressError{status.Operation}
	}
	result := Committed{Embedded: status.Embedded}
	if len(status.Dirty) == 0 && status.Operation != OperationMerge {
		result.Hash, err = w.present(ctx, p)
		return result, err
	}
	if err := p.checkDirty(status.Dirty); err != nil {
		return Committed{}, err
	}
	if err := w.stageAll(ctx, p, status); err != nil {
		return Committed{}, contentFault(err)
	}
	if result.Made, err = w.commitStaged(ctx, p, message, agentID); err != nil {
		return Committed{}, err
	}
	result.Hash, err = w.present(ctx, p)
	return result, err
}

// contentFault returns an *UnfitError if git says that it can't take a file as it is: its attributes name an unknown encoding,
// or a required filter fails on it. git would say so every time.
func contentFault(err error) error {
	refusal := regexp.MustCompile(`(?m)^fatal: (failed to encode .*|BOM is .*|true/false are no valid working-tree-encodings|encoding .* is not the same|.*: clean filter '.*' failed|(?:LF|CRLF) would be replaced by .*)$`)
	var failed *Error
	if !errors.As(err, &failed) || failed.ExitCode != 128 {
		return err
	}
	if found := refusal.FindStringSubmatch(failed.Stderr); found != nil {
		return unfit("git can't take a file: %s", wording.Clip(found[1], 300))
	}
	return err
}

// KeepTo detaches HEAD unless it is on b, and b is a plain ref: a worker can write both HEAD and b,
// and so make the rig's next commit move any branch. It also frees b, see FreeBranch. A HEAD without a commit is an
// *UnfitError. Errors: ErrNotWorktree.
func (w *Worktree) KeepTo(ctx context.Context, b Branch) error {
	p, err := w.ours()
	if err != nil {
		return err
	}
	_, plain := w.repo.looseRef(b.Ref())
	on, detached, _ := readHead(p.gitDir)
	if plain && on == b || detached != "" {
		return w.repo.FreeBranch(ctx, b)
	}
	h, found, err := w.repo.resolve(ctx, p, "HEAD")
	if err != nil {
		return err
	}
	if !found {
		return unfit("the worktree is on a branch without commits: it has no history in common with the target")
	}
	if err := gitfile.Write(filepath.Join(p.gitDir, "HEAD"), string(h)+"\n"); err != nil {
		return err
	}
	return w.repo.FreeBranch(ctx, b)
}

// commitStaged reports whether there was something to commit. Git has the same exit status for "nothing to commit" and for other
// failures; the index tells them apart.
func (w *Worktree) commitStaged(ctx context.Context, p place, message, agentID string) (bool, error) {
	err := w.commit(ctx, p, message, agentID)
	if err == nil || !exited(err, 1) || operation(p.gitDir) == OperationMerge {
		return err == nil, err
	}
	if staged, lookErr := w.staged(ctx, p); lookErr != nil || staged {
		return false, errors.Join(err, lookErr)
	}
	return false, nil
}

// present returns the commit that HEAD names, or ErrNoCommits.
func (w *Worktree) present(ctx context.Context, p place) (Hash, error) {
	h, found, err := w.repo.resolve(ctx, p, "HEAD")
	if err == nil && !found {
		err = fmt.Errorf("%s: %w", w.path, ErrNoCommits)
	}
	return h, err
}

// stageAll stages the paths that status found. "git add --all" would run git in every submodule.
func (w *Worktree) stageAll(ctx context.Context, p place, status Status) error {
	stage := func(paths []string, how ...string) error {
		if len(paths) == 0 {
			return nil
		}
		_, err := w.repo.run(ctx, p, Command{Args: append(append([]string{"update-index"}, how...), "-z", "--stdin"), Stdin: terminated(paths)})
		return err
	}
	there, gone, problems := p.sortOut(status.Dirty)
	if err := errors.Join(problems...); errors.Is(err, fs.ErrPermission) {
		return unfit("%v", err)
	} else if err != nil {
		return err
	}
	if err := stage(gone, "--force-remove"); err != nil {
		return err
	}
	if err := stage(there, "--add", "--remove", "--replace"); err != nil || !status.ownStaged {
		return err
	}
	// Unstage what the worker itself staged below .chipset.
	_, err := w.repo.run(ctx, p, Command{
		Args:  []string{"reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul"},
		Stdin: []byte(":(top,literal)" + ownDirectory + "\x00"),
	})
	return err
}

// sortOut separates paths that exist from those that don't, or exist only behind a symbolic link. problems has an error for
// each path that can't be examined.
func (p place) sortOut(paths []string) (there, gone []string, problems []error) {
	real := map[string]bool{".": true} // folders
	var isFolder func(dir string) (bool, error)
	isFolder = func(dir string) (bool, error) {
		if known, seen := real[dir]; seen {
			return known, nil
		}
		info, err := p.look(dir)
		known := info != nil && info.IsDir()
		if err == nil && known {
			known, err = isFolder(filepath.Dir(dir))
		}
		if err == nil {
			real[dir] = known
		}
		return known, err
	}
	for _, path := range paths {
		local := filepath.FromSlash(path)
		info, err := p.look(local)
		isThere := info != nil
		if err == nil && isThere {
			isThere, err = isFolder(filepath.Dir(local))
		}
		switch {
		case err != nil:
			problems = append(problems, err)
		case isThere:
			there = append(there, path)
		default:
			gone = append(gone, path)
		}
	}
	return there, gone, problems
}

// look returns the file at a local path of the worktree, or nil if there is none.
func (p place) look(local string) (fs.FileInfo, error) {
	info, err := os.Lstat(filepath.Join(p.workTree, local))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	return info, err
}

// terminated joins paths as git reads them with -z.
func terminated(paths []string) []byte {
	if len(paths) == 0 {
		return nil
	}
	return []byte(strings.Join(paths, "\x00") + "\x00")
}

// checkDirty returns an *UnfitError for uncommitted work that git can't commit.
func (p place) checkDirty(paths []string) error {
	for _, path := range paths {
		if err := checkPath(path); err != nil {
			return err
		}
		info, err := os.Lstat(filepath.Join(p.workTree, filepath.FromSlash(path)))
		if err == nil && isSpecial(info.Mode()) {
			return unfit("%s is a %s, which git can't commit", wording.Clip(path, 200), describeMode(info.Mode()))
		}
	}
	return nil
}

// staged reports whether the index differs from HEAD, or from nothing on a branch without commits.
func (w *Worktree) staged(ctx context.Context, p place) (bool, error) {
	_, err := w.repo.run(ctx, p, Command{
		Args: []string{"diff", "--cached", "--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none"}, Read: true})
	if exited(err, 1) {
		return true, nil
	}
	return false, err
}

func (w *Worktree) commit(ctx context.Context, p place, message, agentID string) error {
	identity, err := w.repo.IdentityEnv(ctx, agentID)
	if err != nil {
		return err
	}
	_, err = w.repo.run(ctx, p, Command{
		Args:  []string{"commit", "--quiet", "--no-status", "--cleanup=whitespace", "--file=-"},
		Stdin: commitMessage(message),
		Env:   identity,
	})
	return err
}

// commitMessage returns a message that git and Inspect accept: not blank, without control characters.
func commitMessage(message string) []byte {
	message = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.ToValidUTF8(message, "\uFFFD"))
	message = steering().ReplaceAllString(message, "")
	if strings.TrimSpace(message) == "" {
		message = "Uncommitted work"
	}
	return []byte(message + "\n")
}
