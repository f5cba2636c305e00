package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/git/gittest"
)

// What a worker makes git look past is seen again in the next bead's worktree, on both ways to it.
func TestNothingIsHiddenFromTheNextBead(t *testing.T) {
	for name, hide := range map[string]string{
		"assume-unchanged":             "git update-index --assume-unchanged a.txt; echo evil > a.txt",
		"skip-worktree":                "git update-index --skip-worktree a.txt; echo evil > a.txt",
		"both, and gone":               "git update-index --skip-worktree --assume-unchanged a.txt; rm a.txt",
		"version 4":                    "git update-index --index-version 4; git update-index --skip-worktree a.txt; echo evil > a.txt",
		"a split index":                "git update-index --split-index; git update-index --assume-unchanged a.txt; echo evil > a.txt",
		"a sparse checkout":            "git sparse-checkout set --no-cone nothing",
		"a split index, marked before": "git update-index --assume-unchanged a.txt; git update-index --split-index; echo evil > a.txt",
		"a sparse checkout to come": `git config extensions.worktreeConfig true; d=$(git rev-parse --absolute-git-dir)
			printf '[core]\n\tsparseCheckout = true\n' >"$d/config.worktree"; mkdir -p "$d/info"; echo nothing >"$d/info/sparse-checkout"`,
		"untracked cache": "git update-index --force-untracked-cache; git status >/dev/null; echo x > untracked",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			gittest.Write(t, f.top, "a.txt", "good\n")
			gittest.Run(t, f.top, "add", "-A")
			gittest.Run(t, f.top, "commit", "-q", "-m", "a")
			base := Hash(gittest.Run(t, f.top, "rev-parse", "HEAD"))
			path := filepath.Join(t.TempDir(), "wt")
			for round, prepare := range []func() error{
				func() error { return f.PrepareWorktree(f.ctx, path, "polecat/one", base) },
				func() error { return f.PrepareDetached(f.ctx, path, base) },
				func() error {
					if err := f.ReleaseWorktree(f.ctx, path, base); err != nil {
						return err
					}
					sh(t, path, hide)
					if !f.PrepareIdle(f.ctx, path, "polecat/two", base) {
						return f.PrepareWorktree(f.ctx, path, "polecat/two", base)
					}
					return nil
				},
				func() error { return f.In(path).CheckoutDetached(f.ctx, base) },
			} {
				if err := prepare(); err != nil {
					t.Fatal(round, err)
				}
				got, err := os.ReadFile(filepath.Join(path, "a.txt"))
				if err != nil || strings.TrimSpace(string(got)) != "good" {
					t.Errorf("round %d: %q, %v", round, got, err)
				}
				if _, err := os.Stat(filepath.Join(path, "untracked")); err == nil {
					t.Errorf("round %d: an untracked file stayed", round)
				}
				sh(t, path, hide)
			}
		})
	}
}

// A sparse checkout of the person's is that of the next bead too, whatever a worker has made of it.
func TestSparseCheckoutOfThePersons(t *testing.T) {
	for name, spoil := range map[string]string{
		"another":     `echo nothing >"$d/info/sparse-checkout"`,
		"none":        `rm "$d/info/sparse-checkout"`,
		"no settings": `rm "$d/config.worktree"`,
		"neither":     `rm "$d/config.worktree" "$d/info/sparse-checkout"`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			base := f.commit(f.top, map[string]string{"in/a": "a\n", "out/b": "b\n"})
			f.git(f.top, "sparse-checkout", "set", "in")
			path := filepath.Join(t.TempDir(), "wt")
			f.must(f.PrepareWorktree(f.ctx, path, "polecat/one", base))
			sh(t, path, `d=$(git rev-parse --absolute-git-dir); `+spoil)
			f.must(f.PrepareWorktree(f.ctx, path, "polecat/two", base))
			f.wantFile(path, "in/a", "a\n")
			f.wantGone(path, "out")
			if f.In(path).strangeSparse(place{gitDir: f.git(path, "rev-parse", "--absolute-git-dir")}) != "" {
				t.Error("it is not as the person's")
			}
		})
	}
}

func sh(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// The last core.hooksPath of the person's counts, if it lies in the checkout.
func TestHooksFolder(t *testing.T) {
	f := newFixture(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(f.top, link); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", filepath.Dir(f.top))
	for _, c := range []struct{ path, want string }{
		{"", ""}, {"tools/hooks", "tools/hooks"}, {f.top + "/own/", "own"}, {"/etc/hooks", ""}, {"../hooks", ""}, {".", ""}, {"~/hooks", ""}, {"~/" + filepath.Base(f.top) + "/home", "home"},
		{"./a//b", "a/b"}, {link + "/linked", "linked"},
	} {
		if c.path != "" {
			sh(t, f.top, "git config --add core.hooksPath '"+c.path+"'")
		}
		if got, err := f.HooksFolder(t.Context()); err != nil || got != c.want {
			t.Errorf("%q: %q, %v", c.path, got, err)
		}
	}
}

// What the person's git obeys has a hash, in which upstreams of branches don't count.
func TestConfigured(t *testing.T) {
	f := newFixture(t)
	sum := func() string {
		t.Helper()
		s, err := f.Configured()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(f.top, ".git", name)
		old, _ := os.ReadFile(path)
		if err := os.WriteFile(path, append(old, text...), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	first := sum()
	gittest.Run(t, f.top, "config", "branch.x.remote", "origin")
	gittest.Run(t, f.top, "config", "branch.x.merge", "refs/heads/x")
	write("hooks/pre-commit.sample", "x")
	if sum() != first {
		t.Error("an upstream counts")
	}
	for _, change := range [][2]string{{"config", "[core]\n\tfsmonitor = x\n"}, {"config", "[branch \"y\"]\n\tremote = x[core]\n"},
		{"objects/info/alternates", "/x\n"}, {"info/exclude", "x\n"}, {"info/attributes", "* filter=x\n"}, {"hooks/pre-commit", "#!/bin/sh\n"}} {
		before := sum()
		write(change[0], change[1])
		if sum() == before {
			t.Errorf("%s does not count: %q", change[0], change[1])
		}
	}
}
