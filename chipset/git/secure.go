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
	"slices"
	"strings"
	"time"
)

// TornError is returned by Secure for objects that a power cut tore, or that are not there. Those that were torn are
// removed, because git takes them for there and would write them never again. It is an ErrTorn.
type TornError struct {
	// Head is the commit that needs them.
	Head Hash
	// Objects are those that were removed; none when git alone said that something is missing.
	Objects []Hash
	// Cause is git's own word, or nil.
	Cause error
}

// ErrTorn is returned when what a commit needs can't be read.
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

// Secure makes what head reaches and have does not durable, but for refs, whoever wrote it. Sync alone is not
// enough for that: the git of a worker syncs no loose object, a power cut leaves some of them torn under their names,
// and once a sync has failed the kernel calls written what is lost. So each loose object is held against its name and
// written anew, content before names. Packs are git's own care: it syncs them unless told not to. Errors: *TornError.
func (r *Repo) Secure(ctx context.Context, head Hash, have ...Hash) error {
	objects, err := r.reached(ctx, head, have)
	if err != nil {
		return r.unfollowed(ctx, head, err)
	}
	fresh, torn, err := r.copyAll(objects, false)
	defer discard(fresh)
	if err != nil {
		return fmt.Errorf("secure %s: %w", head.Short(), err)
	}
	if len(torn) > 0 {
		return &TornError{Head: head, Objects: torn}
	}
	if len(fresh) == 0 {
		return nil
	}
	return r.replaceAll(ctx, fresh)
}

// Renew makes ready for what git is going to store: of the objects that lie there loose, torn ones are removed and
// returned, because git takes them for there and would write them never again; whole ones are written anew, content
// before names, because once a sync has failed nobody can tell what of them is on the disk. The names are
// durable after the next Sync.
func (r *Repo) Renew(ctx context.Context, objects []Hash) (torn []Hash, err error) {
	fresh, torn, err := r.copyAll(objects, true)
	defer discard(fresh)
	if err == nil {
		err = ctx.Err()
	}
	for _, c := range fresh {
		if err == nil {
			err = os.Rename(c.temp, c.path) //nolint:forbidigo // a file of git's own, synced just now
		}
	}
	if err != nil {
		return torn, fmt.Errorf("renew objects: %w", err)
	}
	return torn, nil
}

// RenewRest is Renew of what head reaches, but for what have does and for the known. Errors: *TornError when
// some of it was torn or is not there. What was torn is removed, so that git can store it again.
func (r *Repo) RenewRest(ctx context.Context, head, have Hash, known []Hash) error {
	var without []Hash
	if have != "" {
		without = append(without, have)
	}
	objects, err := r.reached(ctx, head, without)
	if err != nil {
		return r.unfollowed(ctx, head, err)
	}
	sure := make(map[Hash]bool, len(known))
	for _, o := range known {
		sure[o] = true
	}
	rest := slices.DeleteFunc(objects, func(o Hash) bool { return sure[o] })
	torn, err := r.Renew(ctx, rest)
	if err == nil && len(torn) > 0 {
		err = &TornError{Head: head, Objects: torn}
	}
	return err
}

// unfollowed is the error of a head that git can't follow to the end. Any torn commit or tree may be why, so
// all of them are removed.
func (r *Repo) unfollowed(ctx context.Context, head Hash, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	torn, err := r.DropTorn()
	return errors.Join(&TornError{Head: head, Objects: torn, Cause: cause}, err)
}

// copyAll copies those of the objects that lie there loose and are whole, and removes those that are torn. The
// copies are the caller's also beside an error; sync makes the content of each durable.
func (r *Repo) copyAll(objects []Hash, sync bool) (fresh []copied, torn []Hash, err error) {
	for _, o := range objects {
		c, err := r.copyObject(o, sync)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // in a pack, or of a repository that this one borrows from
		case errors.Is(err, errNotItsName):
			torn = append(torn, o)
			err = removeGitFile(r.loose(o))
		case err == nil:
			fresh = append(fresh, c)
		}
		if err != nil {
			return fresh, torn, err
		}
	}
	return fresh, torn, nil
}

// discard removes copies that did not get their names.
func discard(fresh []copied) {
	for _, c := range fresh {
		_ = removeGitFile(c.temp) // those that got their names are not there any more
	}
}

// replaceAll puts copies in the place of their originals, once they are durable.
func (r *Repo) replaceAll(ctx context.Context, fresh []copied) error {
	if err := r.Sync(ctx); err != nil {
		return err
	}
	for _, c := range fresh {
		if err := os.Rename(c.temp, c.path); err != nil { //nolint:forbidigo // a file of git's own, synced just now
			return err
		}
	}
	return nil
}

func (r *Repo) loose(o Hash) string {
	return filepath.Join(r.common, "objects", string(o[:2]), string(o[2:]))
}

// copied is a loose object and its copy.
type copied struct{ temp, path string }

// errNotItsName is returned for a loose object whose content is not what its name says.
var errNotItsName = errors.New("the content does not match the name")

// copyObject copies a loose object to a temp file of git's kind, which git itself clears away when it is left.
func (r *Repo) copyObject(o Hash, sync bool) (copied, error) {
	if err := o.check(); err != nil {
		return copied{}, err
	}
	c := copied{path: r.loose(o)}
	from, err := os.Open(c.path)
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
	if err == nil && sync {
		err = to.Sync()
	}
	if closeErr := to.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return copied{}, errors.Join(err, removeGitFile(c.temp))
	}
	return c, nil
}

// checkObject holds a loose object against its name. Errors: errNotItsName, and those of reading.
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

// heard remembers an error of reading, which would look like torn content.
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

// Unreadable returns those of the objects that are not there, or not whole where they lie loose. Packs git checks as
// it makes them, and they are believed.
func (r *Repo) Unreadable(ctx context.Context, objects []Hash) ([]Hash, error) {
	var bad, elsewhere []Hash
	for _, o := range objects {
		err := r.checkLoose(o)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			elsewhere = append(elsewhere, o)
		case errors.Is(err, errNotItsName):
			bad = append(bad, o)
		case err != nil:
			return nil, err
		}
	}
	if len(elsewhere) == 0 {
		return bad, nil
	}
	var in strings.Builder
	for _, o := range elsewhere {
		in.WriteString(string(o) + "\n")
	}
	out, err := r.run(ctx, r.plain(), Command{Args: []string{"cat-file", "--batch-check", "--buffer"}, Stdin: []byte(in.String()), Read: true})
	for l := range strings.Lines(string(out)) {
		if name, missing := strings.CutSuffix(l, " missing\n"); missing {
			bad = append(bad, Hash(name))
		}
	}
	return bad, err
}

func (r *Repo) checkLoose(o Hash) error {
	if err := o.check(); err != nil {
		return err
	}
	f, err := os.Open(r.loose(o))
	if err != nil {
		return err
	}
	defer f.Close()
	return checkObject(f, o)
}

// DropTorn removes every loose object that is torn, and names them. It reads all of them.
func (r *Repo) DropTorn() ([]Hash, error) {
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
		return removeGitFile(path)
	})
	return torn, err
}

// keepMark is what fast-import writes into the file that keeps a pack of its own from being repacked while no ref
// holds it yet (keep_pack in git's builtin/fast-import.c).
const keepMark = "fast-import"

// DropKeeps removes the files that a fast-import which was killed left so at least age ago, and counts them. They
// keep their packs from being repacked for good, and the same pack from being written again. What a person keeps stays.
func (r *Repo) DropKeeps(now time.Time, age time.Duration) (int, error) {
	folder := filepath.Join(r.common, "objects", "pack")
	entries, err := os.ReadDir(folder)
	n := 0
	for _, e := range entries {
		pack, isKeep := strings.CutSuffix(e.Name(), ".keep")
		info, infoErr := e.Info()
		if !isKeep || infoErr != nil || !info.Mode().IsRegular() || info.Size() > int64(len(keepMark)) || now.Sub(info.ModTime()) < age {
			continue
		}
		path := filepath.Join(folder, e.Name())
		data, readErr := os.ReadFile(path)
		text := strings.Trim(string(data), "\x00") // a power cut leaves any part of it
		if readErr != nil || !strings.HasPrefix(keepMark, text) {
			continue
		}
		if _, statErr := os.Lstat(filepath.Join(folder, pack+".pack")); text == "" && statErr == nil {
			continue // an empty one is how a person keeps a pack
		}
		if err := removeGitFile(path); err != nil {
			return n, err
		}
		n++
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return n, err
}

// rewriteAtOnce is how many files one git stores.
const rewriteAtOnce = 256

// Rewrite stores again what the worktree still holds of objects that are missing: the files of its index, and the
// folders above them. Errors: ErrNotWorktree.
func (w *Worktree) Rewrite(ctx context.Context) error {
	p, err := w.ours()
	if err != nil {
		return err
	}
	entries, _, err := w.indexEntries(ctx, p)
	if err != nil {
		return err
	}
	missing, err := w.repo.missing(ctx, entries)
	if err != nil {
		return err
	}
	var names []string
	for name, e := range entries {
		info, err := os.Lstat(filepath.Join(w.path, name))
		if err == nil && info.Mode().IsRegular() && missing[e.hash] {
			names = append(names, name)
		}
	}
	for batch := range slices.Chunk(names, rewriteAtOnce) {
		args := append([]string{"hash-object", "-w", "--"}, batch...)
		if _, err := w.repo.run(ctx, p, Command{Args: args}); err != nil {
			return err
		}
	}
	return w.rewriteTrees(ctx, p)
}

// rewriteTrees stores the folders of the index by way of a new one: the index itself remembers those that it has
// stored, and would not look into one that is there for one that is missing.
func (w *Worktree) rewriteTrees(ctx context.Context, p place) (err error) {
	staged, err := w.repo.run(ctx, p, Command{Args: []string{"ls-files", "--stage", "-z", "--full-name"}, Read: true})
	if err != nil {
		return err
	}
	s := &scratch{w: w, p: p, file: filepath.Join(p.gitDir, "chipset-rewrite-"+rand.Text())}
	defer func() { err = errors.Join(err, s.remove()) }()
	if _, err := s.run(ctx, string(staged), "update-index", "-z", "--index-info"); err != nil {
		return err
	}
	_, err = s.run(ctx, "", "write-tree", "--missing-ok")
	return err
}

// missing tells which objects of an index are not there.
func (r *Repo) missing(ctx context.Context, entries map[string]entry) (map[Hash]bool, error) {
	var ask strings.Builder
	for _, e := range entries {
		ask.WriteString(string(e.hash) + "\n")
	}
	missing := map[Hash]bool{}
	if ask.Len() == 0 {
		return missing, nil
	}
	out, err := r.run(ctx, r.plain(), Command{Args: []string{"cat-file", "--batch-check=%(objectname)"}, Stdin: []byte(ask.String()), Read: true})
	if err != nil {
		return nil, err
	}
	for text := range strings.Lines(string(out)) {
		if name, found := strings.CutSuffix(strings.TrimSpace(text), " missing"); found {
			missing[Hash(name)] = true
		}
	}
	return missing, nil
}
