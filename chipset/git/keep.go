package git

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/git/internal/gitfile"
)

const (
	// keptName is the folder in git's common folder with the copies that KeepObjects makes, laid out like objects/.
	keptName = "chipset-kept"
	// keptTip is the file in it that names the commit whose objects are kept.
	keptTip = "tip"
	// maxKept is how many loose objects are kept before they are packed: RestoreObjects examines every loose one.
	maxKept = 256
)

// KeepObjects keeps a second copy of every object that tip reaches, in a folder that the sandbox protects: a worker that can commit
// can delete loose objects. The first call keeps all packs and loose objects, later ones what a new tip
// reaches beyond the last. Many loose objects are packed, because a worker in the sandbox can't change packs. The copies are not durable.
// Errors: ErrTorn for objects that are damaged already; all others are kept.
func (r *Repo) KeepObjects(ctx context.Context, tip Hash) error {
	err := r.keepObjects(ctx, tip)
	if err != nil {
		err = fmt.Errorf("keep objects: %w", err)
	}
	return err
}

func (r *Repo) keepObjects(ctx context.Context, tip Hash) error {
	if err := tip.check(); err != nil {
		return err
	}
	if err := r.keepPacks(); err != nil {
		return err
	}
	before, err := r.keptAt()
	if err != nil || before == tip {
		return err
	}
	objects, err := r.unkept(ctx, before, tip)
	if err != nil {
		return err
	}
	damaged := &TornError{Head: tip}
	for _, o := range objects {
		err := r.copyLoose(o, r.loose(o), r.keptLoose(o))
		if errors.Is(err, errNotItsName) {
			damaged.Objects = append(damaged.Objects, o)
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) { // packed, or removed by another git
			return err
		}
	}
	if err := r.packKept(ctx); err != nil {
		return err
	}
	if err := r.setKeptTip(tip); err != nil || len(damaged.Objects) == 0 {
		return err
	}
	return damaged
}

func (r *Repo) setKeptTip(tip Hash) error {
	fresh := r.kept("new-" + rand.Text())
	err := os.MkdirAll(r.kept(), 0o755) //nolint:forbidigo // a folder of git's own
	if err == nil {
		err = os.WriteFile(fresh, []byte(string(tip)+"\n"), 0o644) //nolint:forbidigo // a file of git's own, which may be lost
	}
	if err == nil {
		err = os.Rename(fresh, r.kept(keptTip)) //nolint:forbidigo // as above
	}
	return err
}

// unkept lists the objects that tip reaches and before does not, or all loose objects if there is no before or its history can't be walked.
func (r *Repo) unkept(ctx context.Context, before, tip Hash) ([]Hash, error) {
	if before != "" {
		if objects, err := r.reached(ctx, tip, []Hash{before}); err == nil || ctx.Err() != nil {
			return objects, err
		}
	}
	return looseIn(r.objectsFolder())
}

// looseIn lists the loose objects of a folder of objects.
func looseIn(folder string) (all []Hash, err error) {
	entries, err := readFolder(folder)
	for _, e := range entries {
		if len(e.Name()) != 2 || err != nil {
			continue
		}
		var files []fs.DirEntry
		files, err = readFolder(filepath.Join(folder, e.Name()))
		for _, f := range files {
			if o := Hash(e.Name() + f.Name()); o.check() == nil {
				all = append(all, o)
			}
		}
	}
	return all, err
}

// readFolder is os.ReadDir, but lists nothing for a path that is missing or not a folder.
func readFolder(path string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil, nil
	}
	return entries, err
}

func (r *Repo) objectsFolder(names ...string) string {
	return filepath.Join(append([]string{r.common, "objects"}, names...)...)
}

func (r *Repo) kept(names ...string) string {
	return filepath.Join(append([]string{r.common, keptName}, names...)...)
}

func (r *Repo) keptLoose(o Hash) string { return r.kept(string(o[:2]), string(o[2:])) }

// keptAt returns the commit whose objects are kept, or "".
func (r *Repo) keptAt() (Hash, error) {
	text, err := gitfile.ReadLine(r.kept(keptTip))
	h, notHash := ParseHash(text)
	if notHash != nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return "", nil //nolint:nilerr // everything is kept again
	}
	return h, err
}

// keepPacks keeps all packs, as hard links.
func (r *Repo) keepPacks() error {
	packs, err := readFolder(r.objectsFolder("pack"))
	for _, p := range packs {
		if strings.HasPrefix(p.Name(), "pack-") && slices.Contains([]string{".pack", ".idx", ".promisor"}, filepath.Ext(p.Name())) {
			err = errors.Join(err, linkFile(r.objectsFolder("pack", p.Name()), r.kept("pack", p.Name())))
		}
	}
	return err
}

// linkFile makes a hard link, unless the name is taken, the file is gone, or the file system can't.
func linkFile(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	err := os.MkdirAll(filepath.Dir(to), 0o755) //nolint:forbidigo // a folder of git's own
	if err == nil {
		err = os.Link(from, to) //nolint:forbidigo // a file of git's own
	}
	for _, expected := range []error{fs.ErrExist, fs.ErrNotExist, unix.EXDEV, unix.EPERM, unix.ENOTSUP, unix.EMLINK} {
		if errors.Is(err, expected) {
			return nil
		}
	}
	return err
}

// copyLoose copies a loose object, unless the copy exists. Errors: errNotItsName for a damaged object.
func (r *Repo) copyLoose(o Hash, from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:forbidigo // a folder of git's own
		return err
	}
	c, err := copyObject(o, from, to)
	if err != nil {
		return err
	}
	return os.Rename(c.temp, c.path) //nolint:forbidigo // a file of git's own
}

// packKept packs the kept loose objects if there are more than maxKept.
func (r *Repo) packKept(ctx context.Context) error {
	objects, err := looseIn(r.kept())
	if err != nil || len(objects) <= maxKept {
		return err
	}
	if err := os.MkdirAll(r.objectsFolder("pack"), 0o755); err != nil { //nolint:forbidigo // as git makes it
		return err
	}
	var names strings.Builder
	for _, o := range objects {
		names.WriteString(string(o) + "\n")
	}
	// git reads the copies, because a worker may be changing the originals.
	out, err := r.Run(ctx, Command{Args: []string{"pack-objects", "-q", "--incremental", "--non-empty", r.kept("new")}, Stdin: []byte(names.String()),
		Config: []string{"pack.writeReverseIndex=false"}, Env: []string{"GIT_OBJECT_DIRECTORY=" + r.kept()}})
	if err != nil {
		return err
	}
	if name := line(out); name != "" { // "" if all are in packs already
		for _, ext := range []string{".pack", ".idx"} {
			fresh := r.kept("new-" + name + ext)
			err := os.Link(fresh, r.objectsFolder("pack", "pack-"+name+ext)) //nolint:forbidigo // a file of git's own, which has synced it
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			if err := os.Rename(fresh, r.kept("pack", "pack-"+name+ext)); err != nil { //nolint:forbidigo // as above
				return err
			}
		}
	}
	return r.dropKept(objects, nil)
}

// dropKept removes kept loose objects and pack files.
func (r *Repo) dropKept(loose []Hash, packs []string) (err error) {
	for _, o := range loose {
		err = errors.Join(err, gitfile.Remove(r.keptLoose(o)))
	}
	for _, name := range packs {
		err = errors.Join(err, gitfile.Remove(r.kept("pack", name)))
	}
	return err
}

// RestoreObjects puts kept objects back that were deleted or damaged, and returns the number of objects and pack
// files. It drops copies that are no longer needed, because a person's git has packed or pruned the objects. What it puts back
// is durable after the next Sync.
func (r *Repo) RestoreObjects(ctx context.Context) (back int, err error) {
	if tip, err := r.keptAt(); err != nil || tip == "" {
		return 0, err
	}
	var gone []Hash
	var packs []string
	if err = r.mendFolders(); err == nil {
		gone, err = r.goneLoose()
	}
	if err == nil {
		packs, err = r.gonePacks()
	}
	if err == nil && len(gone)+len(packs) > 0 {
		r.Close() // a coprocess can still read a deleted pack that it has open
		back, err = r.putBack(ctx, gone, packs)
		r.Close()
	}
	if err != nil {
		err = fmt.Errorf("restore objects: %w", err)
	}
	return back, err
}

// mendFolders makes the folders of the object store accessible, and removes files that stand in their place.
func (r *Repo) mendFolders() error {
	err := allow(r.objectsFolder(), 0o700)
	entries, readErr := os.ReadDir(r.objectsFolder())
	failed := []error{err, readErr}
	for _, e := range entries {
		path := r.objectsFolder(e.Name())
		switch {
		case len(e.Name()) != 2 && e.Name() != "pack":
		case e.IsDir():
			failed = append(failed, allow(path, 0o700))
		default:
			failed = append(failed, gitfile.Remove(path))
		}
	}
	return errors.Join(failed...)
}

// allow adds mode to a file's permissions.
func allow(path string, mode fs.FileMode) error {
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&mode != mode && info.Mode()&fs.ModeSymlink == 0 {
		err = os.Chmod(path, info.Mode().Perm()|mode)
	}
	return err
}

// goneLoose lists the kept loose objects that are missing or damaged.
func (r *Repo) goneLoose() (gone []Hash, err error) {
	objects, err := looseIn(r.kept())
	for _, o := range objects {
		whole, err := r.asKept(o)
		if err != nil {
			return nil, err
		}
		if !whole {
			gone = append(gone, o)
		}
	}
	return gone, err
}

// asKept reports whether a kept object is whole. One that was changed since it was kept is read, and removed if it is damaged.
func (r *Repo) asKept(o Hash) (bool, error) {
	var now, then unix.Stat_t
	if err := unix.Lstat(r.loose(o), &now); err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			return false, nil
		}
		return false, &fs.PathError{Op: "lstat", Path: r.loose(o), Err: err}
	}
	if err := unix.Lstat(r.keptLoose(o), &then); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return true, nil // another process has dropped it
		}
		return false, &fs.PathError{Op: "lstat", Path: r.keptLoose(o), Err: err}
	}
	if now.Mode&unix.S_IFMT == unix.S_IFREG {
		if now.Size == then.Size && now.Ctim.Nano() < then.Ctim.Nano() {
			return true, nil
		}
		err := allow(r.loose(o), 0o400)
		if err == nil {
			err = r.checkLoose(o)
		}
		if err == nil {
			return true, changeTime(r.keptLoose(o))
		}
	}
	return false, os.RemoveAll(r.loose(o)) //nolint:forbidigo // its content is not that of its name
}

// changeTime sets the ctime of a kept object to now, so that its original need not be read again. No program can fake a ctime.
func changeTime(kept string) error {
	return os.Chmod(kept, 0o444)
}

// gonePacks lists the kept pack files that are missing: packs before their indexes, because git opens a pack when it sees its index.
func (r *Repo) gonePacks() (gone []string, err error) {
	files, err := readFolder(r.kept("pack"))
	for _, f := range slices.Backward(files) {
		if _, err := os.Lstat(r.objectsFolder("pack", f.Name())); errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(f.Name(), "pack-") {
			gone = append(gone, f.Name())
		}
	}
	return gone, err
}

// putBack puts back what the repository needs, and drops the other copies.
func (r *Repo) putBack(ctx context.Context, loose []Hash, packs []string) (back int, err error) {
	loose, err = r.dropPacked(ctx, loose)
	if err != nil || len(loose)+len(packs) == 0 {
		return 0, err
	}
	tip, err := r.keptAt()
	if err != nil {
		return 0, err
	}
	_, missing := r.read(ctx, "rev-list", "--objects", "--quiet", "--all", string(tip), "--")
	if missing == nil { // git has repacked, or pruned unreachable objects
		return 0, r.dropKept(loose, packs)
	}
	if !exited(missing, 1, 128) {
		return 0, missing
	}
	for _, name := range packs {
		if err := linkFile(r.kept("pack", name), r.objectsFolder("pack", name)); err != nil {
			return back, err
		}
		back++
	}
	for _, o := range loose {
		err := r.copyLoose(o, r.keptLoose(o), r.loose(o))
		switch {
		case err == nil:
			err = changeTime(r.keptLoose(o))
			back++
		case errors.Is(err, errNotItsName): // a power cut tore the copy
			err = r.dropKept([]Hash{o}, nil)
		case errors.Is(err, fs.ErrNotExist): // another process has dropped it
			err = nil
		}
		if err != nil {
			return back, err
		}
	}
	return back, nil
}

// dropPacked drops the copies of loose objects that are in packs, and returns the others.
func (r *Repo) dropPacked(ctx context.Context, loose []Hash) (others []Hash, err error) {
	for _, o := range loose {
		_, packed, err := r.info(ctx, string(o))
		if err == nil && packed {
			err = r.dropKept([]Hash{o}, nil)
		} else {
			others = append(others, o)
		}
		if err != nil {
			return nil, err
		}
	}
	return others, nil
}
