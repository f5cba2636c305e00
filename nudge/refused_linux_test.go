package nudge

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file that the system refuses to read may hold anything: nothing takes its place, and nobody takes it for gone.
func TestFilesThatTheSystemRefuses(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it takes root to become nobody")
	}
	const nobody = 65534
	for _, name := range []string{"latest.json", "from/mayor.json", "seen.json"} {
		s, tree := newSlot(t)
		old := send(t, s, "mayor", Abort, now)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(s.MarkSeen(t.Context(), old))
		send(t, s, "witness", Abort, now)
		must(filepath.WalkDir(tree.Root(), func(at string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(at, nobody, nobody))
		}))
		for up := filepath.Dir(tree.Root()); strings.HasPrefix(up+"/", os.TempDir()+"/"); up = filepath.Dir(up) {
			info, err := os.Stat(up)
			must(err)
			if info.Mode().Perm()&0o011 != 0o011 { // a folder for temporary files that is one person's own
				must(os.Chmod(up, info.Mode().Perm()|0o011))
			}
		}
		at := tree.Abs(s.Dir().Join(name))
		before, err := os.ReadFile(at)
		must(err)
		must(os.Chmod(at, 0))

		must(syscall.Setresuid(-1, nobody, -1)) // of every thread
		newer := Nudge{From: "mayor", Type: HealthCheck, Timestamp: after(5)}
		_, sendErr := s.Send(t.Context(), newer, after(5))
		_, bad, allErr := s.All()
		markErr := s.MarkSeen(t.Context(), newer)
		reconcileErr := s.Reconcile(t.Context(), after(9))
		quarantineErr := s.Quarantine(t.Context(), s.Dir().Join(name), after(9))
		must(syscall.Setresuid(-1, 0, -1))

		if got := errors.Is(sendErr, fs.ErrPermission); got != (name != "seen.json") {
			t.Errorf("%s: send: %v", name, sendErr)
		}
		if got := errors.Is(errors.Join(append(bad, allErr)...), fs.ErrPermission); got != (name != "seen.json") {
			t.Errorf("%s: all: %v, %v", name, bad, allErr)
		}
		if got := errors.Is(markErr, fs.ErrPermission); got != (name == "seen.json") {
			t.Errorf("%s: mark: %v", name, markErr)
		}
		if !errors.Is(reconcileErr, fs.ErrPermission) || !errors.Is(quarantineErr, fs.ErrPermission) {
			t.Errorf("%s: reconcile: %v, quarantine: %v", name, reconcileErr, quarantineErr)
		}
		if now, err := os.ReadFile(at); err != nil || string(now) != string(before) {
			t.Errorf("%s became %q, %v", name, now, err)
		}
	}
}
