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
	// root is the state tree's path in the repository, without a slash at the end.
	root string

	mu     sync.Mutex
	reader *reader
	// tip is the newest commit that this process knows to be durable, and held
	// what it holds.
	tip  git.Hash
	held map[string]version
}

// Outcome is what Commit did.
type Outcome struct {
	// Commit is the tip of the audit branch.
	Commit git.Hash
	// Made is false when nothing was new.
	Made bool
	// Changed counts the files that changed since the commit before, Files all of them.
	Changed, Files int
	// Skipped says what could not be kept, with why: nothing of it is a file of the tree.
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

// stateRoot is where the state tree of a rig lies in its repository.
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

// lockDeadline is how long a snapshot of another process is waited for.
const lockDeadline = time.Minute

// tries is how often a snapshot is taken again because somebody else moved the branch, or because
// objects that a power cut tore were in the way.
const tries = 3

// Commit records the state tree as it is now. Without anything new it makes no
// commit. Durable when it returns nil. Errors: git.ErrBranchInUse while somebody has
// the branch checked out, git.ErrMoved when it is moved again and again.
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
	_, keepsErr := repair.RemoveKeepFiles(c.rig.Git, c.rig.Clock(), staleKeep) // what stays is in nobody's way, but for errSamePack
	at := c.rig.Clock()
	for n := 1; ; n++ {
		out, err := c.record(ctx, message, at)
		switch {
		case n < tries && errors.Is(err, errSamePack):
			at = at.Add(time.Second) // another commit, and so another pack
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

// forget drops what was read: the next snapshot compares names only.
func forget(files map[string]version) {
	for p, v := range files {
		v.data = nil
		files[p] = v
	}
}

// settle makes sure that a tip is durable before it is reported.
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

// before is what the commit before holds. Where folders of it can't be read any more it is as if it held nothing, so
// that everything is stored again: most of what is torn has its content here.
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

// listing is what a commit holds of the state tree, by the path below it.
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

// compare lists what is new or other than before, and what is gone, each in order.
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

// sync makes durable what the snapshot is going to record.
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
		// A folder is never removed, but by a person.
		if err := c.rig.Tree.SyncDir(dir); err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}
	}
	return nil
}

// fill reads again what an earlier snapshot had read and no commit holds.
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

// staleKeep is how old the mark of a pack must be to have been left by a fast-import that was killed: a person may
// run one of their own.
const staleKeep = time.Hour

// advance moves the branch by compare-and-swap and removes the refs that unfinished
// commits stood on, all in one transaction.
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

// breakLocks removes the locks that a git of a snapshot holds, of its refs and of what packed them, where it was
// killed, and tells how many.
func (c *Recorder) breakLocks(ctx context.Context) (int, error) {
	locks, err := c.rig.Git.Locks()
	n := 0
	for _, lock := range locks {
		rel, relErr := filepath.Rel(c.rig.Git.CommonDir(), lock)
		name := filepath.ToSlash(rel)
		if relErr != nil || name != "packed-refs.lock" && name != string(c.branch.Ref())+".lock" && !strings.HasPrefix(name, pending) {
			continue
		}
		// Somebody's git that is at work keeps its lock.
		switch breakErr := c.rig.Git.RemoveStaleLock(ctx, lock); {
		case breakErr == nil:
			n++
		case !errors.Is(breakErr, git.ErrLocked):
			err = errors.Join(err, breakErr)
		}
	}
	return n, err
}
