package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// NetworkMissing returns why no command can be given a network of its own on this machine, or nil.
func NetworkMissing() error {
	attr := &syscall.SysProcAttr{}
	OwnNetwork(attr)
	pid, err := syscall.ForkExec("/proc/self/exe/none", []string{""}, &syscall.ProcAttr{Sys: attr}) // it is cloned, and then finds no program
	if err == nil {
		_, _ = syscall.Wait4(pid, nil, 0, nil)
	}
	switch restricted, _ := os.ReadFile("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"); {
	case err != nil && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ENOENT):
		return fmt.Errorf("no namespaces: %w", err)
	case attr.Cloneflags&unix.CLONE_NEWUSER != 0 && strings.TrimSpace(string(restricted)) == "1":
		return errors.New("no namespaces: AppArmor restricts them (kernel.apparmor_restrict_unprivileged_userns)")
	}
	return nil
}

// OwnNetwork has a process start with a network of its own, in which not even the loopback interface is up. Without
// privileges it needs a user namespace, in which its user is the same and all others are nobody.
func OwnNetwork(attr *syscall.SysProcAttr) {
	attr.Cloneflags |= unix.CLONE_NEWNET
	if privileged() {
		return
	}
	attr.Cloneflags |= unix.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	attr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN}
}

// privileged reports whether this process may make a network namespace as it is.
func privileged() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// EnterNetwork brings up the loopback interface of the network that OwnNetwork has given this process, and listens on
// addresses of it. The listeners belong to that network, and whoever has them accepts from anywhere.
func EnterNetwork(addresses []string) ([]*os.File, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	defer unix.Close(fd)
	loopback, err := unix.NewIfreq("lo")
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	loopback.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, loopback); err != nil {
		return nil, fmt.Errorf("network: bring up lo: %w", err)
	}
	var files []*os.File
	for _, address := range addresses {
		l, err := net.Listen("tcp", address) //nolint:noctx // nobody waits for a socket
		if err != nil {
			return nil, fmt.Errorf("network: %w", err)
		}
		file, err := l.(*net.TCPListener).File() //nolint:forcetypeassert // that is what listens on tcp
		if err != nil {
			return nil, fmt.Errorf("network: %w", err)
		}
		files = append(files, file)
	}
	return files, unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
}

// OwnSharedMemory has a process start with System V shared memory, semaphores and message queues of its own, where that needs no
// user namespace that it would not have anyway.
func OwnSharedMemory(attr *syscall.SysProcAttr) {
	if _, err := os.Stat("/proc/self/ns/ipc"); err == nil && (privileged() || attr.Cloneflags&unix.CLONE_NEWUSER != 0) {
		attr.Cloneflags |= unix.CLONE_NEWIPC
	}
}
