package history

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/repair"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// Recorder commits snapshots of a rig's state tree to its audit branch. It is safe for
// concurrent use, also by several processes.
type Recorder struct {
	rig    *rig.Rig
	branch git.Branch
	// root is the state tree's path in the repository, without a trailing slash.
	root string

	mu     sync.Mutex
	reader *reader
	// tip is the newest commit that this process knows to be durable; held is
	// its content.
	tip  git.Hash
	held map[string]version
}

// Outcome is the result of Commit.
type Outcome struct {
	// Commit is the tip of the audit branch.
	Commit git.Hash
	// Made is false if nothing had changed.
	Made bool
	// Changed is the number of files that changed since the previous commit, Files that of all files.
	Changed, Files int
	// Skipped lists what was left out, and why. None of it belongs in the tree.
	Skipped []error
}

// NewRecorder opens the audit branch of a rig. Errors: git.ErrBadBranch.
func NewRecorder(r *rig.Rig) (*Recorder, error) {
	branch, err := git.ParseBranch(r.Def.Audit.Ref)
	if err != nil {
		return nil, fmt.Errorf("audit.ref: %w", err)
	}
	root, err := stateRoot(r)
	if err != nil {
		return nil, err
	}
	return &Recorder{rig: r, branch: branch, root: root}, nil
}

// stateRoot returns the path of a rig's state tree in its repository.
func stateRoot(r *rig.Rig) (string, error) {
	top, err := filepath.EvalSymlinks(r.Tree.Abs(state.StateDir))
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(r.Git.TopLevel(), top)
	if err != nil || strings.HasPrefix(rel, "..") {
		return "", fmt.Errorf("the state tree %s is not inside the repository %s", top, r.Git.TopLevel())
	}
	return filepath.ToSlash(rel), nil
}

// lockDeadline is how long Commit waits for another process's snapshot.
const lockDeadline = time.Minute

// tries bounds how often a snapshot is repeated because somebody else moved the branch, or because
// of torn objects.
const tries = 3

// Commit records the current state tree. Without changes it makes no
// commit. The commit is durable when it returns nil. Errors: git.ErrBranchInUse while somebody has
// the branch checked out, git.ErrMoved if somebody keeps moving it.
func (c *Recorder) Commit(ctx context.Context, message string) (Outcome, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting, cancel := context.WithTimeout(ctx, lockDeadline)
	defer cancel()
	lock, err := c.rig.Tree.Lock(waiting, state.LockRecord, "audit")
	if err != nil {
		return Outcome{}, err
	}
	defer lock.Unlock()
	if path, used, err := c.rig.Git.CheckedOutAt(ctx, c.branch); err != nil {
		return Outcome{}, err
	} else if used {
		return Outcome{}, fmt.Errorf("audit commit to %s: %w: %s", c.branch, git.ErrBranchInUse, path)
	}
	_, keepsErr := repair.RemoveKeepFiles(c.rig.Git, c.rig.Clock(), staleKeep) // a .keep file that stays matters only for errSamePack
	at := c.rig.Clock()
	for n := 1; ; n++ {
		out, err := c.record(ctx, message, at)
		switch {
		case n < tries && errors.Is(err, errSamePack):
			at = at.Add(time.Second) // makes another commit, and so another pack
		case n < tries && (errors.Is(err, git.ErrMoved) || errors.Is(err, git.ErrTorn)):
		default:
			if errors.Is(err, errSamePack) {
				err = errors.Join(err, keepsErr)
			}
			return out, err
		}
	}
}

func (c *Recorder) record(ctx context.Context, message string, at time.Time) (Outcome, error) {
	parent, _, err := c.rig.Git.ResolveRef(ctx, c.branch.Ref())
	if err != nil {
		return Outcome{}, err
	}
	if err := c.prepareReader(ctx); err != nil {
		return Outcome{}, err
	}
	before, err := c.before(ctx, parent)
	if err != nil {
		return Outcome{}, err
	}
	now, err := c.reader.read(ctx)
	if err != nil {
		return Outcome{}, err
	}
	changed, gone := compare(before, now.files)
	out := Outcome{Commit: parent, Changed: len(changed) + len(gone), Files: len(now.files), Skipped: now.skipped}
	if out.Changed == 0 && parent != "" {
		return out, c.settle(ctx, parent, now.files)
	}
	if err := c.sync(changed, gone); err != nil {
		return out, err
	}
	if err := c.fill(now.files, changed); err != nil {
		return out, err
	}
	made, temp, err := c.store(ctx, &step{parent: parent, message: message, at: at, files: now.files, changed: changed, gone: gone})
	forget(now.files)
	if err != nil {
		return out, err
	}
	if err := c.rig.Git.Sync(ctx); err != nil {
		return out, err
	}
	if err := c.advance(ctx, parent, made, temp); err != nil {
		return out, err
	}
	out.Commit, out.Made = made, true
	return out, c.settle(ctx, made, now.files)
}

// forget drops the contents that were read: the next snapshot compares names only.
func forget(files map[string]version) {
	for p, v := range files {
		v.data = nil
		files[p] = v
	}
}

// settle makes a tip durable before it is reported.
func (c *Recorder) settle(ctx context.Context, tip git.Hash, files map[string]version) error {
	if c.tip != tip {
		if err := c.rig.Git.Sync(ctx); err != nil {
			return err
		}
	}
	c.tip, c.held = tip, files
	return nil
}

func (c *Recorder) prepareReader(ctx context.Context) error {
	if c.reader != nil {
		return nil
	}
	format, err := c.rig.Git.Run(ctx, git.Command{Read: true, Args: []string{"rev-parse", "--show-object-format"}})
	if err != nil {
		return err
	}
	c.reader = &reader{tree: c.rig.Tree, name: newNamer(strings.TrimSpace(string(format)))}
	return nil
}

// before returns the content of the previous commit. If its folders can't be read any more it returns nothing, so
// that everything is stored again: the tree still has the content of most torn objects.
func (c *Recorder) before(ctx context.Context, parent git.Hash) (map[string]git.Hash, error) {
	held, err := c.listing(ctx, parent)
	if err == nil || ctx.Err() != nil {
		return held, err
	}
	missing, lookErr := c.rig.Git.MissingCommits(ctx, map[git.Ref]git.Hash{c.branch.Ref(): parent})
	if lookErr != nil || len(missing) > 0 {
		return nil, errors.Join(err, lookErr)
	}
	return map[string]git.Hash{}, nil
}

// listing returns the state tree in a commit, by path.
func (c *Recorder) listing(ctx context.Context, commit git.Hash) (map[string]git.Hash, error) {
	held := make(map[string]git.Hash, len(c.held))
	if commit == "" {
		return held, nil
	}
	if commit == c.tip {
		for p, v := range c.held {
			held[p] = v.id
		}
		return held, nil
	}
	out, err := c.rig.Git.Run(ctx, git.Command{Read: true,
		Args: []string{"--literal-pathspecs", "ls-tree", "-r", "-z", "--full-tree", string(commit), "--", c.root + "/"}})
	if err != nil {
		return nil, err
	}
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		meta, p, ok := strings.Cut(entry, "\t")
		parts := strings.Fields(meta)
		if below, inside := strings.CutPrefix(p, c.root+"/"); ok && inside && len(parts) == 3 {
			held[below] = git.Hash(parts[2])
		}
	}
	return held, nil
}

// compare lists the new or changed files and the removed ones, each sorted.
func compare(before map[string]git.Hash, now map[string]version) (changed, gone []string) {
	for p, v := range now {
		if before[p] != v.id {
			changed = append(changed, p)
		}
	}
	for p := range before {
		if _, there := now[p]; !there {
			gone = append(gone, p)
		}
	}
	slices.Sort(changed)
	slices.Sort(gone)
	return changed, gone
}

// sync makes the files durable that the snapshot will record.
func (c *Recorder) sync(changed, gone []string) error {
	dirs := map[state.Path]bool{}
	for _, p := range slices.Concat(changed, gone) {
		dirs[state.StateDir.Join(path.Dir(p))] = true
	}
	for _, p := range changed {
		if full := state.StateDir.Join(p); full.Dir() == event.Dir {
			if err := c.rig.Tree.SyncFile(full); err != nil {
				return err
			}
		}
	}
	for dir := range dirs {
		// Only a person removes a folder.
		if err := c.rig.Tree.SyncDir(dir); err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}
	}
	return nil
}

// fill reads files again that an earlier snapshot has read and no commit holds.
func (c *Recorder) fill(files map[string]version, changed []string) error {
	for _, p := range changed {
		v := files[p]
		if v.data != nil {
			continue
		}
		data, err := c.rig.Tree.Read(state.StateDir.Join(p), maxLog)
		if err != nil || c.reader.name("blob", data) != v.id {
			c.reader.known = nil
			return errors.Join(err, fmt.Errorf("snapshot of %s: it was replaced meanwhile: %w", p, git.ErrMoved))
		}
		v.data = data
		files[p] = v
	}
	return nil
}

// staleKeep is the age at which a fast-import's .keep file counts as left by a killed one: a person may
// run a fast-import, too.
const staleKeep = time.Hour

// advance moves the branch by compare-and-swap and deletes the refs of unfinished
// commits, all in one transaction.
func (c *Recorder) advance(ctx context.Context, parent, made git.Hash, temp git.Ref) error {
	left, err := c.rig.Git.Run(ctx, git.Command{Read: true, Args: []string{"for-each-ref", "--format=%(refname)", pending}})
	if err != nil {
		return err
	}
	drop := []git.Ref{temp}
	for name := range strings.FieldsSeq(string(left)) {
		if ref, err := git.ParseRef(name); err == nil && ref != temp {
			drop = append(drop, ref)
		}
	}
	err = c.rig.Git.SwapRef(ctx, c.branch.Ref(), made, parent, drop...)
	if err == nil || errors.Is(err, git.ErrMoved) {
		return err
	}
	if broken, breakErr := c.breakLocks(ctx); broken == 0 {
		return errors.Join(err, breakErr)
	}
	return c.rig.Git.SwapRef(ctx, c.branch.Ref(), made, parent, drop...)
}

// breakLocks removes the locks that a killed git of a snapshot left on its refs and on packed-refs, and
// returns their number.
func (c *Recorder) breakLocks(ctx context.Context) (int, error) {
	locks, err := c.rig.Git.Locks()
	n := 0
	for _, lock := range locks {
		rel, relErr := filepath.Rel(c.rig.Git.CommonDir(), lock)
		name := filepath.ToSlash(rel)
		if relErr != nil || name != "packed-refs.lock" && name != string(c.branch.Ref())+".lock" && !strings.HasPrefix(name, pending) {
			continue
		}
		// A running git keeps its lock.
		switch breakErr := c.rig.Git.RemoveStaleLock(ctx, lock); {
		case breakErr == nil:
			n++
		case !errors.Is(breakErr, git.ErrLocked):
			err = errors.Join(err, breakErr)
		}
	}
	return n, err
}
