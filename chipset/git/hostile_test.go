package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Whatever a worker leaves in its worktree and in what git keeps of it, no command of the rig there runs a program of the
// worker's, and each comes to an end.
func TestNothingOfAWorkersRuns(t *testing.T) {
	for name, plant := range map[string]func(f *fixture, w *Worktree, program string){
		"a filter in config.worktree": func(f *fixture, w *Worktree, program string) {
			f.git(w.Path(), "config", "extensions.worktreeConfig", "true")
			f.git(w.Path(), "config", "--worktree", "filter.x.clean", program)
			f.write(w.Path(), ".gitattributes", "* filter=x\n")
		},
		"a filter of another repository by commondir": func(f *fixture, w *Worktree, program string) {
			evil := filepath.Join(f.TempDir(), "evil")
			f.git("", "init", "-q", evil)
			f.git(evil, "config", "filter.x.clean", program)
			f.write(w.Path(), ".gitattributes", "* filter=x\n")
			f.write(f.admin(w), "commondir", filepath.Join(evil, ".git")+"\n")
		},
		"a filter of a gitlink": func(f *fixture, w *Worktree, program string) {
			f.nested(w, "sub", "filter.x.clean", program)
			f.write(w.Path(), "sub/.gitattributes", "* filter=x\n")
			f.write(w.Path(), ".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n")
			f.git(w.Path(), "add", "sub")
			f.git(w.Path(), "commit", "-q", "-m", "a link")
			f.write(w.Path(), "sub/x", "changed\n")
		},
		"a nested repository with a promisor": func(f *fixture, w *Worktree, program string) {
			f.nested(w, "inner", "extensions.partialClone", "origin")
			f.git(filepath.Join(w.Path(), "inner"), "config", "remote.origin.url", f.TopLevel())
			f.git(filepath.Join(w.Path(), "inner"), "config", "remote.origin.promisor", "true")
			f.git(filepath.Join(w.Path(), "inner"), "config", "remote.origin.uploadpack", program)
			f.must(os.RemoveAll(filepath.Join(w.Path(), "inner/.git/objects")))
			f.must(os.MkdirAll(filepath.Join(w.Path(), "inner/.git/objects"), 0o755))
		},
		"a nested repository with a monitor": func(f *fixture, w *Worktree, program string) {
			f.nested(w, "inner", "core.fsmonitor", program)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.Repo.Deadline = 20 * time.Second
			w := f.prepared()
			ran := filepath.Join(t.TempDir(), "ran")
			plant(f, w, f.program("echo >> "+ran))
			_ = os.Remove(ran) // git of the planting may have run it
			f.rigsOwnWork(w)
			if _, err := os.Lstat(ran); err == nil {
				t.Error("the program ran")
			}
		})
	}
}

// nested makes a repository with a commit inside the worktree, and configures it.
func (f *fixture) nested(w *Worktree, name, key, value string) {
	f.Helper()
	dir := filepath.Join(w.Path(), name)
	f.git(w.Path(), "init", "-q", name)
	f.write(dir, "x", "x\n")
	f.git(dir, "add", "x")
	f.git(dir, "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "-m", "x")
	f.git(dir, "config", key, value)
}

// program is a script that says that it ran.
func (f *fixture) program(line string) string {
	f.Helper()
	path := filepath.Join(f.TempDir(), "program")
	f.must(os.WriteFile(path, []byte("#!/bin/sh\n"+line+"\ncat\n"), 0o755)) //nolint:gosec // it is executed
	return path
}

// rigsOwnWork does to a worktree what a rig does at the end of an attempt and before the next one.
func (f *fixture) rigsOwnWork(w *Worktree) {
	f.Helper()
	begun := time.Now()
	base := f.head(f.TopLevel())
	_, err := w.Status(f.ctx)
	f.ended("status", err)
	_, err = w.CommitAll(f.ctx, "work", "polecat-alpha")
	f.ended("commit", err)
	_, err = w.Salvage(f.ctx, SalvageRequest{Ref: salvageRef, Message: "m", AgentID: "a"})
	f.ended("salvage", err)
	head, _, err := w.Head(f.ctx)
	f.ended("head", err)
	f.must(f.ReleaseWorktree(f.ctx, w.Path(), ""))
	f.must(f.PrepareWorktree(f.ctx, w.Path(), "polecat/y", base))
	if _, err = w.Rebase(f.ctx, head, base, "refinery"); err != nil {
		f.Error(err)
	}
	if took := time.Since(begun); took > f.Repo.Deadline {
		f.Errorf("it took %s", took)
	}
}

// ended accepts errors about the work, but none of a git that was ended.
func (f *fixture) ended(what string, err error) {
	f.Helper()
	var unfit *UnfitError
	var incomplete *IncompleteError
	if err != nil && !errors.As(err, &unfit) && !errors.As(err, &incomplete) {
		f.Errorf("%s: %v", what, err)
	}
}

// Where git would wait for somebody to write, it isn't started.
func TestPipesHoldNobodyUp(t *testing.T) {
	for _, at := range []string{".gitignore", "sub/.gitignore", ".gitattributes", ".gitmodules", "new", "a.txt", "inner/.git"} {
		t.Run(at, func(t *testing.T) {
			f := newFixture(t)
			f.Repo.Deadline = 20 * time.Second
			w := f.prepared()
			f.write(w.Path(), "work", "work\n")
			path := filepath.Join(w.Path(), at)
			f.must(os.MkdirAll(filepath.Dir(path), 0o755))
			f.must(os.RemoveAll(path))
			f.must(syscall.Mkfifo(path, 0o600))
			_, err := w.CommitAll(f.ctx, "work", "polecat-alpha")
			var unfit *UnfitError
			if at != "new" && (!errors.As(err, &unfit) || !strings.Contains(err.Error(), at+" is a named pipe")) {
				t.Errorf("commit: %v", err)
			}
			f.rigsOwnWork(w)
			if !strings.Contains(f.git(f.TopLevel(), "log", "--all", "--name-only", "--format="), "work") {
				t.Error("the work is not saved")
			}
		})
	}
	for _, name := range []string{"index", "HEAD", "config.worktree"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w := f.prepared()
			f.must(os.RemoveAll(filepath.Join(f.admin(w), name)))
			f.must(syscall.Mkfifo(filepath.Join(f.admin(w), name), 0o600))
			f.Repo.Deadline = 20 * time.Second
			begun := time.Now()
			_, _ = w.Status(f.ctx) // it may well fail
			if took := time.Since(begun); took > f.Repo.Deadline {
				t.Errorf("it took %s", took)
			}
		})
	}
	f := newFixture(t)
	f.must(syscall.Mkfifo(filepath.Join(f.CommonDir(), "info", "attributes"), 0o600))
	if _, err := f.In(f.TopLevel()).Status(f.ctx); err == nil || !strings.Contains(err.Error(), "attributes is a named pipe: remove it") {
		t.Error(err)
	}
}

// Folders whose path is longer than a system call takes are the work's own fault, and gone before the next bead.
func TestDeepFoldersStopNobody(t *testing.T) {
	f := newFixture(t)
	f.Repo.Deadline = 20 * time.Second
	w := f.prepared()
	f.write(w.Path(), "work", "work\n")
	at, err := unix.Open(w.Path(), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	f.must(err)
	name := strings.Repeat("n", 200)
	for range 25 {
		f.must(unix.Mkdirat(at, name, 0o755))
		below, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		f.must(errors.Join(err, unix.Close(at)))
		at = below
	}
	f.must(unix.Close(at))
	_, err = w.CommitAll(f.ctx, "work", "polecat-alpha")
	var unfit *UnfitError
	if !errors.As(err, &unfit) || !strings.Contains(err.Error(), "is too deep") {
		t.Errorf("commit: %v", err)
	}
	f.rigsOwnWork(w)
	f.wantGone(w.Path(), name)
	if !strings.Contains(f.git(f.TopLevel(), "log", "--all", "--name-only", "--format="), "work") {
		t.Error("the work is not saved")
	}
}

// What a file claims beyond what it takes on the disk is not read, whether git knows the file or not; an ignored one is
// nobody's business.
func TestHolesHoldNobodyUp(t *testing.T) {
	for _, test := range []struct {
		at, index string
		unfit     bool
	}{{at: "new", unfit: true}, {at: "a.txt", unfit: true}, {at: "inner/new", unfit: true}, {at: "a.txt", index: "none", unfit: true}, {at: "ignored/disk"}} {
		t.Run(test.at+test.index, func(t *testing.T) {
			f := newFixture(t)
			f.Repo.Deadline = 20 * time.Second
			w := f.prepared()
			f.write(w.Path(), ".gitignore", "ignored/\n")
			f.write(w.Path(), "work", "work\n")
			path := filepath.Join(w.Path(), test.at)
			f.must(os.MkdirAll(filepath.Dir(path), 0o755))
			f.git(w.Path(), "init", "-q", "inner")
			before, err := os.Stat(path)
			file, openErr := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
			f.must(openErr)
			f.must(file.Truncate(1 << 40)) // of this size git keeps 0 in its index
			f.must(file.Close())
			if err == nil {
				f.must(os.Chtimes(path, before.ModTime(), before.ModTime()))
			}
			if test.index != "" {
				f.must(os.WriteFile(filepath.Join(f.admin(w), "index"), []byte(test.index), 0o644))
			}
			_, err = w.CommitAll(f.ctx, "work", "polecat-alpha")
			var unfit *UnfitError
			if errors.As(err, &unfit) != test.unfit || test.unfit && !strings.Contains(err.Error(), test.at+" claims 104857") {
				t.Errorf("commit: %v", err)
			}
			f.rigsOwnWork(w)
			if !strings.Contains(f.git(f.TopLevel(), "log", "--all", "--name-only", "--format="), "work") {
				t.Error("the work is not saved")
			}
			if _, err := os.Stat(path); test.at == "ignored/disk" && err != nil {
				t.Error(err)
			}
		})
	}
}

// A command that does not end is ended with all that it started, and the error says so.
func TestDeadline(t *testing.T) {
	f := newFixture(t)
	alive := filepath.Join(t.TempDir(), "alive")
	f.git(f.TopLevel(), "config", "filter.slow.clean", fmt.Sprintf("echo $$ > '%s'; sleep 20; cat", alive))
	w := f.prepared()
	f.write(w.Path(), ".gitattributes", "* filter=slow\n")
	f.Repo.Deadline = 300 * time.Millisecond
	f.write(w.Path(), "x", "x")
	_, err := w.Run(context.Background(), Command{Args: []string{"hash-object", "-w", "--path=x", "x"}})
	if !errors.Is(err, ErrNoEnd) || !strings.Contains(err.Error(), "300ms") {
		t.Errorf("%v", err)
	}
	data, err := os.ReadFile(alive)
	if err != nil {
		t.Skip("the machine was too slow to start the filter")
	}
	var pid int
	_, err = fmt.Sscan(string(data), &pid)
	f.must(err)
	for i := 0; syscall.Kill(pid, 0) == nil; i++ {
		if i == 500 {
			t.Fatal("the filter lives on")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// What a sparse checkout hands on to a new worktree stays.
func TestSparseOnly(t *testing.T) {
	for config, want := range map[string]bool{
		"[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = true\n[index]\n\tsparse = true\n": true,
		"[core]\n\tsparseCheckout = true\n\tfsmonitor = x\n":                                       false,
		"[filter \"x\"]\n\tclean = x\n":                                                            false,
		"[include]\n\tpath = x\n":                                                                  false,
		"[core]\n\tsparseCheckout = true \\\n":                                                     false,
		"":                                                                                         true,
	} {
		path := filepath.Join(t.TempDir(), "config.worktree")
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := sparseOnly(path); got != want {
			t.Errorf("%q: %v", config, got)
		}
	}
}

func TestCheckPath(t *testing.T) {
	for path, fits := range map[string]bool{
		"a/b.txt": true, ".gitignore": true, "x.git/y": true, "ü/日本": true, "git~2": true,
		".GIT/x": false, "a/.Git": false, ".g\u200cit/config": false, ".git::$INDEX_ALLOCATION/x": false, "GIT~1/x": false,
		".git ./x": false, "a/../b": false, "./a": false, "a//b": false, `.git\x`: false,
		strings.Repeat("x", 256): false, strings.Repeat("x/", 1100) + "y": false,
	} {
		if err := checkPath(path); (err == nil) != fits {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// What a worker writes into the registration of its worktree keeps nobody else's work from landing.
func TestAdvanceDoesNotHeedWorkers(t *testing.T) {
	for name, write := range map[string]func(f *fixture, admin string){
		"it says that it rebases the target": func(f *fixture, admin string) { f.write(admin, "rebase-merge/head-name", "refs/heads/main\n") },
		"it says that it has the target":     func(f *fixture, admin string) { f.write(admin, "HEAD", "ref: refs/heads/main\n") },
		"its HEAD can't be read":             func(f *fixture, admin string) { f.write(admin, "HEAD", "junk") },
		"it is registered elsewhere": func(f *fixture, admin string) {
			elsewhere := f.T.TempDir()
			f.write(elsewhere, ".git", "gitdir: "+admin+"\n")
			f.write(admin, "gitdir", filepath.Join(elsewhere, ".git")+"\n")
			f.write(admin, "HEAD", "ref: refs/heads/main\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			base := f.head(f.TopLevel())
			path := filepath.Join(f.TopLevel(), ".chipset", "worktrees", "polecat-alpha")
			f.must(f.PrepareWorktree(f.ctx, path, "polecat/x", base))
			f.Own = filepath.Dir(path)
			write(f, f.admin(f.In(path)))
			next := f.commitOn(base)
			f.must(f.Advance(f.ctx, "main", base, next))
			if got := f.head(f.TopLevel()); got != next {
				t.Errorf("the target is at %s", got)
			}
		})
	}
}

// A registration that names the worktree of another agent does not become that one's.
func TestWorkerTakesNoOtherWorktree(t *testing.T) {
	f := newFixture(t)
	below := filepath.Join(f.TopLevel(), ".chipset", "worktrees")
	for _, name := range []string{"polecat-alpha", "refinery"} {
		f.must(f.PrepareDetached(f.ctx, filepath.Join(below, name), f.head(f.TopLevel())))
	}
	f.write(filepath.Join(f.CommonDir(), "worktrees", "polecat-alpha"), "gitdir", filepath.Join(below, "refinery", ".git")+"\n")
	if got, err := f.In(filepath.Join(below, "refinery")).GitDir(); err != nil || filepath.Base(got) != "refinery" {
		t.Errorf("the refinery works with %s, %v", got, err)
	}
}
