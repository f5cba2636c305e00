package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/view"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// asNobody runs f without the privilege to read everything.
func asNobody(t *testing.T, dir string, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	const nobody = 65534
	must(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	}))
	for up := filepath.Dir(dir); strings.HasPrefix(up, os.TempDir()+"/"); up = filepath.Dir(up) {
		must(t, os.Chmod(up, 0o755))
	}
	must(t, syscall.Setresuid(-1, nobody, -1)) // of every thread
	defer func() { must(t, syscall.Setresuid(-1, 0, -1)) }()
	if _, err := os.Lstat(filepath.Join(dir, ".chipset")); err != nil {
		t.Skipf("nobody does not reach the folder for tests: %v", err)
	}
	f()
}

// TestFilesThatTheSystemRefuses: each is named with its path, none is taken for
// damaged, and all others are read.
func TestFilesThatTheSystemRefuses(t *testing.T) {
	f := newFixture(t)
	f.PutBead("gt-aaaaa", bead.Open, nil)
	f.PutBead("gt-bbbbb", bead.Open, nil)
	f.PutBead("gt-ccccc", bead.Open, nil)
	var names []mail.Name
	for range 2 {
		n, err := f.Sender.Send(t.Context(), mail.Message{From: "mayor", To: alpha, Type: mail.Coordination, Subject: "s", Body: "b", ID: string('a' + rune(len(names)))})
		must(t, err)
		names = append(names, n)
	}
	toHuman, err := f.Sender.Send(t.Context(), mail.Message{From: "mayor", To: state.Human, Type: mail.Coordination, Subject: "s", Body: "b"})
	must(t, err)
	refused := []state.Path{state.Path("state/mail/human").Join(string(toHuman)), "state/work/gt-aaaaa.json", "state/work/gt-bbbbb.json", state.Path("state/mail/polecat-alpha").Join(string(names[0]))}
	for _, p := range refused {
		must(t, os.Chmod(f.Tree.Abs(p), 0))
	}
	asNobody(t, f.Dir, func() {
		unread, bad, err := f.Mailbox(alpha).Unread()
		if err != nil || len(unread) != 1 || len(bad) != 1 {
			t.Errorf("the mailbox: %v, %v, %v", unread, bad, err)
		}
		again := mail.Message{From: "mayor", To: alpha, Type: mail.Coordination, Subject: "s", Body: "b", ID: "a"}
		if n, err := f.Sender.Send(t.Context(), again); !errors.Is(err, state.ErrRefused) {
			t.Errorf("sent twice, as %s: %v", n, err)
		}
		if all, err := f.Mailbox(alpha).Select(false, func(state.Time, state.AgentID) bool { return true }); !errors.Is(err, state.ErrRefused) {
			t.Errorf("selected %v, %v", all, err)
		}
		s, err := view.GetStatus(t.Context(), f.Rig)
		must(t, err)
		for _, p := range refused {
			if !strings.Contains(strings.Join(s.Warnings, "\n"), string(p)) {
				t.Errorf("the status does not tell of %s: %q", p, s.Warnings)
			}
		}
		found, err := Doctor(t.Context(), f.Rig, true)
		if err != nil {
			t.Error(err)
		}
		told := map[state.Path]bool{}
		for _, s := range found {
			if s.Rule == ruleUnreadable && !s.Fixed && strings.Contains(s.Detail, "permission denied") && strings.Contains(s.Hint, "user who runs the rig") {
				told[state.Path(s.Path)] = true
			}
		}
		for _, p := range refused {
			if !told[p] {
				t.Errorf("nothing tells of %s: %+v", p, found)
			}
			if _, err := os.Lstat(f.Tree.Abs(p)); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestWhatTheDiskRefuses: only where permissions are the reason, they are the hint.
func TestWhatTheDiskRefuses(t *testing.T) {
	for why, hint := range map[syscall.Errno]string{syscall.EACCES: "user who runs the rig", syscall.EPERM: "user who runs the rig", syscall.EIO: "the disk", syscall.EMFILE: "the disk"} {
		at := &os.PathError{Op: "open", Path: "state/x", Err: why}
		for _, err := range []error{at, &state.Corruption{Path: "state/x", Reason: why.Error(), Cause: errors.Join(state.ErrRefused, why)}} {
			f := unreadable(err, func(context.Context, *state.Corruption) error { return nil })
			if f.Path != "state/x" || f.repair != nil || !strings.Contains(f.Hint, hint) || !strings.Contains(f.Detail, why.Error()) {
				t.Errorf("%v: %+v", err, f)
			}
		}
	}
}

// TestARepositoryThatGitRefuses is told of with git's reason.
func TestARepositoryThatGitRefuses(t *testing.T) {
	f := newFixture(t)
	f.put(f.inGit("config"), "[core\n")
	r, err := rig.OpenState(t.Context(), f.Dir, f.Clock)
	must(t, err)
	found, err := Doctor(t.Context(), r, false)
	must(t, err)
	for _, s := range found {
		if s.Rule == "repository" && strings.Contains(s.Detail, "bad config") {
			return
		}
	}
	t.Errorf("%+v", found)
}
