package git

import (
	"os"
	"path/filepath"
	"testing"
)

// TestTakenBack: only a reset that meant to move nothing is taken for one; what a person resets to stays.
func TestTakenBack(t *testing.T) {
	for name, tt := range map[string]struct {
		reset func(f *fixture, old, new Hash)
		taken bool
	}{
		"a reset to HEAD":     {func(f *fixture, old, _ Hash) { f.moveBack(old, "reset: moving to HEAD") }, true},
		"a reset to a commit": {func(f *fixture, old, _ Hash) { f.git(f.TopLevel(), "reset", "-q", "--hard", string(old)) }, false},
		"something else":      {func(f *fixture, old, _ Hash) { f.moveBack(old, "commit: x") }, false},
		"from another commit": {func(f *fixture, old, _ Hash) {
			f.commit(f.TopLevel(), map[string]string{"c": "c"})
			f.moveBack(old, "reset: moving to HEAD")
		}, false},
		"nothing":                {func(*fixture, Hash, Hash) {}, false},
		"a branch without a log": {func(f *fixture, _, _ Hash) { f.must(os.RemoveAll(filepath.Join(f.common, "logs"))) }, false},
	} {
		f := newFixture(t)
		old := f.head(f.TopLevel())
		new := f.commit(f.TopLevel(), map[string]string{"b": "b"})
		tt.reset(f, old, new)
		if taken, err := f.TakenBack(f.ctx, "main", old, new); err != nil || taken != tt.taken {
			t.Errorf("%s: %v, %v", name, taken, err)
		}
	}
}

func (f *fixture) moveBack(old Hash, why string) {
	f.git(f.TopLevel(), "update-ref", "-m", why, "refs/heads/main", string(old))
}

// TestCatchUp: a checkout that was left behind follows; one that was not, or in which a person has staged something, stays.
func TestCatchUp(t *testing.T) {
	behind := func(f *fixture, old Hash) { f.git(f.TopLevel(), "read-tree", "--reset", "-u", string(old)) }
	for name, tt := range map[string]struct {
		leave  func(f *fixture, old Hash)
		caught bool
		status string
	}{
		"left behind":     {behind, true, ""},
		"not left behind": {func(*fixture, Hash) {}, false, ""},
		"a person's staged": {func(f *fixture, old Hash) {
			behind(f, old)
			f.write(f.TopLevel(), "a.txt", "mine\n")
			f.git(f.TopLevel(), "add", "a.txt")
		}, false, "M  a.txt\nD  b"},
		"a person's change in the way": {func(f *fixture, old Hash) {
			behind(f, old)
			f.write(f.TopLevel(), "a.txt", "mine\n")
		}, false, "MM a.txt\nD  b"},
		"a merge is in progress": {func(f *fixture, old Hash) {
			behind(f, old)
			f.write(f.CommonDir(), "MERGE_HEAD", string(old)+"\n")
		}, false, "M  a.txt\nD  b"},
		"the branch went on": {func(f *fixture, old Hash) {
			f.commit(f.TopLevel(), map[string]string{"a.txt": "mine\n"})
			behind(f, old)
		}, false, "M  a.txt\nD  b"},
		"changes elsewhere": {func(f *fixture, old Hash) {
			behind(f, old)
			f.write(f.TopLevel(), "c", "mine\n")
			f.git(f.TopLevel(), "add", "c")
		}, true, "A  c"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			old := f.head(f.TopLevel())
			new := f.commit(f.TopLevel(), map[string]string{"a.txt": "theirs\n", "b": "b"})
			tt.leave(f, old)
			if caught, err := f.CatchUp(f.ctx, "main", old, new); (err != nil) != (name == "a person's change in the way") || caught != tt.caught {
				t.Errorf("%v, %v", caught, err)
			}
			if status := f.git(f.TopLevel(), "status", "--porcelain"); status != tt.status {
				t.Errorf("status: %q", status)
			}
		})
	}
}
