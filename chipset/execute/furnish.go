package execute

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/wording"
)

// setupDir holds, for each agent, what the setup of its worktree was done for. It is a cache: without it the setup
// runs again.
const setupDir = state.RunDir + "/setup"

// Furnish makes a worktree that git has just made or cleaned ready for work, as the definition says: submodules, LFS
// files, copies and links, the setup. All but the setup is made again each time. What fails is a *startFailure of the
// environment; other errors are those of a context, and a state.ErrConflict of Wanted.
func (s *Site) Furnish(ctx context.Context) error {
	w := s.Rig.Def.Worktree
	limited, cancel := context.WithTimeoutCause(ctx, w.Timeout, fmt.Errorf("no end within %s (worktree.timeout)", w.Timeout))
	defer cancel()
	wt := s.Rig.Git.In(s.Dir)
	steps := []struct {
		what string
		do   func() error
	}{
		{"worktree.submodules", func() error {
			if !w.Submodules {
				return nil
			}
			return wt.CheckoutSubmodules(limited)
		}},
		{"worktree.lfs", func() error {
			if !w.LFS {
				return nil
			}
			return wt.PullLFS(limited)
		}},
		{"worktree.copy and link", func() error { return s.provide(limited) }},
		{"worktree.setup", func() error { return s.setup(ctx) }},
	}
	for _, step := range steps {
		err := step.do()
		var failure *startFailure
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &failure), errors.Is(err, state.ErrConflict):
			return err
		case limited.Err() != nil:
			return &startFailure{step.what, context.Cause(limited), fault.SetupFailed}
		default:
			return &startFailure{step.what, err, fault.SetupFailed}
		}
	}
	return nil
}

// provide puts the copies and links into the worktree. Git ignores them, whatever .gitignore says.
func (s *Site) provide(ctx context.Context) error {
	w := s.Rig.Def.Worktree
	paths := w.Provided()
	if len(paths) == 0 {
		return nil
	}
	if tracked, err := s.Rig.Git.In(s.Dir).Tracked(ctx, paths...); err != nil {
		return err
	} else if tracked != "" {
		return fmt.Errorf("git tracks %s: take it out of chipset.yaml", tracked)
	}
	if err := s.Rig.Exclude(ctx, paths); err != nil {
		return err
	}
	from, err := os.OpenRoot(s.Rig.Dir) //nolint:forbidigo // the checkout; no link in it is followed out of it
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenRoot(s.Dir) //nolint:forbidigo // a worktree; no link in it is followed out of it
	if err != nil {
		return err
	}
	defer to.Close()
	for _, p := range paths {
		if err := s.checkSource(from, p); err != nil {
			return err
		}
		err := to.RemoveAll(p)
		if err == nil {
			err = to.MkdirAll(path.Dir(p), 0o755)
		}
		switch {
		case err != nil:
		case slices.Contains(w.Link, p):
			err = to.Symlink(filepath.Join(s.Rig.Dir, filepath.FromSlash(p)), p)
		default:
			err = copyTree(from, to, p)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

// checkSource refuses what is not there, leads out of the checkout, or is git's or the rig's own behind a link.
func (s *Site) checkSource(from *os.Root, p string) error {
	if _, err := from.Stat(p); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not in %s: make it, or take it out of chipset.yaml", p, s.Rig.Dir)
	} else if err != nil {
		return err
	}
	root, err := filepath.EvalSymlinks(s.Rig.Dir)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(filepath.Join(root, filepath.FromSlash(p)))
	if err != nil {
		return err
	}
	inner, err := filepath.Rel(root, real)
	if err != nil {
		return err
	}
	for i, part := range strings.Split(filepath.ToSlash(inner), "/") {
		if part == ".." || strings.EqualFold(part, ".git") || i == 0 && strings.EqualFold(part, rig.DirName) {
			return fmt.Errorf("%s leads to %s: it must stay in the checkout, outside of .git and %s", p, real, rig.DirName)
		}
	}
	return nil
}

// copyTree copies a file, or a folder with all that is in it. Links in a folder are copied as they are.
func copyTree(from, to *os.Root, name string) error {
	info, err := from.Stat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return copyFile(from, to, name, info)
	}
	return fs.WalkDir(from.FS(), name, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		switch {
		case info.IsDir():
			return to.MkdirAll(p, 0o755)
		case info.Mode()&fs.ModeSymlink != 0 && p != name:
			target, err := from.Readlink(p)
			if err != nil {
				return err
			}
			return to.Symlink(target, p)
		}
		return copyFile(from, to, p, info)
	})
}

func copyFile(from, to *os.Root, p string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errors.New("neither a file nor a folder")
	}
	in, err := from.Open(p)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := to.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o200)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// linked are the places that links of a worktree lead to: readable in a sandbox, too.
func linked(r *rig.Rig) []string {
	var all []string
	for _, p := range r.Def.Worktree.Link {
		all = append(all, filepath.Join(r.Dir, filepath.FromSlash(p)))
	}
	return all
}

// setupDone says what the setup of a worktree was done for.
type setupDone struct {
	AgentID state.AgentID `json:"agent_id"`
	// Command was run with files of setup_when whose content has that hash.
	Command string `json:"command"`
	Hash    string `json:"hash"`
	// Worktree tells the folder from a later one at the same path.
	Worktree uint64 `json:"worktree"`
	// Made are the ignored files and folders that were there afterwards: while one is missing, the setup
	// is to be done again.
	Made []string `json:"made"`
}

// maxMade bounds the list of what a setup made.
const maxMade = 200

// setup runs the setup command unless it was done for this worktree and these files.
func (s *Site) setup(ctx context.Context) error {
	w := s.Rig.Def.Worktree
	if w.Setup.IsZero() {
		return nil
	}
	want, err := s.wantedSetup()
	if err != nil {
		return err
	}
	at := setupDir.Join(string(s.ID) + ".json")
	if s.isDone(at, want) {
		return nil
	}
	if err := s.Rig.Tree.Remove(at); err != nil {
		return err
	}
	line := w.Setup.String()
	s.Say("%s: setup: %s", s.ID, line)
	session := state.NewSessionID()
	log := state.LogDir.Join("setup-" + string(s.ID) + ".log")
	exit, output, err := s.run(ctx, command{session: session, argv: w.Setup.Argv, log: log,
		record: setupDir.Join(string(s.ID) + ".job.json"), timeout: w.Timeout})
	if err != nil {
		return err
	}
	if why := setupFailure(exit.Code, exit.TimedOut, exit.Error, output); why != "" {
		return &startFailure{line, fmt.Errorf("%s (%s)", why, s.Rig.Tree.Abs(log)), fault.SetupFailed}
	}
	wt := s.Rig.Git.In(s.Dir)
	status, err := wt.Status(ctx)
	if err != nil {
		return err
	}
	if left := slices.Concat(status.Dirty, status.Embedded); len(left) > 0 {
		return &startFailure{line, fmt.Errorf("it leaves %s, which git does not ignore and a worker would commit: put it into .gitignore", left[0]), fault.SetupFailed}
	}
	if want.Made, err = wt.Ignored(ctx); err != nil {
		return err
	}
	want.Made = want.Made[:min(len(want.Made), maxMade)]
	return s.Rig.Tree.ReplaceJSON(at, want)
}

// setupFailure says why a setup failed, "" for one that did not.
func setupFailure(code int, timedOut bool, problem, output string) string {
	last := output[strings.LastIndexByte(output, '\n')+1:]
	switch {
	case timedOut:
		return "no end within worktree.timeout"
	case code == 0:
		return ""
	case last == "":
		last = problem
	}
	return strings.TrimSuffix(fmt.Sprintf("exit status %d: %s", code, wording.Clip(last, 150)), ": ")
}

// wantedSetup is what the setup of the worktree must have been done for, without what it made.
func (s *Site) wantedSetup() (setupDone, error) {
	w := s.Rig.Def.Worktree
	done := setupDone{AgentID: s.ID, Command: fmt.Sprintf("%q", w.Setup.Argv)}
	info, err := os.Stat(s.Dir)
	if err != nil {
		return done, err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		done.Worktree = stat.Ino
	}
	root, err := os.OpenRoot(s.Dir) //nolint:forbidigo // a worktree; no link in it is followed out of it
	if err != nil {
		return done, err
	}
	defer root.Close()
	sum := sha256.New()
	for _, name := range w.SetupWhen {
		_, _ = fmt.Fprintf(sum, "%q:", name)
		if info, err := root.Stat(name); err != nil || !info.Mode().IsRegular() {
			continue // its absence counts
		}
		f, err := root.Open(name)
		if err != nil {
			return done, err
		}
		n, err := io.Copy(sum, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return done, err
		}
		_, _ = fmt.Fprintf(sum, "%d;", n)
	}
	done.Hash = hex.EncodeToString(sum.Sum(nil))
	return done, nil
}

// ForgetSetup makes the setup run again.
func (s *Site) ForgetSetup() error { return s.Rig.Tree.Remove(setupDir.Join(string(s.ID) + ".json")) }

// isDone reports whether the setup was done as it is wanted, and what it made is still there.
func (s *Site) isDone(at state.Path, want setupDone) bool {
	var done setupDone
	if s.Rig.Tree.ReadJSON(at, &done) != nil {
		return false // run/ may be emptied at any time
	}
	if done.AgentID != want.AgentID || done.Command != want.Command || done.Hash != want.Hash || done.Worktree != want.Worktree {
		return false
	}
	return !slices.ContainsFunc(done.Made, func(name string) bool {
		_, err := os.Lstat(filepath.Join(s.Dir, filepath.FromSlash(name)))
		return err != nil
	})
}
