package state

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const limitedEnv = "STATE_TEST_LIMITED"

// TestMain lets the test binary be a process whose files may not grow, which
// fails a write half way as a full disk does. It must be another process: the
// limit would hit the files of the tests' own framework.
func TestMain(m *testing.M) {
	if root := os.Getenv(limitedEnv); root != "" {
		os.Exit(limited(root))
	}
	os.Exit(m.Run())
}

// limited tries both ways of writing more than the limit, and tells on standard
// output how each ended.
func limited(root string) int {
	tree, err := Open(root)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 4, Max: 4}); err != nil {
		fmt.Println(err)
		return 1
	}
	long := []byte(strings.Repeat("x", 4096))
	for _, err := range []error{tree.Replace("state/hooks/a.json", long), tree.WriteNew("state/hooks/b.json", long)} {
		fmt.Println(errors.Is(err, syscall.EFBIG), err)
	}
	return 0
}

func TestFailedWritesLeaveNothing(t *testing.T) {
	tree := newTree(t)
	must(t, tree.Replace("state/hooks/a.json", []byte("old\n")))
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), limitedEnv+"="+tree.Root())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i, name := range []string{"state/hooks/a.json", "state/hooks/b.json"} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], "true ") || !strings.Contains(lines[i], name) {
			t.Errorf("%s: %q, want EFBIG with the path", name, out)
		}
	}
	if data, _ := tree.Read("state/hooks/a.json", MaxFile); string(data) != "old\n" {
		t.Errorf("the old content became %q", data)
	}
	if there, _ := tree.Exists("state/hooks/b.json"); there {
		t.Error("a failed WriteNew left a file")
	}
	if left := leftovers(t, tree); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}
