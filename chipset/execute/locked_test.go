package execute

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state/statetest"
)

// unlocked puts a git into PATH that notes each worktree it makes while nobody holds the lock of worktrees in a rig. found returns
// how many it has made, and what it has noted.
func unlocked(t *testing.T) (found func(rig string) (made int, free string)) {
	t.Helper()
	statetest.RequireCommands(t, "flock")
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := gittest.Dir(t)
	gittest.Write(t, dir, "bin/git", fmt.Sprintf(`#!/bin/sh
case " $* " in *" worktree add "*)
	echo "$*" >>%[1]s/made
	flock -n "$(cat %[1]s/rig)/.chipset/run/locks/git/worktrees.lock" true && echo "$*" >>%[1]s/free ;;
esac
exec %[2]s "$@"
`, dir, git))
	if err := os.Chmod(filepath.Join(dir, "bin/git"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	gittest.Write(t, dir, "rig", "/nowhere")
	return func(rig string) (int, string) {
		made, _ := os.ReadFile(filepath.Join(dir, "made"))
		free, _ := os.ReadFile(filepath.Join(dir, "free"))
		gittest.Write(t, dir, "rig", rig)
		_, _ = os.Remove(filepath.Join(dir, "made")), os.Remove(filepath.Join(dir, "free"))
		return strings.Count(string(made), "\n"), string(free)
	}
}

// TestWorktreesAreMadeUnderTheirLock: two gits that make worktrees of one repository at a time fail, so polecats and refinery hold a lock meanwhile.
func TestWorktreesAreMadeUnderTheirLock(t *testing.T) {
	found := unlocked(t)
	m := newMill(t, `test: "true"`)
	found(m.dir)
	m.must(os.RemoveAll(m.r.worktree))
	m.git(m.dir, "worktree", "prune")
	m.r.prepared = false
	m.submit("one.txt", "1\n")
	found(m.dir) // the branch of the request was made in one
	m.run()
	if made, free := found(m.dir); made == 0 || free != "" {
		t.Errorf("the refinery made %d worktrees, without the lock:\n%s", made, free)
	}
	k := newKennel(t, "")
	k.sling("true")
	found(k.dir)
	k.until("it begins", k.hookIs(hook.Active))
	k.until("it ends", func() bool { return !k.hookIs(hook.Active)() })
	if made, free := found(k.dir); made == 0 || free != "" {
		t.Errorf("the polecat made %d worktrees, without the lock:\n%s", made, free)
	}
}
