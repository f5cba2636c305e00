package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/process/broker"
)

// Landlock lets a command connect to every socket in the file system: docker, an ssh-agent, the session bus. So the kernel
// asks the supervisor about each connect(2) (seccomp_unotify(2)). The supervisor reads the address once and connects in the
// command's place, with copies of the descriptor and the address, so that no other thread can change them in between.

// maxGated is how many connect(2) of one command are made at once. More of them wait.
const maxGated = 256

// gate answers for one command.
type gate struct {
	file *os.File
	// writable are the folders in which sockets are the command's own, named the files and folders beyond those.
	writable, named []string
	// isolated: it has a network of its own, and so also abstract sockets of its own.
	isolated bool
}

// guard answers by a file until nothing of the command is left.
func (s *supervisor) guard(file *os.File) {
	defer file.Close()
	g := &gate{file: file, writable: slices.Concat([]string{s.spec.temp()}, s.spec.Sandbox.Write, s.spec.Sandbox.Plain), isolated: s.proxy != nil}
	// Services that look up users and, where the network is open, host names.
	g.named = []string{"/run/systemd/userdb", "/var/lib/sss/pipes"}
	if !g.isolated {
		g.named = append(g.named, "/run/nscd/socket", "/var/run/nscd/socket", "/run/systemd/resolve/io.systemd.Resolve")
	}
	if s.spec.Broker != nil {
		if address, err := broker.ParseAddress(s.spec.Broker.Address); err == nil {
			g.named = append(g.named, address.Path)
		}
	}
	slots := make(chan struct{}, maxGated)
	for {
		asked := []unix.PollFd{{Fd: int32(file.Fd()), Events: unix.POLLIN}}
		if _, err := unix.Poll(asked, -1); errors.Is(err, unix.EINTR) {
			continue
		}
		if asked[0].Revents&unix.POLLIN == 0 {
			return
		}
		var n notification
		if g.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) != 0 {
			continue // who asked has been killed
		}
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			answer := verdict{id: n.id, errno: -int32(g.connect(&n))}
			_ = g.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer)) // who asked may have been killed
		}()
	}
}

// notification is struct seccomp_notif, verdict struct seccomp_notif_resp.
type notification struct {
	id                 uint64
	pid, _             uint32
	_                  int32
	_                  uint32
	_                  uint64
	socket, at, length uint64
	_                  [3]uint64
}

type verdict struct {
	id    uint64
	value int64
	errno int32
	_     uint32
}

func (g *gate) ioctl(request uintptr, argument unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, g.file.Fd(), request, uintptr(argument))
	return errno
}

// connect makes the connection that a thread asks for, and returns 0 or why not.
func (g *gate) connect(n *notification) unix.Errno {
	address := make([]byte, n.length)
	if n.length < 2 || n.length > unix.SizeofSockaddrAny {
		return unix.EINVAL
	}
	local := []unix.Iovec{{Base: &address[0]}}
	local[0].SetLen(len(address))
	read, err := unix.ProcessVMReadv(int(n.pid), local, []unix.RemoteIovec{{Base: uintptr(n.at), Len: len(address)}}, 0)
	if err != nil || read != len(address) {
		return errnoOf(err, unix.EFAULT)
	}
	fd, err := copyDescriptor(int(n.pid), int(int32(n.socket)))
	if err != nil {
		return errnoOf(err, unix.EBADF)
	}
	defer unix.Close(fd)
	if errno := g.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&n.id)); errno != 0 {
		return errno // it was another process that was looked into
	}
	switch *(*uint16)(unsafe.Pointer(&address[0])) {
	case unix.AF_UNIX:
		return g.connectUnix(int(n.pid), fd, address)
	case unix.AF_INET, unix.AF_INET6, unix.AF_UNSPEC, unix.AF_NETLINK:
		return connectRaw(fd, address)
	}
	return unix.EACCES
}

// connectUnix connects to a socket that is the command's own or named.
func (g *gate) connectUnix(pid, fd int, address []byte) unix.Errno {
	name := address[2:]
	if len(name) == 0 {
		return unix.EINVAL
	}
	if name[0] == 0 {
		if !g.isolated && !ownAbstract(pid, name) {
			return unix.EPERM
		}
		return connectRaw(fd, address)
	}
	path, _, _ := bytes.Cut(name, []byte{0})
	from := fmt.Sprintf("/proc/%d/root", pid)
	if !filepath.IsAbs(string(path)) {
		from = fmt.Sprintf("/proc/%d/cwd/", pid)
	}
	found, err := unix.Open(from+string(path), unix.O_PATH|unix.O_CLOEXEC, 0) //nolint:forbidigo // it opens nothing, it names a file
	if err != nil {
		return errnoOf(err, unix.EACCES)
	}
	defer unix.Close(found)
	link := fmt.Sprintf("/proc/self/fd/%d", found)
	target, err := os.Readlink(link)
	if err != nil || !g.allows(target) {
		return unix.EACCES
	}
	return connectRaw(fd, slices.Concat(address[:2], []byte(link), []byte{0}))
}

// allows reports whether the command may connect to the socket at a path without symbolic links.
func (g *gate) allows(path string) bool {
	return slices.ContainsFunc(slices.Concat(g.writable, g.named), func(allowed string) bool {
		resolved, err := filepath.EvalSymlinks(allowed)
		return err == nil && (path == resolved || strings.HasPrefix(path, strings.TrimSuffix(resolved, "/")+"/"))
	})
}

// ownAbstract reports whether all listeners at an abstract name are processes of this supervisor's command. The first byte of
// name is 0.
func ownAbstract(pid int, name []byte) bool {
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/unix", pid))
	if err != nil {
		return false
	}
	shown := strings.ReplaceAll(string(name), "\x00", "@")
	own := false
	for line := range strings.Lines(string(table)) {
		const inode = 6 // Num RefCount Protocol Flags Type St Inode Path
		fields := strings.Fields(line)
		if len(fields) <= inode || !strings.HasSuffix(strings.TrimSuffix(line, "\n"), " "+shown) {
			continue
		}
		if own = heldByDescendant("socket:[" + fields[inode] + "]"); !own {
			return false
		}
	}
	return own
}

func heldByDescendant(socket string) bool {
	return slices.ContainsFunc(descendants(os.Getpid()), func(p process) bool {
		dir := fmt.Sprintf("/proc/%d/fd", p.pid)
		entries, err := os.ReadDir(dir)
		return err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool {
			target, err := os.Readlink(filepath.Join(dir, e.Name()))
			return err == nil && target == socket
		})
	})
}

// copyDescriptor returns a copy of a descriptor of the process to which a thread belongs.
func copyDescriptor(thread, descriptor int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	if err != nil {
		return 0, unix.ESRCH
	}
	_, after, _ := strings.Cut(string(status), "\nTgid:")
	line, _, _ := strings.Cut(after, "\n")
	leader, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return 0, unix.ESRCH
	}
	process, err := unix.PidfdOpen(leader, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(process)
	return unix.PidfdGetfd(process, descriptor, 0)
}

func connectRaw(fd int, address []byte) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&address[0])), uintptr(len(address)))
	return errno
}

// errnoOf returns the number of an error of the system.
func errnoOf(err error, otherwise unix.Errno) unix.Errno {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return otherwise
}
