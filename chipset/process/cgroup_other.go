//go:build !linux

package process

import "syscall"

// cgroup is none: only Linux has control groups.
type cgroup struct{}

func newCgroup(string, Limits) *cgroup { return nil }

func (*cgroup) start(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	return syscall.ForkExec(path, argv, attr)
}

func (*cgroup) exceeded() string { return "" }

func (*cgroup) remove() {}
