package git

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// Answers never are older than what git itself would say.
func TestCoprocessSeesWhatIsNew(t *testing.T) {
	f := newFixture(t)
	top := f.TopLevel()
	f.see("HEAD", f.head(top))
	for _, then := range [][]string{{"gc", "-q"}, {"repack", "-q", "-a", "-d"}, {"pack-refs", "--all"}, {"switch", "-q", "-c", "side"}} {
		h := f.commit(top, map[string]string{"n": then[0]})
		f.see("HEAD", h)
		f.see(string(h), h)
		f.git(top, then...)
		f.see("HEAD", h)
		f.see(string(h), h)
	}
	f.git(top, "update-ref", "refs/heads/side", "HEAD~1")
	f.see("refs/heads/side", Hash(f.git(top, "rev-parse", "HEAD")))
	if _, found, err := f.info(f.ctx, "refs/heads/none"); found || err != nil {
		t.Errorf("%v, %v", found, err)
	}
}

func (f *fixture) see(revision string, want Hash) {
	f.Helper()
	if o, found, err := f.info(f.ctx, revision); err != nil || !found || o.hash != want {
		f.Fatalf("%s is %+v %v %v, want %s", revision, o, found, err, want)
	}
}

// One that was killed, closed, or asked for what kills it answers the next question.
func TestCoprocessStartsAgain(t *testing.T) {
	f := newFixture(t)
	h := f.head(f.TopLevel())
	f.see("HEAD", h)
	f.must(f.objects.cmd.Process.Kill())
	f.see("HEAD", h)
	f.Close()
	f.Close()
	f.see("HEAD", h)
	torn := f.commit(f.TopLevel(), map[string]string{"n": "n"})
	f.spoil(torn, func(whole []byte) []byte { return whole[:len(whole)-4] })
	if _, _, err := f.content(f.ctx, string(torn)); err == nil {
		t.Error("no error for a torn commit")
	}
	f.see(string(h), h)
}

func TestCoprocessEndsWithItsContext(t *testing.T) {
	f := newFixture(t)
	f.see("HEAD", f.head(f.TopLevel()))
	ctx, cancel := context.WithCancel(f.ctx)
	process := f.objects.cmd.Process.Pid
	err := f.ask(ctx, &f.objects, "", func(from *bufio.Reader) error {
		cancel()
		_, err := from.ReadByte() // nothing was asked, so nothing comes
		return err
	})
	f.wantErr(err, context.Canceled)
	f.wantErr(f.ask(ctx, &f.objects, "", nil), context.Canceled)
	f.see("HEAD", f.head(f.TopLevel()))
	if f.objects.cmd.Process.Pid == process {
		t.Error("the process still runs")
	}
}

func TestCoprocessIsSharedByMany(t *testing.T) {
	f := newFixture(t)
	h, tree := f.head(f.TopLevel()), Hash(f.git(f.TopLevel(), "rev-parse", "HEAD^{tree}"))
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for _, want := range []Hash{h, tree, h, tree} {
		all.Go(func() {
			for range 50 {
				o, _, err := f.content(f.ctx, string(want))
				if err == nil && o.hash != want {
					err = errors.New("the answer is another's")
				}
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	f.must(failed)
}

// What only answers questions is at work on nothing.
func TestNoneRunningBesideCoprocesses(t *testing.T) {
	f := newFixture(t)
	if !f.NoneRunning(f.TopLevel()) {
		t.Skip("this system does not show its processes")
	}
	h := f.commit(f.TopLevel(), map[string]string{"n": "n"})
	if paths, err := f.ChangedPaths(f.ctx, Hash(f.git(f.TopLevel(), "rev-parse", "HEAD~1")), h); err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	if !f.NoneRunning(f.TopLevel()) {
		t.Error("took a coprocess for a git at work")
	}
}

// Another program in the checkout is no git at work.
func TestNoneRunningBesideOtherPrograms(t *testing.T) {
	f := newFixture(t)
	if !f.NoneRunning(f.TopLevel()) {
		t.Skip("this system does not show its processes")
	}
	cmd := exec.Command("cat")
	cmd.Dir = f.TopLevel()
	in, err := cmd.StdinPipe()
	f.must(err)
	f.must(cmd.Start())
	if !f.NoneRunning(f.TopLevel()) {
		t.Error("took another program for a git at work")
	}
	f.must(in.Close())
	f.must(cmd.Wait())
}

// A git of somebody's is at work in the repository wherever in the checkout it was started.
func TestNoneRunningSeesAGit(t *testing.T) {
	f := newFixture(t)
	if !f.NoneRunning(f.TopLevel()) {
		t.Skip("this system does not show its processes")
	}
	for where, args := range map[string][]string{f.TopLevel(): {"hash-object", "--stdin"}, f.CommonDir(): {"hash-object", "--stdin"},
		f.TempDir(): {"--git-dir=" + f.CommonDir(), "hash-object", "--stdin"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = where
		in, err := cmd.StdinPipe()
		f.must(err)
		f.must(cmd.Start())
		if f.NoneRunning(f.TopLevel()) {
			t.Errorf("git %q in %s is not seen", args, where)
		}
		f.must(in.Close())
		f.must(cmd.Wait())
	}
}

// What commits hold does not depend on the index of a person's checkout.
func TestCoprocessHeedsNoIndex(t *testing.T) {
	f := newFixture(t)
	base := f.head(f.TopLevel())
	h := f.commit(f.TopLevel(), map[string]string{"one.txt": "1"})
	f.must(os.WriteFile(filepath.Join(f.common, "index"), nil, 0o600))
	paths, err := f.ChangedPaths(f.ctx, base, h)
	if err != nil || !slices.Equal(paths, []string{"one.txt"}) {
		t.Errorf("changed %q, %v", paths, err)
	}
	if _, err := os.Stat(filepath.Join(f.common, "chipset-no-index")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an index was made: %v", err)
	}
}
