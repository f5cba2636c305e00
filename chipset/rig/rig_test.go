package rig

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

const testRig = `agents:
  topology: mayor-witness-polecat
  agents:
    - {name: mayor, role: mayor}
    - {name: witness, role: witness}
    - {name: polecat-pool, role: polecat, count: %d}
rig: {name: test-rig, bead_prefix: tt}
worker: {default: sh}
merge: {target: main, test: "true"}
`

func TestMain(m *testing.M) {
	restore := gittest.Isolate()
	code := m.Run()
	restore()
	os.Exit(code)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	return gittest.Run(t, dir, args...)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	gittest.Write(t, filepath.Dir(path), filepath.Base(path), text)
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}

// tempDir is an absolute path without symlinks, with characters that people use.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return dir
}

func newRepo(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(tempDir(t), "a repo ü")
	gittest.Init(t, dir)
	return dir
}

func initRig(t *testing.T, dir string, polecats int) *Rig {
	t.Helper()
	write(t, filepath.Join(dir, DirName, DefinitionName), fmt.Sprintf(testRig, polecats))
	r, err := Init(t.Context(), InitOptions{Dir: dir, Clock: time.Now})
	must(t, err)
	return r
}

func TestInitMakesAWholeRig(t *testing.T) {
	dir := newRepo(t)
	sub := filepath.Join(dir, "a", "b")
	must(t, os.MkdirAll(sub, 0o755))
	r, err := Init(t.Context(), InitOptions{Dir: sub, Clock: time.Now, Template: definition.TemplateOptions{RigName: "my rig", Worker: "sh", Polecats: 2}, TemplateGiven: true})
	must(t, err)
	if r.Dir != dir {
		t.Errorf("the rig is in %s, not at the top of the repository", r.Dir)
	}
	agents, bad, err := r.Agents.All()
	must(t, err)
	var ids []string
	for _, a := range agents {
		ids = append(ids, string(a.ID))
		if h, err := r.Hooks.Get(string(a.ID)); err != nil || h.Status != hook.Empty {
			t.Errorf("the hook of %s: %+v, %v", a.ID, h, err)
		}
		if a.ID != "mayor" { // mail works before anybody runs
			_, err := r.Sender.Send(t.Context(), mail.Message{From: "mayor", To: a.ID, Type: mail.Coordination, Subject: "hello"})
			must(t, err)
		}
	}
	if want := []string{"human", "mayor", "polecat-alpha", "polecat-bravo", "refinery", "witness"}; !slices.Equal(ids, want) || len(bad) > 0 {
		t.Errorf("agents %v, want %v; bad %v", ids, want, bad)
	}
	// Nothing of the live tree is visible to git: not even clean takes it away.
	if out := gitIn(t, dir, "status", "--porcelain", "--untracked-files=all"); strings.Contains(out, "state/") || !strings.Contains(out, "chipset.yaml") {
		t.Errorf("git status:\n%s", out)
	}
	gitIn(t, dir, "clean", "-ffdq", "--exclude=chipset.yaml")
	gitIn(t, dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "stash", "-u", "-q")
	if err := r.Tree.Verify(); err != nil {
		t.Errorf("after clean and stash: %v", err)
	}
	if read(t, filepath.Join(dir, ".git", "chipset")) != dir+"\n" {
		t.Error("the root is not recorded")
	}
}

func TestInitRefuses(t *testing.T) {
	t.Run("a second rig", func(t *testing.T) {
		dir := newRepo(t)
		r := initRig(t, dir, 1)
		before := read(t, filepath.Join(dir, DirName, DefinitionName))
		for _, at := range []string{dir, filepath.Join(dir, DirName)} {
			if _, err := Init(t.Context(), InitOptions{Dir: at, Clock: time.Now}); !errors.Is(err, state.ErrConflict) {
				t.Errorf("%s: %v, want ErrConflict", at, err)
			}
		}
		again, err := Open(t.Context(), dir, time.Now)
		if err != nil || again.Tree.RigID() != r.Tree.RigID() || read(t, filepath.Join(dir, DirName, DefinitionName)) != before {
			t.Errorf("the first rig was touched: %v", err)
		}
	})
	t.Run("from a worktree of it", func(t *testing.T) {
		dir := newRepo(t)
		initRig(t, dir, 1)
		linked := filepath.Join(tempDir(t), "linked")
		gitIn(t, dir, "worktree", "add", "-q", "--detach", linked)
		if _, err := Init(t.Context(), InitOptions{Dir: linked, Clock: time.Now}); !errors.Is(err, state.ErrConflict) {
			t.Errorf("%v, want ErrConflict", err)
		}
		if _, err := os.Lstat(filepath.Join(linked, DirName)); !errors.Is(err, os.ErrNotExist) {
			t.Error("a tree was begun in the worktree")
		}
	})
	t.Run("options beside a definition", func(t *testing.T) {
		dir := newRepo(t)
		write(t, filepath.Join(dir, DirName, DefinitionName), fmt.Sprintf(testRig, 1))
		_, err := Init(t.Context(), InitOptions{Dir: dir, Clock: time.Now, TemplateGiven: true})
		if !errors.Is(err, state.ErrConflict) {
			t.Errorf("%v, want ErrConflict", err)
		}
		if _, err := os.Lstat(filepath.Join(dir, DirName, "state")); !errors.Is(err, os.ErrNotExist) {
			t.Error("a tree was begun")
		}
	})
	t.Run("a wrong definition", func(t *testing.T) {
		dir := newRepo(t)
		write(t, filepath.Join(dir, DirName, DefinitionName), "agents: {}\nnonsense: 1\n")
		_, err := Init(t.Context(), InitOptions{Dir: dir, Clock: time.Now})
		var problems *DefinitionError
		if !errors.As(err, &problems) {
			t.Errorf("%v, want *DefinitionError", err)
		}
	})
	t.Run("no repository", func(t *testing.T) {
		if _, err := Init(t.Context(), InitOptions{Dir: tempDir(t), Clock: time.Now}); !errors.Is(err, git.ErrNotRepo) {
			t.Errorf("%v, want ErrNotRepo", err)
		}
	})
	t.Run("a bare repository", func(t *testing.T) {
		dir := tempDir(t)
		gitIn(t, dir, "init", "-q", "--bare")
		if _, err := Init(t.Context(), InitOptions{Dir: dir, Clock: time.Now}); !errors.Is(err, git.ErrBare) {
			t.Errorf("%v, want ErrBare", err)
		}
	})
	t.Run("no commits", func(t *testing.T) {
		dir := tempDir(t)
		gitIn(t, dir, "init", "-q")
		if _, err := Init(t.Context(), InitOptions{Dir: dir, Clock: time.Now}); !errors.Is(err, git.ErrNoCommits) {
			t.Errorf("%v, want ErrNoCommits", err)
		}
		if _, err := os.Lstat(filepath.Join(dir, DirName)); !errors.Is(err, os.ErrNotExist) {
			t.Error("a folder was left behind")
		}
	})
	t.Run("a link in the way", func(t *testing.T) {
		dir, other := newRepo(t), tempDir(t)
		must(t, os.Symlink(other, filepath.Join(dir, DirName)))
		if _, err := Init(t.Context(), InitOptions{Dir: dir, Clock: time.Now}); !errors.Is(err, state.ErrConflict) {
			t.Errorf("%v, want ErrConflict", err)
		}
		if left, err := os.ReadDir(other); err != nil || len(left) > 0 {
			t.Errorf("written through the link: %v, %v", left, err)
		}
	})
	t.Run("remains of a lost tree", func(t *testing.T) {
		dir := newRepo(t)
		write(t, filepath.Join(dir, DirName, "state", "mail", "mayor", "x.json"), "{}")
		if _, err := Init(t.Context(), InitOptions{Dir: dir, Clock: time.Now}); !errors.Is(err, state.ErrNoTree) {
			t.Errorf("%v, want ErrNoTree", err)
		}
	})
}

// What the person has committed or written stays as it is.
func TestInitKeepsWhatIsThere(t *testing.T) {
	dir := newRepo(t)
	exclude := filepath.Join(dir, ".git", "info", "exclude")
	write(t, exclude, "mine\n  /.chipset/run/  \nno newline at the end")
	write(t, filepath.Join(dir, DirName, ".gitignore"), "run/\nmine-too\n")
	initRig(t, dir, 1)
	lines := strings.Split(read(t, exclude), "\n")
	for _, want := range []string{"mine", "no newline at the end", "/.chipset/logs/", "/.chipset/worktrees/", "/.chipset/state/"} {
		if !slices.Contains(lines, want) {
			t.Errorf("the exclude file has no line %q: %q", want, lines)
		}
	}
	if strings.Count(read(t, exclude), "/.chipset/run/") != 1 {
		t.Errorf("a line stands twice: %q", lines)
	}
	if got := read(t, filepath.Join(dir, DirName, ".gitignore")); got != "run/\nmine-too\n" {
		t.Errorf(".gitignore is %q", got)
	}

	tracked := newRepo(t)
	write(t, filepath.Join(tracked, DirName, DefinitionName), fmt.Sprintf(testRig, 1))
	must(t, os.RemoveAll(filepath.Join(tracked, ".git", "info")))
	_, err := Init(t.Context(), InitOptions{Dir: tracked, TrackState: true, Clock: time.Now})
	must(t, err)
	if text := read(t, filepath.Join(tracked, ".git", "info", "exclude")); strings.Contains(text, "/.chipset/state/") || !strings.Contains(text, "/.chipset/run/") {
		t.Errorf("with --track-state: %q", text)
	}
}

func TestInitsAtOnce(t *testing.T) {
	dir := newRepo(t)
	write(t, filepath.Join(dir, DirName, DefinitionName), fmt.Sprintf(testRig, 1))
	errs := make([]error, 4)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { _, errs[i] = Init(t.Context(), InitOptions{Dir: dir, Clock: time.Now}) })
	}
	all.Wait()
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, state.ErrConflict) && !errors.Is(err, state.ErrExists):
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d inits won", won)
	}
	if _, err := Open(t.Context(), dir, time.Now); err != nil {
		t.Error(err)
	}
}

// What an interrupted init left undone, the first start completes.
func TestPrepareCompletesInit(t *testing.T) {
	dir := newRepo(t)
	r := initRig(t, dir, 2)
	must(t, os.Remove(filepath.Join(dir, ".git", "chipset")))
	must(t, os.Remove(r.Tree.Abs(r.Agents.Path("polecat-bravo"))))
	must(t, os.Remove(r.Tree.Abs(r.Agents.Path("witness"))))
	must(t, os.Remove(r.Tree.Abs(r.Hooks.Path("witness"))))
	must(t, r.Prepare(t.Context(), r.Def))
	for _, id := range []state.AgentID{"polecat-bravo", "witness"} {
		if a, err := r.Agents.Get(string(id)); err != nil || a.Status != agent.Idle {
			t.Errorf("%s: %+v, %v", id, a, err)
		}
		if h, err := r.Hooks.Get(string(id)); err != nil || h.Status != hook.Empty {
			t.Errorf("the hook of %s: %+v, %v", id, h, err)
		}
	}
	if read(t, filepath.Join(dir, ".git", "chipset")) != dir+"\n" {
		t.Error("the root is not recorded")
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := newRepo(t)
	if _, err := Open(t.Context(), dir, time.Now); !errors.Is(err, ErrNoRig) {
		t.Errorf("without a rig: %v", err)
	}
	r := initRig(t, dir, 1)
	write(t, filepath.Join(dir, DirName, DefinitionName), "nonsense: 1\n")
	var problems *DefinitionError
	if _, err := Open(t.Context(), dir, time.Now); !errors.As(err, &problems) {
		t.Errorf("a wrong definition: %v", err)
	}
	if r, err := OpenState(t.Context(), dir, time.Now); err != nil || r.Mayor() != "mayor" {
		t.Errorf("the state of a rig with a wrong definition: %v", err)
	}
	must(t, os.Remove(r.Tree.Abs("state/rig.json")))
	if _, err := OpenState(t.Context(), dir, time.Now); !errors.Is(err, state.ErrNoTree) {
		t.Errorf("without rig.json: %v", err)
	}
}

func TestSyncRetiresAndRevives(t *testing.T) {
	dir := newRepo(t)
	r := initRig(t, dir, 3)
	small, problems := definition.Parse("chipset.yaml", fmt.Appendf(nil, testRig, 1))
	if len(problems.Errors()) > 0 {
		t.Fatal(problems)
	}
	for _, subject := range []string{"first", "second"} {
		_, err := r.Sender.Send(t.Context(), mail.Message{From: "mayor", To: "polecat-bravo", Type: mail.Coordination, Subject: subject})
		must(t, err)
	}
	alive, err := r.Claim(t.Context(), "polecat-charlie", "ses-1")
	must(t, err)
	defer alive.Unlock()
	for range 2 {
		must(t, r.Sync(t.Context(), small))
	}
	status := func(id state.AgentID) agent.Status {
		a, err := r.Agents.Get(string(id))
		must(t, err)
		return a.Status
	}
	if a, b, c := status("polecat-alpha"), status("polecat-bravo"), status("polecat-charlie"); a == agent.Retired || b != agent.Retired || c == agent.Retired {
		t.Errorf("alpha %s, bravo %s, and charlie who runs %s", a, b, c)
	}
	if _, err := r.Sender.Send(t.Context(), mail.Message{From: "mayor", To: "polecat-bravo", Type: mail.Coordination, Subject: "x"}); !errors.Is(err, state.ErrConflict) {
		t.Errorf("mail to a retired agent: %v", err)
	}
	told, _, err := r.Mailbox(state.Human).List()
	must(t, err)
	if len(told) != 1 || !strings.Contains(told[0].Subject, "polecat-bravo") || !strings.Contains(told[0].Body, "second") {
		t.Errorf("its unread mail is reported as %+v", told)
	}
	alive.Unlock()
	must(t, r.Sync(t.Context(), small))
	if status("polecat-charlie") != agent.Retired {
		t.Error("charlie's process has ended, but it is not retired")
	}
	must(t, r.Sync(t.Context(), r.Def))
	if b, c := status("polecat-bravo"), status("polecat-charlie"); b != agent.Idle || c != agent.Idle {
		t.Errorf("named again: bravo %s, charlie %s", b, c)
	}
}

const envClaim = "RIG_TEST_CLAIM"

// TestClaimChild is the process that claims for the test below.
func TestClaimChild(t *testing.T) {
	dir := os.Getenv(envClaim)
	if dir == "" {
		t.Skip("it is started by another test")
	}
	r, err := Open(t.Context(), dir, time.Now)
	must(t, err)
	lock, err := r.Claim(t.Context(), "mayor", "ses-child")
	must(t, err)
	defer lock.Unlock()
	fmt.Println("claimed")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestClaimByTwoProcesses(t *testing.T) {
	dir := newRepo(t)
	r := initRig(t, dir, 1)
	if s, alive := r.Alive("mayor"); alive || s.AgentID != "mayor" {
		t.Errorf("before anybody runs: %+v, %v", s, alive)
	}
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestClaimChild$")
	child.Env = append(os.Environ(), envClaim+"="+dir)
	in, err := child.StdinPipe()
	must(t, err)
	defer in.Close()
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "claimed\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	_, err = r.Claim(t.Context(), "mayor", "ses-mine")
	var owned *ClaimedError
	if !errors.As(err, &owned) || owned.Stamp.PID != child.Process.Pid || !errors.Is(err, state.ErrConflict) || !strings.Contains(err.Error(), fmt.Sprint(child.Process.Pid)) {
		t.Errorf("a second claim: %v, want *ClaimedError with pid %d", err, child.Process.Pid)
	}
	if s, alive := r.Alive("mayor"); !alive || s.PID != child.Process.Pid || s.Session != "ses-child" {
		t.Errorf("%+v, %v", s, alive)
	}
	other, err := r.Claim(t.Context(), "witness", "ses-mine") // another agent is free
	must(t, err)
	other.Unlock()
	kill() // kill -9: the lock goes with the process
	_ = child.Wait()
	if s, alive := r.Alive("mayor"); alive {
		t.Errorf("the dead process is alive: %+v", s)
	}
	mine, err := r.Claim(t.Context(), "mayor", "ses-mine")
	must(t, err)
	defer mine.Unlock()
	if s, alive := r.Alive("mayor"); !alive || s.PID != os.Getpid() || s.Session != "ses-mine" {
		t.Errorf("%+v, %v", s, alive)
	}
}

// A probe never makes a claim fail, and a stamp that can't be read is no proof
// of anything.
func TestClaimWhileOthersLook(t *testing.T) {
	r := initRig(t, newRepo(t), 1)
	write(t, r.Tree.Abs(stampPath("mayor")), "nonsense")
	stop := make(chan struct{})
	var lookers sync.WaitGroup
	for range 4 {
		lookers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					r.Alive("mayor")
				}
			}
		})
	}
	for range 20 {
		lock, err := r.Claim(t.Context(), "mayor", "ses-1")
		if err != nil {
			t.Error(err)
			break
		}
		lock.Unlock()
	}
	close(stop)
	lookers.Wait()
}

// The tree of another rig in the place of this one is not taken for it.
func TestOpenNoticesAnotherRigsTree(t *testing.T) {
	r := initRig(t, newRepo(t), 1)
	id := filepath.Join(r.Tree.Root(), "state", "rig.json")
	if err := os.WriteFile(id, []byte("{\n  \"format\": 1,\n  \"rig_id\": \"rig-another\"\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), r.Dir, time.Now); !errors.Is(err, state.ErrNoTree) {
		t.Errorf("Open over another rig's tree: %v, want ErrNoTree", err)
	}
}

// A rig that was copied whole gets links of its own to its worktrees. What is staged in
// them stays so, and no file of the rig that it was copied from changes.
func TestSettleCopy(t *testing.T) {
	dir := newRepo(t)
	r := initRig(t, dir, 1)
	head := git.Hash(gitIn(t, dir, "rev-parse", "HEAD"))
	must(t, r.Git.PrepareWorktree(t.Context(), r.Worktree("polecat-alpha"), "polecat/x", head))
	write(t, filepath.Join(r.Worktree("polecat-alpha"), "staged"), "x")
	gitIn(t, r.Worktree("polecat-alpha"), "add", "staged")
	links := func(dir string) string {
		return read(t, filepath.Join(dir, ".git", "worktrees", "polecat-alpha", "gitdir")) + read(t, filepath.Join(dir, DirName, "worktrees", "polecat-alpha", ".git"))
	}
	before := links(dir)

	copied := filepath.Join(tempDir(t), "copy")
	must(t, os.CopyFS(copied, os.DirFS(dir)))
	c, err := Open(t.Context(), copied, time.Now)
	must(t, err)
	if from := c.CopyOf(); from != dir {
		t.Errorf("a copy of %q", from)
	}
	must(t, c.RestoreGuards(t.Context()))
	if from := c.CopyOf(); from != "" {
		t.Errorf("still a copy of %q", from)
	}
	if want := strings.ReplaceAll(before, dir+"/", copied+"/"); links(copied) != want {
		t.Errorf("the links of the copy:\n%s", links(copied))
	}
	if links(dir) != before {
		t.Errorf("the links of the original:\n%s", links(dir))
	}
	if status := gitIn(t, c.Worktree("polecat-alpha"), "status", "--porcelain"); status != "A  staged" {
		t.Errorf("in the worktree of the copy: %q", status)
	}
}
