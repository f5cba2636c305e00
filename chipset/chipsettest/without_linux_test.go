package chipsettest_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
	"github.com/gastown-chipset/chipset/state/bead"
)

// withheld are filters by which a kernel seems to lack something.
func withheld() map[string][]unix.SockFilter {
	const load, equal, bits, answer = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	const fails, firstArgument = 0x00050000, 16 // SECCOMP_RET_ERRNO; the offset in struct seccomp_data
	refuse := func(call uint32) []unix.SockFilter {
		return []unix.SockFilter{{Code: load}, {Code: equal, K: call, Jf: 1}, {Code: answer, K: fails | uint32(unix.ENOSYS)}}
	}
	return map[string][]unix.SockFilter{
		"landlock": refuse(unix.SYS_LANDLOCK_CREATE_RULESET),
		"seccomp":  refuse(unix.SYS_SECCOMP),
		"namespaces": append(refuse(unix.SYS_CLONE3), unix.SockFilter{Code: equal, K: unix.SYS_CLONE, Jf: 3}, unix.SockFilter{Code: load, K: firstArgument},
			unix.SockFilter{Code: bits, K: unix.CLONE_NEWNET | unix.CLONE_NEWUSER, Jf: 1}, unix.SockFilter{Code: answer, K: fails | uint32(unix.EPERM)}),
	}
}

// TestBecomeWithout executes a program on a machine that seems to lack something.
func TestBecomeWithout(t *testing.T) {
	filter, ok := withheld()[os.Getenv("CHIPSET_WITHOUT")]
	if !ok {
		t.Skip("it is run by TestWithout")
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000}) // SECCOMP_RET_ALLOW
	runtime.LockOSThread()
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
	}
	runtime.KeepAlive(filter)
	t.Fatal(errors.Join(err, syscall.Exec(flag.Arg(0), flag.Args(), os.Environ())))
}

// TestWithout: what a machine lacks is said, auto takes the rest, and who wants a whole sandbox, or a list of hosts, runs nothing
// without it: nobody is charged.
func TestWithout(t *testing.T) {
	if kind, missing := sandbox.Kind(); missing != "" || sandbox.NetworkMissing() != nil {
		t.Skipf("this machine itself has only %q: %s", kind, missing)
	}
	bin, self := chipsettest.Build(t), executable(t)
	for _, tt := range []struct {
		missing, box, more string
		// says is what status says, and why what the attempt ends with; "" means that the bead lands.
		says, why string
	}{
		{"landlock", "auto", "", "none, workers and tests can do what you can: no Landlock: function not implemented", ""},
		{"landlock", "require", "", "required, nothing can run: no Landlock: function not implemented", "no Landlock: function not implemented"},
		{"seccomp", "auto", "", "no seccomp: function not implemented", ""},
		{"seccomp", "require", "", "required, nothing can run: no seccomp: function not implemented", "no seccomp: function not implemented"},
		{"namespaces", "auto", "", "landlock", ""},
		{"namespaces", "auto", "network: {allow: [example.org]}", "nothing can run: no namespaces: operation not permitted", "network.allow can't be enforced on this machine"},
	} {
		t.Run(strings.TrimSpace(tt.missing+" "+tt.box+" "+tt.more), func(t *testing.T) {
			t.Parallel()
			wrapper := filepath.Join(t.TempDir(), "chipset")
			text := fmt.Sprintf("#!/bin/sh\nCHIPSET_WITHOUT=%s exec '%s' -test.run='^TestBecomeWithout$' -- '%s' \"$@\"\n", tt.missing, self, bin)
			if err := os.WriteFile(wrapper, []byte(text), 0o755); err != nil { //nolint:gosec // it is executed
				t.Fatal(err)
			}
			s := newSiege(t, wrapper, tt.box, tt.more)
			id := s.Chipset("work", "add", "bead", "-d", "echo x > x.txt")
			if out := s.Chipset("status"); !strings.Contains(out, tt.says) {
				t.Errorf("status does not say %q:\n%s", tt.says, out)
			}
			out, code := s.Try("up", "--until-idle", "--timeout", "60s")
			b := s.bead(id)
			if tt.why == "" {
				if b.Status != bead.Merged {
					t.Errorf("exit %d, the bead is %s:\n%s", code, b.Status, out)
				}
				return
			}
			if code == 0 || !strings.Contains(out, tt.why) || b.Status == bead.Merged || b.Attempts > 0 {
				t.Errorf("exit %d, the bead is %s after %d attempts; nothing says %q:\n%s", code, b.Status, b.Attempts, tt.why, out)
			}
			if list := s.Git("ls-tree", "--name-only", "main"); slices.Contains(strings.Fields(list), "x.txt") {
				t.Error("it ran")
			}
		})
	}
}

func executable(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}
