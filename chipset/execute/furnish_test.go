package execute

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/retire"
)

// TestFurnished: a worker finds copies, links and what the setup made; nothing of it is committed, and what the worker
// before it did to copies and links is undone.
func TestFurnished(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "worktree: {copy: [.env, conf], link: [deps], setup: 'echo x >> made/count', setup_when: [lock]}\n")
	k.write(".gitignore", "made/\n")
	k.write("lock", "1")
	k.write("made/.keep", "")
	k.git("add", "-f", ".gitignore", "lock", "made/.keep")
	k.git("-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "lock")
	k.write(".env", "SECRET=1\n")
	k.write("conf/local/a", "one")
	k.write("deps/lib", "two")
	look := "grep -q SECRET .env && test -L deps && test \"$(cat conf/local/a deps/lib)\" = onetwo && test \"$(wc -l < made/count)\" = %s || exit 9\n"
	for i, count := range []string{"1", "1", "2"} {
		if i == 2 {
			k.write("lock", "2")
			k.git("-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qam", "lock")
		}
		rec := k.sling(strings.ReplaceAll(look, "%s", count) + "echo done > done; git add -A; git commit -qm done; rm -rf .env conf; ln -s /tmp conf; rm deps; mkdir deps; echo mine > .env; touch deps/x")
		k.until("it is retired", k.retired(rec.AssignmentID))
		end := k.record(rec.AssignmentID)
		if end.Outcome != retire.Done {
			t.Fatalf("bead %d: %s: %s", i+1, end.Outcome, end.Reason)
		}
		if files := k.git("diff", "--name-only", "main", end.Head); files != "done" {
			t.Errorf("bead %d committed %q", i+1, files)
		}
		k.free()
	}
	if data, err := os.ReadFile(filepath.Join(k.dir, "deps/lib")); err != nil || string(data) != "two" {
		t.Errorf("the person's own: %q, %v", data, err)
	}
	if text, err := os.ReadFile(filepath.Join(k.dir, ".git/info/exclude")); err != nil || strings.Count(string(text), "/.env\n") != 1 {
		t.Errorf("excluded: %q, %v", text, err)
	}
}

// TestSetupOfANewWorktree: a worktree that is made again is set up, also where the setup leaves nothing in it to see.
func TestSetupOfANewWorktree(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "sandbox: \"off\"\nworktree: {setup: 'echo x >> ../../../.git/setups'}\n")
	for i, want := range []int{1, 1, 2} {
		if i == 2 {
			k.fail(os.RemoveAll(k.rig.Worktree(alpha)))
			k.git("worktree", "prune")
			k.fail(os.Mkdir(filepath.Join(k.dir, "elsewhere"), 0o700)) // takes the inode, if that is free again
		}
		rec := k.sling("echo done > done" + strconv.Itoa(i))
		k.until("it is retired", k.retired(rec.AssignmentID))
		if data, err := os.ReadFile(filepath.Join(k.dir, ".git/setups")); err != nil || len(data) != 2*want {
			t.Errorf("bead %d: %d setups, want %d: %v", i+1, len(data)/2, want, err)
		}
		k.free()
	}
}

// TestProvidedIsNotCommitted: not even by force.
func TestProvidedIsNotCommitted(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "worktree: {copy: [.env]}\n")
	k.write(".env", "SECRET=1\n")
	rec := k.sling("echo done > done; git add -Af . .env; git commit -qm done")
	k.until("it is retired", k.retired(rec.AssignmentID))
	if end := k.record(rec.AssignmentID); end.Outcome != retire.Fail || !strings.Contains(end.Reason, "commits .env, which every worktree gets") {
		t.Errorf("%s: %s", end.Outcome, end.Reason)
	}
}

// TestFurnishFails: it is the environment's fault, and pauses what needs a worktree.
func TestFurnishFails(t *testing.T) {
	t.Parallel()
	outside := gittest.Dir(t)
	for _, tt := range []struct {
		name, worktree, reason string
		prepare                func(k *kennel)
	}{
		{"missing", "copy: [.env]", ".env is not in ", nil},
		{"tracked", "copy: [README]", "git tracks README", nil},
		{"out of the checkout", "copy: [secret]", "secret: path escapes", func(k *kennel) { k.link(outside, "secret") }},
		{"below .git", "link: [conf]", "must stay in the checkout, outside of .git", func(k *kennel) { k.link(".git", "conf") }},
		{"the rig's own", "copy: [conf]", "must stay in the checkout, outside of .git", func(k *kennel) { k.link(".chipset/state", "conf") }},
		{"a pipe in a folder", "copy: [conf]", "neither a file nor a folder", func(k *kennel) {
			k.write("conf/a", "")
			k.fail(unix.Mkfifo(filepath.Join(k.dir, "conf/fifo"), 0o600))
		}},
		{"setup", "setup: 'echo no such module; exit 3'", "exit status 3: no such module", nil},
		{"setup command", "setup: /no/such/npm ci", "/no/such/npm", nil},
		{"setup hangs", "setup: sleep 60, timeout: 1", "no end within worktree.timeout", nil},
		{"setup leaves files", "setup: touch left", "it leaves left, which git does not ignore", nil},
		{"submodules", "submodules: true", "git submodule update --init lib", func(k *kennel) {
			k.write(".gitmodules", "[submodule \"lib\"]\n\tpath = lib\n\turl = https://example.com/lib\n")
			k.git("add", ".gitmodules")
			k.git("update-index", "--add", "--cacheinfo", "160000,"+k.git("rev-parse", "HEAD")+",lib")
			k.git("-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "lib")
		}},
		{"lfs", "lfs: true", "git lfs install", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := newKennel(t, "worktree: {"+tt.worktree+"}\n")
			if tt.prepare != nil {
				tt.prepare(k)
			}
			rec := k.sling("echo done > done")
			k.until("it is retired", k.retired(rec.AssignmentID))
			end := k.record(rec.AssignmentID)
			if end.Fault.Kind != fault.SetupFailed || !strings.Contains(end.Fault.Reason, tt.reason) {
				t.Errorf("%s: %s: %+v", end.Outcome, end.Reason, end.Fault)
			}
			if all, err := k.rig.Pauses.InForce(); err != nil || len(all) != 1 || all[0].Scope != pause.Worktree {
				t.Errorf("%+v, %v", all, err)
			}
		})
	}
}

// TestSetupIsEnded: an assignment that is taken away ends its setup.
func TestSetupIsEnded(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "worktree: {setup: 'touch ready; sleep 60'}\n")
	k.write(".gitignore", "ready\n")
	k.git("add", ".gitignore")
	k.git("-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "ignore")
	rec := k.sling("true")
	go func() {
		for {
			if _, err := os.Stat(filepath.Join(k.rig.Worktree(alpha), "ready")); err == nil || t.Context().Err() != nil {
				break
			}
		}
		_, _ = k.rig.Hooks.Clear(t.Context(), alpha, rec.AssignmentID, k.rig.Clock.Now())
	}()
	for range 4 {
		_, _ = k.p.Tick(t.Context())
	}
	if k.p.worker != nil {
		t.Error("its worker was started")
	}
}

// TestRefineryFurnishes: a test finds what a worker finds, whatever the test before it did. Whose fault a setup is that
// fails, the bare tip tells.
func TestRefineryFurnishes(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: test -f .env && test -f made && rm .env")
	m.rig.Def.Worktree = definition.Worktree{Copy: []string{".env"}, Timeout: time.Minute, SetupWhen: []string{"lock"},
		Setup: definition.Command{Argv: []string{"sh", "-c", "test ! -f bad && touch made"}}}
	m.write(m.dir, ".gitignore", ".chipset/\nmade\n")
	m.git(m.dir, "commit", "-qam", "ignore")
	m.write(m.dir, ".env", "SECRET=1\n")
	for _, name := range []string{"one.txt", "two.txt"} {
		q := m.submit(name, "1\n")
		m.run()
		m.is(q, mergequeue.Merged, bead.Merged)
	}
	bad := m.submit("bad", "1\n", "lock", "1\n")
	m.run()
	if got := m.is(bad, mergequeue.Conflicted, bead.Done); got.Failure != mergequeue.FailCouldNotRun || !strings.Contains(got.Reason, "exit status 1") {
		t.Errorf("%s: %s", got.Failure, got.Reason)
	}
	m.setRequest(bad.ID, func(q *mergequeue.Request) { q.Status = mergequeue.Dropped })
	m.must(os.Remove(filepath.Join(m.dir, ".env")))
	good := m.submit("three.txt", "1\n")
	m.run()
	if got := m.is(good, mergequeue.Pending, bead.Done); !strings.Contains(got.Waiting, "can't be tested: worktree.copy and link: .env is not in") {
		t.Errorf("waits for %q", got.Waiting)
	}
	m.write(m.dir, ".env", "SECRET=1\n")
	m.later(time.Hour)
	m.run()
	m.is(good, mergequeue.Merged, bead.Merged)
}

// TestRefineryRefusesProvided: what worktrees get from the checkout does not land, however it came into a branch.
func TestRefineryRefusesProvided(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: \"true\"")
	m.rig.Def.Worktree = definition.Worktree{Copy: []string{"conf"}, Submodules: true, Timeout: time.Minute}
	m.write(m.dir, "conf/local", "mine\n")
	m.write(m.dir, ".gitmodules", "[submodule \"lib\"]\n\tpath = lib\n\turl = https://example.com/lib\n")
	m.git(m.dir, "add", ".gitmodules")
	m.git(m.dir, "commit", "-qm", "modules")
	for name, reason := range map[string]string{"conf/local": "its branch commits conf, which every worktree gets", ".gitmodules": "its branch changes the address of the submodule lib"} {
		q := m.submit(name, "[submodule \"lib\"]\n\tpath = lib\n\turl = https://example.net/lib\n")
		m.run()
		if got := m.is(q, mergequeue.Conflicted, bead.Done); got.Failure != mergequeue.FailRefused || !strings.HasPrefix(got.Reason, reason) {
			t.Errorf("%s: %s", got.Failure, got.Reason)
		}
		m.setRequest(q.ID, func(q *mergequeue.Request) { q.Status = mergequeue.Dropped })
	}
}

// TestRefineryRefusesWhatARebaseMoves: a rebase that follows a rename is judged by what it has changed.
func TestRefineryRefusesWhatARebaseMoves(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: \"true\"")
	m.rig.Def.Worktree = definition.Worktree{Copy: []string{"conf"}, Timeout: time.Minute}
	m.write(m.dir, "settings", strings.Repeat("a line\n", 20))
	m.git(m.dir, "add", "settings")
	m.git(m.dir, "commit", "-qm", "settings")
	q := m.submit("settings", strings.Repeat("a line\n", 20)+"mine\n")
	m.git(m.dir, "mv", "settings", "conf")
	m.git(m.dir, "commit", "-qm", "renamed")
	m.run()
	if got := m.is(q, mergequeue.Conflicted, bead.Done); got.Failure != mergequeue.FailRefused || !strings.HasPrefix(got.Reason, "its branch commits conf, which every worktree gets") {
		t.Errorf("%s: %s", got.Failure, got.Reason)
	}
}

// free clears the hook for the next bead, as the mayor does.
func (k *kennel) free() {
	k.t.Helper()
	h := k.hook()
	_, err := k.rig.Hooks.Clear(k.t.Context(), alpha, h.Assignment(), k.rig.Clock.Now())
	k.fail(err)
}

func (k *kennel) link(target, name string) {
	k.t.Helper()
	k.fail(os.Symlink(target, filepath.Join(k.dir, name)))
}

func (k *kennel) fail(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}
