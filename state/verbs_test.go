package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func pidText() string { return strconv.Itoa(os.Getpid()) }

// leftovers lists what a failed verb must not leave.
func leftovers(t *testing.T, tree *Tree) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(tree.Abs(StateDir), func(p string, e os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), ".") {
			found = append(found, p)
		}
		return nil
	})
	must(t, err)
	return found
}

func TestWriteNewNeverReplaces(t *testing.T) {
	tree := newTree(t)
	const p Path = "state/mail/mayor/a.json"
	must(t, tree.WriteNew(p, []byte("first\n")))
	if err := tree.WriteNew(p, []byte("second\n")); !errors.Is(err, ErrExists) {
		t.Fatalf("second WriteNew: %v, want ErrExists", err)
	}
	if data, _ := tree.Read(p, MaxFile); string(data) != "first\n" {
		t.Errorf("content %q", data)
	}
	if left := leftovers(t, tree); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestWriteNewRefusesWhateverStandsThere(t *testing.T) {
	tree := newTree(t)
	must(t, tree.MkdirAll("state/work"))
	must(t, os.Symlink("/nowhere", tree.Abs("state/work/link.json")))
	must(t, os.Mkdir(tree.Abs("state/work/dir.json"), 0o755))
	must(t, unix.Mkfifo(tree.Abs("state/work/fifo.json"), 0o644))
	for _, name := range []string{"link", "dir", "fifo"} {
		if err := tree.WriteNew(Path("state/work/"+name+".json"), []byte("{}")); !errors.Is(err, ErrExists) {
			t.Errorf("%s: %v, want ErrExists", name, err)
		}
	}
}

func TestOneWinnerPublishes(t *testing.T) {
	tree := newTree(t)
	const writers = 16
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() { errs[i] = tree.WriteNew("state/work/a.json", fmt.Appendf(nil, "%d", i)) })
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Errorf("%d and %d both won", winner, i)
		case err == nil:
			winner = i
		case !errors.Is(err, ErrExists):
			t.Errorf("writer %d: %v", i, err)
		}
	}
	if data, _ := tree.Read("state/work/a.json", MaxFile); string(data) != strconv.Itoa(winner) {
		t.Errorf("content %q is not that of the winner %d", data, winner)
	}
}

// A crash between link and unlink leaves the temp name beside the real one.
func TestSecondNameOfOwnPublicationIsRead(t *testing.T) {
	tree := newTree(t)
	plant(t, tree, "state/work/a.json", "{}")
	must(t, os.Link(tree.Abs("state/work/a.json"), tree.Abs("state/work/.tmp-99999999-x")))
	if _, err := tree.Read("state/work/a.json", MaxFile); err != nil {
		t.Errorf("own leftover: %v", err)
	}
	must(t, os.Link(tree.Abs("state/work/a.json"), filepath.Join(t.TempDir(), "third")))
	if _, err := tree.Read("state/work/a.json", MaxFile); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a name outside: %v, want ErrNotRegular", err)
	}
}

// On an ext4 without a journal a power cut can leave every name that a file had.
func TestNamesOfOwnPublicationGoAtOnce(t *testing.T) {
	tree := newTree(t)
	plant(t, tree, "state/work/a.json", "{}")
	for _, name := range []Path{".a.json123", ".a.json456"} {
		must(t, os.Link(tree.Abs("state/work/a.json"), tree.Abs(Path("state/work").Join(string(name)))))
	}
	if _, err := tree.Read("state/work/a.json", MaxFile); err != nil {
		t.Errorf("with two names of its own publication: %v", err)
	}
	n, err := tree.RemoveTempFiles(time.Now())
	must(t, err)
	if data, err := tree.Read("state/work/a.json", MaxFile); n != 2 || string(data) != "{}" {
		t.Errorf("swept %d, want 2; the file holds %q, %v", n, data, err)
	}
}

func TestReplaceDoesNotFollowALink(t *testing.T) {
	tree := newTree(t)
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte("mine"), 0o644))
	must(t, tree.MkdirAll("state/hooks"))
	must(t, os.Symlink(outside, tree.Abs("state/hooks/a.json")))
	must(t, tree.Replace("state/hooks/a.json", []byte("new\n")))
	if data, _ := os.ReadFile(outside); string(data) != "mine" {
		t.Errorf("the file outside holds %q", data)
	}
	if data, err := tree.Read("state/hooks/a.json", MaxFile); string(data) != "new\n" || err != nil {
		t.Errorf("content %q, %v", data, err)
	}
}

func TestReadOnlyFolder(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root writes everywhere")
	}
	tree := newTree(t)
	must(t, tree.Replace("state/hooks/a.json", []byte("old\n")))
	must(t, os.Chmod(tree.Abs("state/hooks"), 0o500))
	defer os.Chmod(tree.Abs("state/hooks"), 0o755)
	if err := tree.Replace("state/hooks/a.json", []byte("new\n")); !errors.Is(err, os.ErrPermission) {
		t.Errorf("Replace: %v, want ErrPermission", err)
	}
	if err := tree.WriteNew("state/hooks/b.json", nil); !errors.Is(err, os.ErrPermission) {
		t.Errorf("WriteNew: %v, want ErrPermission", err)
	}
}

func TestMove(t *testing.T) {
	tree := newTree(t)
	must(t, tree.WriteNew("state/mail/a/x.json", []byte("1")))
	must(t, tree.Move("state/mail/a/x.json", "state/mail/a/archive/x.json"))
	if err := tree.Move("state/mail/a/x.json", "state/mail/a/archive/y.json"); !errors.Is(err, ErrNotFound) {
		t.Errorf("moving nothing: %v, want ErrNotFound", err)
	}
	must(t, tree.WriteNew("state/mail/a/x.json", []byte("2")))
	if err := tree.Move("state/mail/a/x.json", "state/mail/a/archive/x.json"); !errors.Is(err, ErrExists) {
		t.Errorf("onto a name that is taken: %v, want ErrExists", err)
	}
	if data, _ := tree.Read("state/mail/a/archive/x.json", MaxFile); string(data) != "1" {
		t.Errorf("the target holds %q", data)
	}
}

func TestAppendClosesATornLine(t *testing.T) {
	tree := newTree(t)
	const p Path = "state/events/2026-01-01.jsonl"
	plant(t, tree, p, `{"torn":`)
	must(t, tree.Append(p, []byte("{\"whole\":1}\n")))
	must(t, tree.SyncFile(p))
	if data, _ := tree.Read(p, MaxFile); string(data) != "{\"torn\":\n{\"whole\":1}\n" {
		t.Errorf("content %q", data)
	}
}

// Append writes neither through a second name of a file outside nor into a FIFO.
func TestAppendRefusesWhatIsNotItsFile(t *testing.T) {
	tree := newTree(t)
	must(t, tree.MkdirAll("state/events"))
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte("mine\n"), 0o600))
	const linked, fifo Path = "state/events/2026-01-01.jsonl", "state/events/2026-01-02.jsonl"
	must(t, os.Link(outside, tree.Abs(linked)))
	must(t, unix.Mkfifo(tree.Abs(fifo), 0o600))
	if err := tree.Append(linked, []byte("{}\n")); !errors.Is(err, ErrHardLinked) {
		t.Errorf("a hard link: %v", err)
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "mine\n" {
		t.Errorf("outside: %q, %v", data, err)
	}
	if err := tree.Append(fifo, []byte("{}\n")); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a FIFO: %v", err)
	}
}

func TestAppendFromMany(t *testing.T) {
	tree := newTree(t)
	const p Path = "state/events/2026-01-01.jsonl"
	line := strings.Repeat("x", 3000) + "\n"
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if err := tree.Append(p, []byte(line)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	data, err := tree.Read(p, MaxFile)
	must(t, err)
	whole := 0
	for got := range strings.Lines(string(data)) {
		switch got {
		case line:
			whole++
		case "\n": // took a line in the making for a torn one
		default:
			t.Fatalf("a line was mixed or cut: %d bytes", len(got))
		}
	}
	if whole != 160 {
		t.Errorf("%d lines, want 160", whole)
	}
}

func TestRemove(t *testing.T) {
	tree := newTree(t)
	must(t, tree.WriteNew("state/dispatch/a.json", nil))
	must(t, tree.Remove("state/dispatch/a.json"))
	must(t, tree.Remove("state/dispatch/a.json"))
	must(t, tree.Remove("state/none/a.json"))
}

func TestQuarantine(t *testing.T) {
	tree := newTree(t)
	now := At(fixedTime)
	plant(t, tree, "state/mail/mayor/bad\nname.json", "{")
	must(t, os.Mkdir(tree.Abs("state/mail/mayor/folder.json"), 0o755))
	must(t, os.Symlink("/etc/passwd", tree.Abs("state/mail/mayor/link.json")))
	for _, name := range []string{"bad\nname.json", "folder.json", "link.json"} {
		p := Path("state/mail/mayor").Join(name)
		q, err := tree.Quarantine(p, "why", now)
		must(t, err)
		if there, _ := tree.Exists(p); there {
			t.Errorf("%q is still there", name)
		}
		if _, err := os.Lstat(tree.Abs(QuarantineDir.Join(q.File))); err != nil {
			t.Errorf("%q is not in the quarantine: %v", name, err)
		}
	}
	if _, err := tree.Quarantine("state/mail/mayor/none.json", "why", now); err != nil {
		t.Errorf("what somebody else moved first: %v", err)
	}
	plant(t, tree, "state/quarantine/x.reason.json", "{")
	all, err := tree.Quarantined()
	if err != nil || len(all) != 4 || all[3].File != "x.reason.json" || all[3].Path != "state/quarantine/x.reason.json" || all[3].Reason == "" {
		t.Errorf("with a damaged reason: %+v, %v", all, err)
	}
	must(t, tree.Remove("state/quarantine/x.reason.json"))
	plant(t, tree, "state/hooks/a.json", "broken")
	_, err = tree.QuarantineCopy("state/hooks/a.json", "why", now)
	must(t, err)
	if data, _ := tree.Read("state/hooks/a.json", MaxFile); string(data) != "broken" {
		t.Errorf("the hook was changed to %q", data)
	}
	all, err = tree.Quarantined()
	must(t, err)
	if len(all) != 4 {
		t.Fatalf("%d entries, want 4: %+v", len(all), all)
	}
	for _, q := range all {
		if q.Reason != "why" || q.Copied != (q.Path == "state/hooks/a.json") {
			t.Errorf("entry %+v", q)
		}
	}
}

func TestQuarantineThatWasHalfDoneIsEnded(t *testing.T) {
	tree := newTree(t)
	const p = Path("state/mail/mayor/bad.json")
	now := At(fixedTime)
	plant(t, tree, p, "{")
	first, err := tree.Quarantine(p, "why", now)
	must(t, err)
	plant(t, tree, p, "{") // the copy was there, and the original not removed yet
	second, err := tree.Quarantine(p, "why", now)
	must(t, err)
	if there, _ := tree.Exists(p); there || second.File != first.File {
		t.Errorf("moved to %s and then to %s, still there: %v", first.File, second.File, there)
	}
	plant(t, tree, p, "{ other")
	if third, err := tree.Quarantine(p, "why", now); err != nil || third.File == first.File {
		t.Errorf("something else went to %s, %v", third.File, err)
	}
	// A copy beside which the original was left is another matter.
	plant(t, tree, p, "{ copied")
	copied, err := tree.QuarantineCopy(p, "why", now)
	must(t, err)
	if moved, err := tree.Quarantine(p, "why", now); err != nil || moved.Copied || moved.File == copied.File {
		t.Errorf("moved after a copy: %+v, %v", moved, err)
	}
	// A reason that lies about its file does not lead out of the quarantine.
	plant(t, tree, p, "{ lie")
	plant(t, tree, "state/quarantine/lie.reason.json", `{"at":"2026-03-05T10:30:00.000000000Z","file":"../mail/mayor/bad.json","path":"state/mail/mayor/bad.json","reason":"x"}`)
	fourth, err := tree.Quarantine(p, "why", now)
	must(t, err)
	if data, err := tree.Read(QuarantineDir.Join(fourth.File), MaxFile); err != nil || string(data) != "{ lie" {
		t.Errorf("%s holds %q, %v", fourth.File, data, err)
	}
}
