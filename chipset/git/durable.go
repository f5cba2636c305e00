package git

import (
	"bufio"
	"compress/zlib"
	"context"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // git's own object names, no secret
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/git/internal/gitfile"
)

// TornError is returned by MakeDurable for objects that are torn or missing. Torn objects are
// removed, because git would take them for present and never write them again. It is an ErrTorn.
type TornError struct {
	// Head is the commit that needs them.
	Head Hash
	// Objects are the torn ones, which were removed; none if only git reported something missing.
	Objects []Hash
	// Cause is why git can't walk the commit's history, mostly a *MissingError, or nil.
	Cause error
}

// ErrTorn is returned when an object that a commit needs can't be read.
var ErrTorn = errors.New("torn by a power cut")

func (e *TornError) Error() string {
	text := fmt.Sprintf("commit %s is not whole", e.Head.Short())
	for i, o := range e.Objects {
		if i == 3 {
			return text + fmt.Sprintf(" and %d more", len(e.Objects)-i)
		}
		text += ", " + o.Short() + " was torn"
	}
	if e.Cause != nil && len(e.Objects) == 0 {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap makes errors.Is(err, ErrTorn) true.
func (e *TornError) Unwrap() error { return ErrTorn }

// MakeDurable makes the content of all objects durable that head reaches and none of have does ("" is skipped), whoever wrote them.
// Sync alone is not enough: a worker's git syncs no loose object, a power cut may leave some torn under their names,
// and after a failed sync the kernel reports lost pages as written. So each loose object is checked against its name and
// written again. Packs are left to git, which syncs them by default. The names are durable after the next Sync.
// Errors: *TornError.
func (r *Repo) MakeDurable(ctx context.Context, head Hash, have ...Hash) error {
	objects, err := r.reached(ctx, head, have)
	if err != nil {
		return r.unfollowed(ctx, head, err)
	}
	torn, err := r.RewriteObjects(ctx, objects)
	if err == nil && len(torn) > 0 {
		err = &TornError{Head: head, Objects: torn}
	}
	return err
}

// RewriteObjects writes the loose objects among objects again, content before names, because after a failed sync
// nobody knows what is on the disk. Torn ones are removed and returned, because git would take
// them for present and never write them again. The names are durable after the next Sync.
func (r *Repo) RewriteObjects(ctx context.Context, objects []Hash) (torn []Hash, err error) {
	var fresh []copied
	defer func() {
		for _, c := range fresh {
			_ = gitfile.Remove(c.temp) // those that were renamed are gone
		}
	}()
	for _, o := range objects {
		c, err := copyObject(o, r.loose(o), r.loose(o))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // in a pack, or in an alternate object store
		case errors.Is(err, errNotItsName):
			torn = append(torn, o)
			err = gitfile.Remove(r.loose(o))
		case err == nil:
			fresh = append(fresh, c)
		}
		if err != nil {
			return torn, fmt.Errorf("rewrite objects: %w", err)
		}
	}
	if len(fresh) > 0 {
		err = r.Sync(ctx)
	}
	for _, c := range fresh {
		if err == nil {
			err = os.Rename(c.temp, c.path) //nolint:forbidigo // a file of git's own, synced just now
		}
	}
	if err != nil {
		return torn, fmt.Errorf("rewrite objects: %w", err)
	}
	return torn, nil
}

// unfollowed returns the error for a head whose history git can't walk. Any torn commit or tree may be the cause, so
// all of them are removed.
func (r *Repo) unfollowed(ctx context.Context, head Hash, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	torn, err := r.RemoveTornObjects()
	return errors.Join(&TornError{Head: head, Objects: torn, Cause: inPlainWords(head, cause)}, err)
}

func (r *Repo) loose(o Hash) string {
	return filepath.Join(r.common, "objects", string(o[:2]), string(o[2:]))
}

// copied is a loose object and its copy.
type copied struct{ temp, path string }

// errNotItsName is returned for a loose object whose content does not match its name.
var errNotItsName = errors.New("the content does not match the name")

// copyObject copies a loose object to a temp file beside path. Its name is of git's kind, so that git removes a leftover.
func copyObject(o Hash, source, path string) (copied, error) {
	if err := o.check(); err != nil {
		return copied{}, err
	}
	c := copied{path: path}
	from, err := openObject(source)
	if err != nil {
		return copied{}, err
	}
	defer from.Close()
	to, err := os.CreateTemp(filepath.Dir(c.path), "tmp_obj_") //nolint:forbidigo // a file of git's own, below no state tree
	if err != nil {
		return copied{}, err
	}
	c.temp = to.Name()
	both := io.TeeReader(from, to)
	err = checkObject(both, o)
	if err == nil {
		_, err = io.Copy(io.Discard, both)
	}
	if err == nil {
		err = to.Chmod(0o444)
	}
	if closeErr := to.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return copied{}, errors.Join(err, gitfile.Remove(c.temp))
	}
	return c, nil
}

// checkObject checks a loose object against its name. Errors: errNotItsName, and those of reading.
func checkObject(from io.Reader, o Hash) error {
	sum := sha1.New() //nolint:gosec // git's own object names, no secret
	if len(o) == hex.EncodedLen(sha256.Size) {
		sum = sha256.New()
	}
	in := &heard{Reader: from}
	z, err := zlib.NewReader(bufio.NewReader(in))
	if err == nil {
		_, err = io.Copy(sum, z)
	}
	if in.err != nil {
		return in.err
	}
	if err != nil || hex.EncodeToString(sum.Sum(nil)) != string(o) {
		return fmt.Errorf("%s: %w", o, errNotItsName)
	}
	return nil
}

// heard remembers a read error, which would otherwise look like torn content.
type heard struct {
	io.Reader
	err error
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		h.err = err
	}
	return n, err
}

// Unreadable returns the objects that are missing, or loose and torn. Packs are trusted: git checks them
// when it writes them.
func (r *Repo) Unreadable(ctx context.Context, objects []Hash) ([]Hash, error) {
	var bad []Hash
	for _, o := range objects {
		err := r.checkLoose(o)
		if errors.Is(err, fs.ErrNotExist) {
			var found bool
			if _, found, err = r.info(ctx, string(o)); err == nil && !found {
				err = errNotItsName
			}
		}
		if errors.Is(err, errNotItsName) {
			bad = append(bad, o)
		} else if err != nil {
			return nil, err
		}
	}
	return bad, nil
}

func (r *Repo) checkLoose(o Hash) error {
	if err := o.check(); err != nil {
		return err
	}
	f, err := openObject(r.loose(o))
	if err != nil {
		return err
	}
	defer f.Close()
	return checkObject(f, o)
}

// openObject opens a loose object. Anything but a regular file, such as a pipe, which would wait for a writer, is an errNotItsName.
func openObject(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0) //nolint:forbidigo // it is only read
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		return nil, fmt.Errorf("%s: %w", path, errNotItsName)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", path, errNotItsName)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// RemoveTornObjects removes every torn loose object and returns their names. It reads all loose objects.
func (r *Repo) RemoveTornObjects() ([]Hash, error) {
	var torn []Hash
	err := filepath.WalkDir(filepath.Join(r.common, "objects"), func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another git tidies up
		}
		if err != nil {
			return err
		}
		o := Hash(filepath.Base(filepath.Dir(path)) + e.Name())
		if !e.Type().IsRegular() || o.check() != nil {
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := checkObject(f, o); !errors.Is(err, errNotItsName) {
			return err
		}
		torn = append(torn, o)
		return gitfile.Remove(path)
	})
	return torn, err
}

// StoreFiles writes missing objects again as far as the worktree still holds their content: the files in its index, and the
// trees above them. Errors: ErrNotWorktree.
func (w *Worktree) StoreFiles(ctx context.Context) (err error) {
	p, err := w.ours()
	if err != nil {
		return err
	}
	staged, err := w.repo.run(ctx, p, Command{Args: []string{"ls-files", "--stage", "-z", "--full-name"}, Read: true})
	if err != nil {
		return err
	}
	var there strings.Builder
	for _, record := range fields(staged) {
		_, path, _ := strings.Cut(record, "\t")
		if info, err := os.Lstat(filepath.Join(w.path, path)); err == nil && info.Mode().IsRegular() {
			there.WriteString(path + "\x00")
		}
	}
	// A new index remembers nothing, so it stores every file and every folder.
	s := &scratch{w: w, p: p, file: filepath.Join(p.gitDir, "chipset-rewrite-"+rand.Text())}
	defer func() { err = errors.Join(err, s.remove()) }()
	if _, err := s.run(ctx, there.String(), "update-index", "--add", "-z", "--stdin"); err != nil {
		return err
	}
	if _, err := s.run(ctx, string(staged), "update-index", "-z", "--index-info"); err != nil {
		return err
	}
	_, err = s.run(ctx, "", "write-tree", "--missing-ok")
	return err
}
