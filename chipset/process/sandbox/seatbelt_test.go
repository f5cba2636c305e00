package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSeatbelt is the whole profile of macOS: the write set, what is hidden and what is shown in it, in the order that
// counts, and a folder whose name can't add a rule.
func TestSeatbelt(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(root, name) }
	for _, dir := range []string{"worktree/below", "cache", "home/.ssh", "home/.netrc", "home/.netrc.old", "client", "temp", `x") (allow file-write*`} {
		err = errors.Join(err, os.MkdirAll(at(dir), 0o700))
	}
	if err = errors.Join(err, os.Symlink(at("cache"), at("link"))); err != nil {
		t.Fatal(err)
	}
	p := Profile{Temp: at("temp"), Hide: []string{at("home/.ssh"), at("home/.netrc*"), at("missing")}, Show: []string{at("client")},
		Write: []string{at("worktree"), at("worktree/below"), at("link"), at("missing"), at(`x") (allow file-write*`)}}
	const want = `(version 1)
(allow default)
(deny file-write*)
(deny file-read-data (subpath "/R/home/.ssh") (subpath "/R/home/.netrc") (subpath "/R/home/.netrc.old"))
(allow file-read-data (subpath "/R/client") (subpath "/R/temp") (subpath "/R/worktree") (subpath "/R/cache") (subpath "/R/x\") (allow file-write*"))
(allow file-write* (subpath "/R/temp") (subpath "/R/worktree") (subpath "/R/cache") (subpath "/R/x\") (allow file-write*") (subpath "/dev/null") (subpath "/dev/zero") (subpath "/dev/tty") (subpath "/dev/dtracehelper") (subpath "/dev/fd"))
`
	if diff := cmp.Diff(want, strings.ReplaceAll(p.seatbelt(), root, "/R")); diff != "" {
		t.Error(diff)
	}
	if got := (&Profile{Temp: at("temp")}).seatbelt(); strings.Contains(got, "(deny file-read-data") {
		t.Errorf("nothing is hidden, and yet: %s", got) // a rule without a path would be one for every file
	}
}
