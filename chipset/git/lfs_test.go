package git

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What a worker's git LFS has stored for itself is the repository's afterwards, if it is what its name says. Nothing that was
// there changes, and whatever else lies there does no harm.
func TestCollectLFS(t *testing.T) {
	f := newFixture(t)
	w := f.prepared()
	admin := f.git(w.Path(), "rev-parse", "--absolute-git-dir")
	at := func(dir, oid string) string { return filepath.Join(dir, "lfs", "objects", oid[:2], oid[2:4], oid) }
	write := func(path, text string) {
		f.must(os.MkdirAll(filepath.Dir(path), 0o755))
		f.must(os.WriteFile(path, []byte(text), 0o444))
	}
	oid := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	outside := filepath.Join(t.TempDir(), "outside")
	write(outside, "a secret")

	write(at(admin, oid("new")), "new")
	write(at(admin, oid("forged")), "something else")
	write(at(f.CommonDir(), oid("known")), "known")
	write(at(admin, oid("known")), "changed")
	for name, make := range map[string]func(path string) error{
		oid("a secret"): func(path string) error { return os.Symlink(outside, path) },
		oid("pipe"):     func(path string) error { return syscall.Mkfifo(path, 0o600) },
		oid("folder"):   func(path string) error { return os.Mkdir(path, 0o755) },
	} {
		f.must(os.MkdirAll(filepath.Dir(at(admin, name)), 0o755))
		f.must(make(at(admin, name)))
	}
	f.must(os.MkdirAll(filepath.Join(admin, "lfs/objects/ab/cd", strings.Repeat("x/", 200)), 0o755))
	f.must(os.Chmod(at(admin, oid("new")), 0))
	write(at(admin, oid("sparse")), "")
	f.must(os.Chmod(at(admin, oid("sparse")), 0o600))
	f.must(os.Truncate(at(admin, oid("sparse")), 1<<40))

	f.must(f.Unblock(w.Path(), "refs/heads/polecat/"))
	f.must(w.CollectLFS())
	for text, want := range map[string]string{"new": "new", "known": "known", "forged": "", "a secret": "", "pipe": "", "folder": "", "sparse": ""} {
		got, err := os.ReadFile(at(f.CommonDir(), oid(text)))
		if string(got) != want || (err != nil) != (want == "") {
			t.Errorf("%s is %q, %v", text, got, err)
		}
		if info, err := os.Lstat(at(admin, oid(text))); err == nil && info.Mode().IsRegular() {
			t.Errorf("%s is still the worker's", text)
		}
	}
	f.must(w.CollectLFS())

	f.must(os.RemoveAll(filepath.Join(admin, "lfs")))
	write(filepath.Join(admin, "lfs"), "no folder")
	f.must(w.CollectLFS())
}
