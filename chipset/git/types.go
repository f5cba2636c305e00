package git

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gastown-chipset/chipset/state/wording"
)

// Hash is the full name of a git object: 40 (SHA-1) or 64 (SHA-256) lower-case hex digits.
// The empty Hash means "none" or "any", where a method says so.
type Hash string

// ZeroHash as the old value of a compare-and-swap says that the ref must not exist.
const ZeroHash Hash = "0000000000000000000000000000000000000000"

// ParseHash checks s and returns it as a Hash.
func ParseHash(s string) (Hash, error) {
	h := Hash(s)
	if err := h.check(); err != nil {
		return "", err
	}
	return h, nil
}

// IsZero reports whether h is all zeros, in either length, or empty.
func (h Hash) IsZero() bool { return strings.Trim(string(h), "0") == "" }

// Short returns the first ten digits, for messages.
func (h Hash) Short() string { return wording.ShortHash(h) }

func (h Hash) check() error {
	if len(h) != 40 && len(h) != 64 {
		return fmt.Errorf("%w: %q", ErrBadHash, wording.Clip(string(h), 80))
	}
	for _, c := range []byte(h) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return fmt.Errorf("%w: %q", ErrBadHash, string(h))
		}
	}
	return nil
}

// checkCommits is check for hashes that must name a commit, so not zeros.
func checkCommits(hashes ...Hash) error {
	for _, h := range hashes {
		if err := h.check(); err != nil {
			return err
		}
		if h.IsZero() {
			return fmt.Errorf("%w: zeros", ErrBadHash)
		}
	}
	return nil
}

// maxRefLength keeps every component with its ".lock" below the 255 bytes of a file name.
const maxRefLength = 240

// Ref is the full name of a ref, such as refs/heads/main.
type Ref string

// ParseRef checks s by the rules of git check-ref-format. It must start with refs/.
func ParseRef(s string) (Ref, error) {
	if !strings.HasPrefix(s, "refs/") || strings.Count(s, "/") < 2 || !validRefName(s) {
		return "", fmt.Errorf("not a full ref name: %q", wording.Clip(s, 300))
	}
	return Ref(s), nil
}

func (r Ref) check() error {
	_, err := ParseRef(string(r))
	return err
}

// Branch is the short name of a local branch, such as main or polecat/gt-abc12.
type Branch string

// ParseBranch checks s by the rules of git check-ref-format --branch, but does not accept expressions such as
// @{-1}.
func ParseBranch(s string) (Branch, error) {
	if strings.HasPrefix(s, "-") || s == "HEAD" || strings.HasPrefix(s, "refs/") || !validRefName("refs/heads/"+s) {
		return "", fmt.Errorf("%w: %q", ErrBadBranch, wording.Clip(s, 300))
	}
	return Branch(s), nil
}

// Ref is the branch's full name.
func (b Branch) Ref() Ref { return Ref("refs/heads/" + string(b)) }

func (b Branch) check() error {
	_, err := ParseBranch(string(b))
	return err
}

// validRefName is git's check_refname_format, and UTF-8.
func validRefName(s string) bool {
	if s == "" || len(s) > maxRefLength || !utf8.ValidString(s) ||
		strings.Contains(s, "..") || strings.Contains(s, "@{") || strings.HasSuffix(s, ".") {
		return false
	}
	for _, c := range []byte(s) {
		if c <= ' ' || c == 0x7f || strings.IndexByte(`~^:?*[\`, c) >= 0 {
			return false
		}
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

// Commit is one entry of a log.
type Commit struct {
	Hash    Hash
	Author  string
	Email   string
	When    time.Time // the author's date
	Subject string
}

// Operation is what git is in the middle of in one worktree.
type Operation string

// The operations that git can be in the middle of. Each ends when the person or worker who started it continues it to its end
// or aborts it; [Repo.PrepareWorktree] and [Repo.ReleaseWorktree] drop it.
const (
	NoOperation         Operation = ""
	OperationMerge      Operation = "merge"
	OperationRebase     Operation = "rebase"
	OperationCherryPick Operation = "cherry-pick"
	OperationRevert     Operation = "revert"
	OperationAm         Operation = "am"
	OperationBisect     Operation = "bisect"
)

// Status is the difference between a worktree and its HEAD. Paths are relative to the
// worktree's root, with slashes, in git's order. Everything below the top-level .chipset is left out.
type Status struct {
	Dirty     []string // changed, staged, deleted or untracked, not ignored
	Unmerged  []string // in conflict; not in Dirty
	Embedded  []string // untracked repositories inside this one, which git cannot add
	Operation Operation

	ownStaged bool // something below .chipset is staged
}

// Clean reports whether resetting the worktree to its HEAD would lose nothing.
func (s Status) Clean() bool {
	return len(s.Dirty) == 0 && len(s.Unmerged) == 0 && len(s.Embedded) == 0 && s.Operation == NoOperation
}
