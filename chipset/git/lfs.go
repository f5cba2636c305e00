package git

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
	"strings"
	"syscall"

	"github.com/gastown-chipset/chipset/chipset/git/internal/gitfile"
)

// Git LFS keeps the content of large files outside of git's objects, in lfs/objects/aa/bb/OID below the git folder, where OID is
// the SHA-256 of the content. All worktrees share that folder. A worker in a sandbox can't write there: it could replace the
// content of files that it never committed. It has a folder of its own, in what git keeps for its worktree.

// PullLFS replaces Git LFS pointers in a linked worktree by their files. ErrNotSetUp is
// returned if git-lfs is not installed: without its filters the files would count as changed.
func (w *Worktree) PullLFS(ctx context.Context) error {
	p, err := w.ours()
	if err != nil {
		return err
	}
	if set, err := w.repo.lfsIsSetUp(ctx); err != nil {
		return err
	} else if !set {
		return fmt.Errorf("git LFS is %w: git lfs install", ErrNotSetUp)
	}
	env, err := w.repo.sshEnv(ctx)
	if err != nil {
		return err
	}
	_, err = w.repo.run(ctx, p, Command{Args: []string{"lfs", "pull"}, Network: true, Env: env})
	return err
}

func (r *Repo) lfsIsSetUp(ctx context.Context) (bool, error) {
	return r.lfs.get(r, func() (bool, error) {
		_, found, err := r.config(ctx, "filter.lfs.clean")
		return found, err
	})
}

// usesLFS reports whether git runs git LFS for files of a commit.
func (r *Repo) usesLFS(ctx context.Context, h Hash) (bool, error) {
	if set, err := r.lfsIsSetUp(ctx); err != nil || !set {
		return false, err
	}
	_, err := r.run(ctx, r.plain(), Command{Read: true, Args: []string{"grep", "-q", "-F", "filter=lfs", string(h), "--", ":(glob)**/.gitattributes"}})
	if exited(err, 1) {
		return false, nil
	}
	return err == nil, err
}

// LFSEnvironment returns the variables with which git LFS in a linked worktree stores objects in the worktree's own folder, and
// still reads the shared ones. CollectLFS takes them over.
func (w *Worktree) LFSEnvironment() ([]string, error) {
	p, err := w.ours()
	if err != nil {
		return nil, err
	}
	return []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=lfs.storage", "GIT_CONFIG_VALUE_0=" + filepath.Join(p.gitDir, "lfs"),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + filepath.Join(w.repo.common, "objects")}, nil
}

// CollectLFS moves the LFS objects of a worktree's own folder to the shared one, where other worktrees find them. A file whose
// content does not have the hash that its name says is deleted, and no shared one is ever replaced. The copies are durable when it
// returns. Nobody may work in the worktree.
func (w *Worktree) CollectLFS() error {
	p, err := w.ours()
	if err != nil {
		return err
	}
	admin, err := os.OpenRoot(p.gitDir) //nolint:forbidigo // no link in it is followed out of it
	if err != nil {
		return fmt.Errorf("collect LFS objects: %w", err)
	}
	defer admin.Close()
	names, err := fs.Glob(admin.FS(), "lfs/objects/??/??/*")
	if err != nil {
		return fmt.Errorf("collect LFS objects: %w", err)
	}
	holes := map[string]int64{}
	for _, name := range names {
		info, err := admin.Lstat(name)
		if err == nil && info.Mode().IsRegular() {
			holes[name] = max(0, hole(fs.FileInfoToDirEntry(info)))
		}
		if err == nil && info.Mode().IsRegular() && sum(holes) <= maxHoles { // git LFS makes no sparse files of terabytes
			_ = admin.Chmod(name, 0o600)
			err = w.repo.storeLFS(admin, name)
		}
		if err == nil {
			err = admin.RemoveAll(name)
		}
		if err != nil {
			return fmt.Errorf("collect LFS objects: %w", err)
		}
	}
	return nil
}

// storeLFS copies one object, below from as below the shared git folder, if it is what its name says and is not there yet.
func (r *Repo) storeLFS(from *os.Root, name string) error {
	if oid, err := hex.DecodeString(path.Base(name)); err != nil || len(oid) != sha256.Size {
		return nil
	}
	source, err := from.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer source.Close()
	final := filepath.Join(r.common, filepath.FromSlash(name))
	if _, err := os.Lstat(final); err == nil {
		return r.syncLFS(final) // it may have been stored just before a crash
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temp := filepath.Join(r.common, "lfs", "tmp")
	for _, dir := range []string{temp, filepath.Dir(final)} {
		if err := os.MkdirAll(dir, 0o777); err != nil { //nolint:forbidigo // as git LFS makes them
			return err
		}
	}
	copied, err := os.CreateTemp(temp, "chipset-") //nolint:forbidigo // git LFS's folder
	if err != nil {
		return err
	}
	defer func() { _ = gitfile.Remove(copied.Name()) }()
	defer copied.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(copied, sum), source); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != path.Base(name) {
		return nil // not what its name says
	}
	if err := errors.Join(copied.Chmod(0o644), copied.Sync(), copied.Close()); err != nil {
		return err
	}
	if err := os.Link(copied.Name(), final); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:forbidigo // git LFS's folder
		return err
	}
	return r.syncLFS(final)
}

// syncLFS makes the name of a shared object durable: its worker's own is deleted next.
func (r *Repo) syncLFS(object string) error {
	for dir := filepath.Dir(object); ; dir = filepath.Dir(dir) {
		if err := gitfile.SyncDir(dir); err != nil || dir == r.common {
			return err
		}
	}
}

// CheckLFS returns an *UnfitError if a commit of head that base lacks refers to an LFS object that is missing or damaged here: no
// other worktree could check it out. Where git LFS is not set up, or no attributes of head name it, nothing is checked.
func (r *Repo) CheckLFS(ctx context.Context, base, head Hash) error {
	if err := checkCommits(base, head); err != nil {
		return err
	}
	if uses, err := r.usesLFS(ctx, head); err != nil || !uses {
		return err
	}
	stdout, _, err := r.runBoth(ctx, r.plain(), Command{Read: true, Args: []string{"lfs", "fsck", "--dry-run", "--objects", string(base) + ".." + string(head)}})
	if exited(err, 1) {
		for line := range strings.Lines(string(stdout)) { // "objects: openError: PATH (OID) could not be checked: …"
			if _, what, is := strings.Cut(line, "Error: "); is {
				return unfit("a Git LFS object is missing: %s", strings.TrimSpace(what))
			}
			if _, what, is := strings.Cut(line, "corruptObject: "); is {
				return unfit("a Git LFS object is damaged: %s", strings.TrimSpace(what))
			}
		}
	}
	return err
}

// PushLFS uploads the LFS objects of the commits up to h that a remote does not have yet, under the same condition as CheckLFS.
func (r *Repo) PushLFS(ctx context.Context, remote string, h Hash) error {
	if err := checkCommits(h); err != nil {
		return err
	}
	if uses, err := r.usesLFS(ctx, h); err != nil || !uses {
		return err
	}
	env, err := r.remoteEnv(ctx, remote)
	if err != nil {
		return fmt.Errorf("push LFS objects: %w", err)
	}
	if _, err := r.run(ctx, r.outward(), Command{Args: []string{"lfs", "push", remote, string(h)}, Network: true, Env: env}); err != nil {
		return fmt.Errorf("push LFS objects: %w", err)
	}
	return nil
}
