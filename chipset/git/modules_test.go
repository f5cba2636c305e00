package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/git/gittest"
)

// moduleYard is a repository with the submodule lib, set up as its person has it, and a linked worktree.
func moduleYard(t *testing.T) (dir, upstream string, wt *Worktree) {
	t.Helper()
	upstream, dir = gittest.Repo(t), gittest.Repo(t)
	gittest.Write(t, upstream, "lib.txt", "one\n")
	as := []string{"-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always"}
	run := func(dir string, args ...string) { t.Helper(); gittest.Run(t, dir, append(as, args...)...) }
	run(upstream, "add", "-A")
	run(upstream, "commit", "-q", "-m", "lib")
	run(dir, "submodule", "--quiet", "add", "--name", "the/lib", upstream, "vendor/lib")
	run(dir, "commit", "-q", "-m", "a submodule")
	r, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(gittest.Dir(t), "wt")
	if err := r.PrepareDetached(t.Context(), path, Hash(gittest.Run(t, dir, "rev-parse", "HEAD"))); err != nil {
		t.Fatal(err)
	}
	return dir, upstream, r.In(path)
}

func holds(t *testing.T, path, want string) {
	t.Helper()
	if data, err := os.ReadFile(path); err != nil || string(data) != want {
		t.Errorf("%s: %q, %v", path, data, err)
	}
}

// TestCheckoutSubmodules: the person's own clone is enough, and what a worker left of it is gone.
func TestCheckoutSubmodules(t *testing.T) {
	t.Parallel()
	_, upstream, wt := moduleYard(t)
	if err := os.RemoveAll(upstream); err != nil { // nothing is asked of it
		t.Fatal(err)
	}
	file := filepath.Join(wt.Path(), "vendor/lib/lib.txt")
	for range 2 {
		if err := wt.CheckoutSubmodules(t.Context()); err != nil {
			t.Fatal(err)
		}
		holds(t, file, "one\n")
		if status, err := wt.Status(t.Context()); err != nil || !status.Clean() {
			t.Fatalf("%+v, %v", status, err)
		}
		gittest.Write(t, wt.Path(), "vendor/lib/lib.txt", "a worker's\n")
		gittest.Write(t, wt.Path(), "vendor/lib/more.txt", "a worker's\n")
		gittest.Run(t, filepath.Join(wt.Path(), "vendor/lib"), "config", "core.fsmonitor", "touch "+filepath.Join(wt.Path(), "ran"))
	}
	if err := wt.CheckoutSubmodules(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(wt.Path(), "vendor/lib/more.txt")); err == nil {
		t.Error("what a worker left in the submodule is still there")
	}
	if config := gittest.Run(t, filepath.Join(wt.Path(), "vendor/lib"), "config", "--list"); strings.Contains(config, "fsmonitor=touch") {
		t.Error("the next worker's git has the configuration that one before it wrote")
	}
	if _, err := os.Stat(filepath.Join(wt.Path(), "ran")); err == nil {
		t.Error("the configuration that a worker wrote has run a command")
	}
}

// TestSubmoduleAddresses: they are the person's, and a path is one only where the person allows it.
// Settings of .gitmodules that are of no submodule, and submodules that lead elsewhere, are none.
func TestSubmodulesOfACommit(t *testing.T) {
	f := newFixture(t)
	head := f.head(f.top)
	f.git(f.top, "update-index", "--add", "--cacheinfo", "160000,"+string(head)+",lib")
	f.write(f.top, ".gitmodules", "[submodule]\n\tfetchJobs = 2\n[other \"x.path\"]\n\tpath = lib\n[submodule \"lib\"]\n\tpath = lib/\n\turl = one\n"+
		"[submodule \"no path\"]\n\turl = two\n[submodule \"out\"]\n\tpath = ../out\n[submodule \"../up\"]\n\tpath = lib\n[submodule \"gone\"]\n\tpath = gone\n")
	f.git(f.top, "add", ".gitmodules")
	f.git(f.top, "commit", "-q", "-m", "modules")
	found, err := f.Submodules(f.ctx, f.head(f.top))
	if want := (Submodule{Name: "lib", Path: "lib", URL: "one"}); err != nil || len(found) != 1 || found[0] != want {
		t.Errorf("%+v, %v", found, err)
	}
	if found, err := f.Submodules(f.ctx, head); err != nil || len(found) > 0 {
		t.Errorf("without .gitmodules: %+v, %v", found, err)
	}
}

func TestSubmoduleAddresses(t *testing.T) {
	t.Parallel()
	dir, _, wt := moduleYard(t)
	elsewhere := gittest.Repo(t)
	clone, aside := filepath.Join(dir, ".git/modules"), filepath.Join(dir, ".git/aside")
	if err := os.Rename(clone, aside); err != nil { // no clone to begin with
		t.Fatal(err)
	}
	if err := wt.CheckoutSubmodules(t.Context()); err == nil {
		t.Error("a path was taken for an address without the person's word")
	}
	gittest.Run(t, dir, "config", "protocol.file.allow", "always")
	if err := wt.CheckoutSubmodules(t.Context()); err != nil {
		t.Fatal(err)
	}
	holds(t, filepath.Join(wt.Path(), "vendor/lib/lib.txt"), "one\n")
	if err := os.Rename(aside, clone); err != nil {
		t.Fatal(err)
	}

	// .gitmodules of a commit names another address: it is not asked.
	gittest.Write(t, dir, ".gitmodules", "[submodule \"the/lib\"]\n\tpath = vendor/lib\n\turl = "+elsewhere+"\n")
	gittest.Run(t, dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qam", "elsewhere")
	head := Hash(gittest.Run(t, dir, "rev-parse", "HEAD"))
	if err := wt.CheckoutDetached(t.Context(), head); err != nil {
		t.Fatal(err)
	}
	if err := wt.CheckoutSubmodules(t.Context()); err != nil {
		t.Fatal(err)
	}
	holds(t, filepath.Join(wt.Path(), "vendor/lib/lib.txt"), "one\n")
	if name, err := wt.repo.ReaddressedSubmodule(t.Context(), Hash(gittest.Run(t, dir, "rev-parse", "HEAD^")), head); name != "the/lib" || err != nil {
		t.Errorf("readdressed %q, %v", name, err)
	}
	if name, err := wt.repo.ReaddressedSubmodule(t.Context(), head, head); name != "" || err != nil {
		t.Errorf("readdressed %q, %v", name, err)
	}

	gittest.Run(t, dir, "config", "--unset", "submodule.the/lib.url")
	if err := wt.CheckoutSubmodules(t.Context()); !errors.Is(err, ErrNotSetUp) {
		t.Errorf("without an address: %v", err)
	}
}

// TestSubmoduleBehindALink: a link in the worktree leads nothing out of it.
func TestSubmoduleBehindALink(t *testing.T) {
	t.Parallel()
	_, _, wt := moduleYard(t)
	precious := gittest.Dir(t)
	gittest.Write(t, precious, "lib/keep.txt", "mine\n")
	if err := os.RemoveAll(filepath.Join(wt.Path(), "vendor")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(precious, filepath.Join(wt.Path(), "vendor")); err != nil {
		t.Fatal(err)
	}
	if err := wt.CheckoutSubmodules(t.Context()); err == nil {
		t.Error("a submodule was checked out behind a link")
	}
	holds(t, filepath.Join(precious, "lib/keep.txt"), "mine\n")
}

func TestTrackedAndIgnored(t *testing.T) {
	t.Parallel()
	_, _, wt := moduleYard(t)
	gittest.Write(t, wt.Path(), ".gitignore", ".env\nout/\n")
	gittest.Write(t, wt.Path(), ".env", "x")
	gittest.Write(t, wt.Path(), "out/a", "x")
	if found, err := wt.Tracked(t.Context(), ".env", "out"); found != "" || err != nil {
		t.Errorf("tracked %q, %v", found, err)
	}
	if found, err := wt.Tracked(t.Context(), "vendor"); found != "vendor/lib" || err != nil {
		t.Errorf("tracked %q, %v", found, err)
	}
	if found, err := wt.Ignored(t.Context()); len(found) != 2 || found[0] != ".env" || found[1] != "out/" || err != nil {
		t.Errorf("ignored %q, %v", found, err)
	}
	if err := wt.PullLFS(t.Context()); !errors.Is(err, ErrNotSetUp) {
		t.Errorf("LFS: %v", err)
	}
}
