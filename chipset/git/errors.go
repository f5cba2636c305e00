package git

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gastown-chipset/chipset/state/wording"
)

var (
	// ErrNotRepo is returned by Open for a directory that is in no git repository.
	ErrNotRepo = errors.New("not a git repository")
	// ErrBare is returned by Open for a repository without a main worktree.
	ErrBare = errors.New("the repository is bare")
	// ErrNoCommits is returned by Check and DefaultTarget for a repository whose HEAD names no commit yet.
	ErrNoCommits = errors.New("the repository has no commits")
	// ErrBadHash is returned for an invalid Hash.
	ErrBadHash = errors.New("not an object name")
	// ErrBadBranch is returned for an invalid branch name.
	ErrBadBranch = errors.New("not a branch name")
	// ErrUnrelated is returned by MergeBase for commits without common history.
	ErrUnrelated = errors.New("no common history")
	// ErrMoved is returned by a compare-and-swap whose ref does not hold the old value.
	ErrMoved = errors.New("the ref was moved by somebody else")
	// ErrNotWorktree is returned for a path that is not a worktree of this repository.
	ErrNotWorktree = errors.New("not a worktree of this repository")
	// ErrForeignDirectory is returned by PrepareWorktree when something else stands at the path.
	ErrForeignDirectory = errors.New("the path holds something that is not a worktree of this repository")
	// ErrBranchInUse is returned by PrepareWorktree and DeleteBranches for a branch that another worktree has checked out.
	ErrBranchInUse = errors.New("the branch is checked out in another worktree")
	// ErrLocked is returned for a lock file that another git may hold.
	ErrLocked = errors.New("the index is locked by another git")
	// ErrNoEnd is returned (inside an *Error) for a command that was killed at the Deadline.
	ErrNoEnd = errors.New("did not end")
	// ErrNoRemote is returned for a remote that the repository does not configure.
	ErrNoRemote = errors.New("no such remote")
	// ErrNoRemoteBranch is returned by Fetch for a branch that the remote does not have.
	ErrNoRemoteBranch = errors.New("the remote has no such branch")
	// ErrRejected is returned (as a *RejectedError) by Push when the remote did not take the commits.
	ErrRejected = errors.New("rejected by the remote")
)

// Error is the failure of a git command.
type Error struct {
	Args     []string // the subcommand and its arguments
	Dir      string   // the git directory, or where git was started
	ExitCode int      // -1 if it did not run or a signal ended it
	Stderr   string   // the last 8 KiB, in English
	Cause    error    // why it did not run or was killed; the context's error after a cancellation
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("git")
	if len(e.Args) > 0 {
		b.WriteString(" " + e.Args[0])
	}
	b.WriteString(" in " + e.Dir)
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	} else {
		fmt.Fprintf(&b, ": exit status %d", e.ExitCode)
	}
	if text := strings.TrimSpace(e.Stderr); text != "" {
		b.WriteString(": " + wording.Clip(text, 500))
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Cause }

// exited reports whether err is a git command that exited with one of the codes.
func exited(err error, codes ...int) bool {
	var failed *Error
	if !errors.As(err, &failed) || failed.Cause != nil {
		return false
	}
	for _, code := range codes {
		if failed.ExitCode == code {
			return true
		}
	}
	return false
}

// ConflictError is returned by Rebase when the commits do not apply on the new base. The worktree
// is clean again.
type ConflictError struct {
	Paths  []string // the files in conflict
	Output string   // the end of git's output
}

func (e *ConflictError) Error() string {
	return "rebase: conflict in " + strings.Join(e.Paths, ", ")
}

// RefusedError is returned by Advance when the checkout of the branch is in a state in which git can't
// or must not touch it. Nothing has moved. Advance can be tried again when the person has changed that state.
type RefusedError struct {
	Path   string // the root of the checkout
	Output string // why, in git's words or ours
	// Whole is true if the checkout can't be moved at all, whatever the new commit changes.
	Whole bool
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("advance: the checkout %s is in the way: %s", e.Path, wording.Clip(strings.TrimSpace(e.Output), 500))
}

// Cause returns the reason in one line, with the names of the first files.
func (e *RefusedError) Cause() string {
	head, list, found := strings.Cut(e.Output, ":\n\t")
	if !found {
		return wording.FirstLine(strings.TrimSpace(e.Output))
	}
	var names []string
	for line := range strings.SplitSeq("\t"+list, "\n") {
		name, isName := strings.CutPrefix(line, "\t")
		if !isName {
			break
		}
		names = append(names, name)
	}
	const most = 3
	if strings.Contains(head, "untracked") {
		return "untracked " + wording.JoinFirst(names, most) + " would be overwritten: move or remove what you need"
	}
	return "your changes to " + wording.JoinFirst(names, most) + " would be overwritten: commit or stash them"
}

// InProgressError is returned by CommitAll in the middle of an operation other than a merge. Nothing was committed.
type InProgressError struct{ Operation Operation }

func (e *InProgressError) Error() string { return "a " + string(e.Operation) + " is in progress" }

// UnmergedError is returned by CommitAll when the worktree holds unresolved conflicts. Nothing was committed.
type UnmergedError struct{ Paths []string }

func (e *UnmergedError) Error() string {
	return "commit: unresolved conflicts in " + strings.Join(e.Paths, ", ")
}

// IncompleteError is returned by Salvage beside a valid result when some files could not be read. The worktree
// still holds the only copy of these.
type IncompleteError struct{ Output string }

func (e *IncompleteError) Error() string {
	return "salvage: not everything could be saved: " + wording.Clip(strings.TrimSpace(e.Output), 500)
}

// RejectedError is returned by Push. It is an ErrRejected.
type RejectedError struct {
	ByHook bool   // the server refused (hook, protected branch, lost race), not the fast-forward rule
	Reason string // git's summary, such as "[rejected] (fetch first)"
	Output string // the end of what the remote said
}

func (e *RejectedError) Error() string { return "push: " + e.Reason }

// Is makes a RejectedError an ErrRejected.
func (e *RejectedError) Is(target error) bool { return target == ErrRejected }
