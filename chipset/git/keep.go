package git

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/git/internal/gitfile"
)

const (
	// keptName is the folder of git's common folder with what KeepObjects keeps: loose objects, and packs, as they lie below objects.
	keptName = "chipset-kept"
	// keptTip is the file in it that names the commit whose objects are kept.
	keptTip = "tip"
	// maxCopied bounds the files that are copied, in bytes. Larger ones are linked: a link outlives the deletion of the original, and
	// not that it is overwritten.
	maxCopied = 1 << 20
)

// KeepObjects keeps a second copy of every object that tip reaches, where the sandbox lets no worker write: who commits into a
// repository can delete its objects. Another tip adds what it reaches beyond the last one; one that does not descend from that begins anew.
// Nothing of it is durable.
func (r *Repo) KeepObjects(ctx context.Context, tip Hash) error {
	err := r.keepObjects(ctx, tip)
	if err != nil {
		err = fmt.Errorf("keep objects: %w", err)
	}
	return err
}

func (r *Repo) keepObjects(ctx context.Context, tip Hash) error {
	if err := r.keepPacks(); err != nil {
		return err
	}
	before, err := r.keptAt()
	if err != nil || before == tip {
		return err
	}
	if before != "" {
		descends, err := r.IsAncestor(ctx, before, tip)
		if err != nil {
			return err
		}
		if !descends {
			if back, err := r.RestoreObjects(ctx); err != nil || back > 0 {
				return errors.Join(err, fmt.Errorf("%d objects were gone", back)) // they are looked at again before the copies go
			}
			if err := os.RemoveAll(r.kept()); err != nil { //nolint:forbidigo // copies of git's own files
				return err
			}
			return r.keepObjects(ctx, tip)
		}
	}
	objects, err := r.unkept(ctx, before, tip)
	for _, o := range objects {
		if err == nil {
			err = keepFile(r.loose(o), r.kept(string(o[:2]), string(o[2:])))
		}
	}
	if err != nil {
		return err
	}
	return r.setKeptTip(tip)
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

// unkept lists what tip reaches and before does not; without before, what of it is in no pack.
func (r *Repo) unkept(ctx context.Context, before, tip Hash) (objects []Hash, err error) {
	if before != "" {
		return r.reached(ctx, tip, []Hash{before})
	}
	out, err := r.read(ctx, "rev-list", "--objects", "--no-object-names", "--unpacked", string(tip), "--")
	for text := range strings.Lines(string(out)) {
		objects = append(objects, Hash(strings.TrimSpace(text)))
	}
	return objects, err
}

func (r *Repo) kept(names ...string) string {
	return filepath.Join(append([]string{r.common, keptName}, names...)...)
}

// keptAt is the commit whose objects are kept, "" for none.
func (r *Repo) keptAt() (Hash, error) {
	text, err := gitfile.ReadLine(r.kept(keptTip))
	h, notHash := ParseHash(text)
	if notHash != nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return "", nil //nolint:nilerr // it is kept anew
	}
	return h, err
}

// keepPacks keeps the packs that are there.
func (r *Repo) keepPacks() error {
	packs, err := os.ReadDir(filepath.Join(r.common, "objects", "pack"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var failed []error
	for _, p := range packs {
		if strings.HasPrefix(p.Name(), "pack-") && slices.Contains([]string{".pack", ".idx", ".promisor"}, filepath.Ext(p.Name())) {
			failed = append(failed, keepFile(filepath.Join(r.common, "objects", "pack", p.Name()), r.kept("pack", p.Name())))
		}
	}
	return errors.Join(failed...)
}

// keepFile makes kept a second file with the content of path, unless it is there, or path is gone meanwhile.
func keepFile(path, kept string) error {
	info, err := os.Lstat(path)
	if _, known := os.Lstat(kept); known == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(kept), 0o755) //nolint:forbidigo // a folder of git's own
	}
	if err != nil {
		return err
	}
	if info.Size() > maxCopied {
		err = os.Link(path, kept) //nolint:forbidigo // a file of git's own
	} else {
		err = copyFile(path, kept)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		return nil // tidied away meanwhile, or kept by another process
	}
	return err
}

// copyFile makes a file with the content of another one, whole or not at all.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(to), "tmp_obj_") //nolint:forbidigo // a file of git's own
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gitfile.Remove(out.Name())) }()
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Chmod(0o444)
	}
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(out.Name(), to) //nolint:forbidigo // a file of git's own
}

// RestoreObjects puts back what was deleted or damaged of what KeepObjects has kept, and returns how many objects and files of
// packs that were. What a person's git has packed meanwhile, or what its tidying replaced, is kept no longer. Without anything kept it
// does nothing. What is back is durable after the next Sync.
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
		r.Close() // an open pack is there for whoever has opened it
		back, err = r.putBack(ctx, gone, packs)
	}
	if err != nil {
		err = fmt.Errorf("restore objects: %w", err)
	}
	return back, err
}

// mendFolders makes the folders of the object store accessible, and removes files in their place.
func (r *Repo) mendFolders() error {
	root := filepath.Join(r.common, "objects")
	err := allow(root, 0o700)
	entries, readErr := os.ReadDir(root)
	failed := []error{err, readErr}
	for _, e := range entries {
		path := filepath.Join(root, e.Name())
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

// allow adds what is missing of a file's mode.
func allow(path string, mode fs.FileMode) error {
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&mode != mode && info.Mode()&fs.ModeSymlink == 0 {
		err = os.Chmod(path, info.Mode().Perm()|mode)
	}
	return err
}

// goneLoose lists the loose objects that are kept and not there as they were.
func (r *Repo) goneLoose() (gone []Hash, err error) {
	folders, err := os.ReadDir(r.kept())
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		if len(folder.Name()) != 2 {
			continue
		}
		files, err := os.ReadDir(r.kept(folder.Name()))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			o := Hash(folder.Name() + f.Name())
			if o.check() != nil {
				continue
			}
			whole, err := r.asKept(o)
			if err != nil {
				return nil, err
			}
			if !whole {
				gone = append(gone, o)
			}
		}
	}
	return gone, nil
}

// asKept reports whether a kept object is there. One that was changed since is read, and removed when it is not whole.
func (r *Repo) asKept(o Hash) (bool, error) {
	kept := r.kept(string(o[:2]), string(o[2:]))
	var now, then unix.Stat_t
	if err := unix.Lstat(r.loose(o), &now); err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			return false, nil
		}
		return false, &fs.PathError{Op: "lstat", Path: r.loose(o), Err: err}
	}
	if err := unix.Lstat(kept, &then); err != nil {
		return false, &fs.PathError{Op: "lstat", Path: kept, Err: err}
	}
	if now.Ino == then.Ino || now.Size == then.Size && now.Ctim.Nano() < then.Ctim.Nano() {
		return true, nil
	}
	err := allow(r.loose(o), 0o400)
	if err == nil {
		err = r.checkLoose(o)
	}
	if err == nil {
		return true, changeTime(kept)
	}
	return false, os.RemoveAll(r.loose(o)) //nolint:forbidigo // it is not what it is called
}

// changeTime makes the change of a kept object the latest one, so that its original need not be read again. No program sets that time.
func changeTime(kept string) error {
	return os.Chmod(kept, 0o444)
}

// gonePacks lists the files of packs that are kept and not there.
func (r *Repo) gonePacks() (gone []string, err error) {
	files, err := os.ReadDir(r.kept("pack"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(r.common, "objects", "pack", f.Name())); errors.Is(err, fs.ErrNotExist) {
			gone = append(gone, f.Name())
		}
	}
	return gone, err
}

// putBack puts back what nothing else stands for, and forgets what is not needed any more.
func (r *Repo) putBack(ctx context.Context, loose []Hash, packs []string) (back int, err error) {
	if err := os.MkdirAll(filepath.Join(r.common, "objects", "pack"), 0o755); err != nil { //nolint:forbidigo // as git makes it
		return 0, err
	}
	if len(packs) > 0 {
		if back, err = r.putBackPacks(ctx, packs); err != nil {
			return back, err
		}
	}
	for _, o := range loose {
		kept := r.kept(string(o[:2]), string(o[2:]))
		_, packed, err := r.info(ctx, string(o))
		switch {
		case err != nil:
		case packed || fileIs(kept, o) != nil:
			err = gitfile.Remove(kept)
		default:
			err = errors.Join(os.MkdirAll(filepath.Dir(r.loose(o)), 0o755), copyFile(kept, r.loose(o)), changeTime(kept)) //nolint:forbidigo // as git makes it
			back++
		}
		if err != nil {
			return back, err
		}
	}
	return back, nil
}

// putBackPacks puts packs back unless others hold what they did: then git has packed anew.
func (r *Repo) putBackPacks(ctx context.Context, packs []string) (back int, err error) {
	tip, err := r.keptAt()
	if err != nil {
		return 0, err
	}
	_, missing := r.read(ctx, "rev-list", "--objects", "--quiet", string(tip), "--")
	if missing != nil && !exited(missing, 128) {
		return 0, missing
	}
	for _, name := range packs {
		if missing == nil { // others hold what these did
			err = errors.Join(err, gitfile.Remove(r.kept("pack", name)))
			continue
		}
		err = errors.Join(err, keepFile(r.kept("pack", name), filepath.Join(r.common, "objects", "pack", name)))
		back++
	}
	r.Close()
	return back, err
}

// fileIs holds a file against the name of the loose object that it is a copy of.
func fileIs(path string, o Hash) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return checkObject(f, o)
}
