package git

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// spoil puts other content under the name of a loose object, as a power cut does.
func (f *fixture) spoil(o Hash, content func(whole []byte) []byte) {
	f.Helper()
	path := f.loose(o)
	whole, err := os.ReadFile(path)
	f.must(err)
	f.must(os.Remove(path))
	f.must(os.WriteFile(path, content(whole), 0o444))
}

func TestMakeDurableWritesAnewWhatItMakesDurable(t *testing.T) {
	f := newFixture(t)
	first := f.head(f.TopLevel())
	second := f.commit(f.TopLevel(), map[string]string{"dir/new": "new"})
	before := map[Hash]os.FileInfo{}
	objects, err := f.reached(f.ctx, second, []Hash{first})
	f.must(err)
	if len(objects) < 4 { // commit, two trees, blob
		t.Fatalf("reached %v", objects)
	}
	for _, o := range objects {
		before[o], err = os.Lstat(f.loose(o))
		f.must(err)
	}
	f.must(f.MakeDurable(f.ctx, second, first))
	for _, o := range objects {
		now, err := os.Lstat(f.loose(o))
		f.must(err)
		if os.SameFile(before[o], now) || now.Size() != before[o].Size() || now.Mode() != before[o].Mode() {
			t.Errorf("%s: was not written anew: %v", o, now)
		}
	}
	f.git(f.TopLevel(), "fsck", "--strict")
	if left, err := filepath.Glob(filepath.Join(f.common, "objects", "*", "tmp_obj_*")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	f.git(f.TopLevel(), "gc", "-q")
	f.must(f.MakeDurable(f.ctx, second, first)) // what is in packs is git's own care
}

func TestMakeDurableNamesWhatIsTornAndStoreFilesStoresItAgain(t *testing.T) {
	spoils := map[string]func([]byte) []byte{
		"empty": func([]byte) []byte { return nil },
		"zeros": func(b []byte) []byte { return make([]byte, len(b)) },
		"half":  func(b []byte) []byte { return b[:len(b)/2] },
		"of another": func([]byte) []byte {
			return []byte("\x78\x01\x4b\xca\xc9\x4f\x52\x30\x60\x00\x00\x09\xb0\x01\xf0") // "blob 0\0"
		},
	}
	for name, spoil := range spoils {
		for _, what := range []string{"HEAD:dir/new", "HEAD:dir", "HEAD^{tree}"} {
			t.Run(name+" "+what, func(t *testing.T) {
				f := newFixture(t)
				w := f.prepared()
				base := f.head(w.Path())
				head := f.commit(w.Path(), map[string]string{"dir/new": "new"})
				torn := Hash(f.git(w.Path(), "rev-parse", what))
				f.spoil(torn, spoil)
				err := f.MakeDurable(f.ctx, head, base)
				var e *TornError
				if !errors.As(err, &e) || !errors.Is(err, ErrTorn) || !slices.Contains(e.Objects, torn) {
					t.Fatalf("MakeDurable: %v, expected it to name %s", err, torn)
				}
				f.must(w.StoreFiles(f.ctx))
				f.must(f.MakeDurable(f.ctx, head, base))
				f.git(w.Path(), "fsck", "--strict")
			})
		}
	}
}

// A folder is stored again with what the worker has deleted from it since.
func TestStoreFilesOfAFolderWithoutAFile(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	base := f.head(w.Path())
	head := f.commit(w.Path(), map[string]string{"dir/kept": "kept", "dir/gone": "gone"})
	f.must(os.Remove(filepath.Join(w.Path(), "dir", "gone")))
	f.spoil(Hash(f.git(w.Path(), "rev-parse", "HEAD:dir")), func([]byte) []byte { return nil })
	f.wantErr(f.MakeDurable(f.ctx, head, base), ErrTorn)
	f.must(w.StoreFiles(f.ctx))
	f.must(f.MakeDurable(f.ctx, head, base))
	f.git(w.Path(), "fsck", "--strict")
	if left, _ := filepath.Glob(filepath.Join(f.admin(w), "chipset-*")); left != nil {
		t.Errorf("left %q", left)
	}
}

// A disk that fails is no torn object: what can't be read is not taken for damaged, and so not removed.
func TestReadErrorIsNotDamage(t *testing.T) {
	f := newFixture(t)
	whole, err := os.ReadFile(f.loose(f.head(f.TopLevel())))
	f.must(err)
	failing := io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), iotest.ErrReader(os.ErrDeadlineExceeded))
	if err := checkObject(failing, f.head(f.TopLevel())); !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errNotItsName) {
		t.Errorf("%v", err)
	}
}

func TestUnreadable(t *testing.T) {
	f := newFixture(t)
	packed := f.head(f.TopLevel())
	f.git(f.TopLevel(), "gc", "-q")
	loose := f.commit(f.TopLevel(), map[string]string{"b": "b"})
	torn := f.commit(f.TopLevel(), map[string]string{"c": "c"})
	f.spoil(torn, func(whole []byte) []byte { return whole[:len(whole)/2] })
	missing := Hash(strings.Repeat("1", 40))
	if bad, err := f.Unreadable(f.ctx, []Hash{packed, loose, torn, missing}); err != nil || !slices.Equal(bad, []Hash{torn, missing}) {
		t.Errorf("%v, %v", bad, err)
	}
}

func TestMakeDurableOfWhatIsLostStaysTorn(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	base := f.head(w.Path())
	f.commit(w.Path(), map[string]string{"new": "first"})
	torn := Hash(f.git(w.Path(), "rev-parse", "HEAD:new"))
	head := f.commit(w.Path(), map[string]string{"new": "second"})
	f.spoil(torn, func([]byte) []byte { return nil })
	f.wantErr(f.MakeDurable(f.ctx, head, base), ErrTorn)
	f.must(w.StoreFiles(f.ctx))
	err := f.MakeDurable(f.ctx, head, base) // the older version is nowhere any more
	f.wantErr(err, ErrTorn)
	if !strings.Contains(err.Error(), "the object "+torn.Short()+", which "+head.Short()+" reaches, is missing") {
		t.Errorf("not in plain words: %v", err)
	}
}

// An error names a few of the torn objects and counts the others.
func TestTornErrorNamesAFew(t *testing.T) {
	var all []Hash
	for _, digit := range []string{"1", "2", "3", "4", "5"} {
		all = append(all, Hash(strings.Repeat(digit, 40)))
	}
	text := (&TornError{Head: all[0], Objects: all}).Error()
	if !strings.Contains(text, all[2].Short()+" was torn and 2 more") || strings.Contains(text, all[3].Short()) {
		t.Error(text)
	}
	if text := (&TornError{Head: all[0], Objects: all[:3]}).Error(); !strings.HasSuffix(text, all[2].Short()+" was torn") {
		t.Error(text)
	}
}
