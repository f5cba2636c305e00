package execute

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// A file on which the person's filter fails is the request's own fault, and holds nobody up. A filter that fails on
// what the target holds is not, whatever a request changes.
func TestRefineryFilterThatFails(t *testing.T) {
	t.Parallel()
	m := newMill(t, "test: \"true\"\nprotect: []")
	filter := filepath.Join(m.TempDir(), "filter")
	set := func(fails string) {
		m.must(os.WriteFile(filter, []byte("#!/bin/sh\ntext=$(cat)\ncase $text in "+fails+") echo it is locked >&2; exit 1;; esac\nprintf '%s\\n' \"$text\"\n"), 0o755)) //nolint:gosec // it is executed
	}
	set("bad*")
	m.git(m.dir, "config", "filter.secret.clean", "cat")
	m.git(m.dir, "config", "filter.secret.smudge", filter)
	m.git(m.dir, "config", "filter.secret.required", "true")
	m.write(m.dir, ".gitattributes", "*.secret filter=secret\n")
	m.write(m.dir, "one.secret", "good\n")
	m.git(m.dir, "add", "-A")
	m.git(m.dir, "commit", "-q", "-m", "secrets")

	bad := m.submit("two.secret", "bad\n")
	honest := m.submit("three.secret", "good\n")
	m.run()
	if got := m.is(bad, mergequeue.Conflicted, bead.Done); got.Failure != mergequeue.FailRefused || !strings.Contains(got.Reason, "it is locked") {
		t.Errorf("%s: %s", got.Failure, got.Reason)
	}
	m.setRequest(bad.ID, func(q *mergequeue.Request) { q.Status = mergequeue.Dropped })
	m.run()
	m.is(honest, mergequeue.Merged, bead.Merged)

	locked := m.submit("one.txt", "1\n", "four.secret", "good\n")
	set("*")
	m.run()
	if got := m.is(locked, mergequeue.Merging, bead.Done); !strings.Contains(got.Waiting, "it is locked") {
		t.Errorf("waits for %q", got.Waiting)
	}
}
