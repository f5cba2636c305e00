package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// minLandlock is the version that lets a file be moved between folders, and so the first that a rig can use
// (Linux 5.19).
const minLandlock = 2

const (
	readAccess  = landlock.AccessFSReadFile | landlock.AccessFSExecute
	writeAccess = readAccess | landlock.AccessFSWriteFile | landlock.AccessFSTruncate
	// Devices are made by nobody.
	changeAccess = writeAccess | landlock.AccessFSRemoveDir | landlock.AccessFSRemoveFile | landlock.AccessFSMakeDir |
		landlock.AccessFSMakeReg | landlock.AccessFSMakeSock | landlock.AccessFSMakeFifo | landlock.AccessFSMakeSym |
		landlock.AccessFSRefer
	// plainAccess is changeAccess without symbolic links and pipes. The kernel lets no folder be moved to a place with more rights: the right
	// to make block devices, which is of no use without a capability, keeps folders with links out.
	plainAccess = changeAccess&^(landlock.AccessFSMakeSym|landlock.AccessFSMakeFifo) | landlock.AccessFSMakeBlock
	// fileAccess are the rights that the kernel accepts for a file, and those that a device needs.
	fileAccess = writeAccess | landlock.AccessFSIoctlDev
)

const (
	// maxTasks is how many processes and threads a command's user may have while it starts another, where Profile.Tasks does not say.
	maxTasks = 16384
	// maxFiles is how many files one process may have open.
	maxFiles = 65536
	// firstToDie is the oom_score_adj of commands, from -1000 to 1000: when memory is short the kernel ends them before the user's
	// other programs.
	firstToDie = "500"
)

// Kind describes in a few words what restricts commands on this machine; missing names what is not available, and why. Either may be
// "". Without Landlock nothing is restricted: a seccomp filter alone protects no file, and keeps clients from using their own sandboxes.
func Kind() (kind, missing string) {
	version, err := landlock.LandlockGetABIVersion()
	if err != nil {
		return "", "no Landlock: " + err.Error()
	}
	if version < minLandlock {
		return "", fmt.Sprintf("no Landlock: the kernel has version %d, %d is needed", version, minLandlock)
	}
	kind = fmt.Sprintf("landlock %d", version)
	if err := seccompAvailable(); err != nil {
		return kind, "no seccomp: " + err.Error()
	}
	if err := gateMissing(); err != nil {
		return kind + ", seccomp", "sockets of other programs can be connected to: " + err.Error()
	}
	return kind + ", seccomp", ""
}

// gateMissing returns why the supervisor can't answer connect(2) for its command, or nil: it must be able to trace its children.
func gateMissing() error {
	const started, administrators = 1, 2 // of kernel.yama.ptrace_scope: who may look into a process
	text, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	if err != nil {
		return nil //nolint:nilerr // a kernel without Yama lets every process of a user
	}
	scope, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil && (scope <= started || scope == administrators && privileged()) {
		return nil
	}
	return errors.New("kernel.yama.ptrace_scope is " + strings.TrimSpace(string(text)))
}

// Enter restricts this process for good, and returns the program and arguments to execute, here path and argv unchanged. It is
// called by a process that has no other purpose, on the locked thread that executes the command. Each connect(2) of the
// command waits for an answer on the file gate, which is nil where connect(2) is not restricted.
func (p *Profile) Enter(path string, argv []string) (program string, words []string, gate *os.File, err error) {
	kind, missing := Kind()
	if missing != "" && p.Mode == Require {
		return "", nil, nil, errors.New(missing)
	}
	if kind == "" {
		return path, argv, gate, nil
	}
	if err := p.limit(); err != nil {
		return "", nil, nil, err
	}
	if err := dropCapabilities(p.Network != nil); err != nil {
		return "", nil, nil, fmt.Errorf("capabilities: %w", err)
	}
	// Without privileges the kernel wants this before both of what follows.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return "", nil, nil, fmt.Errorf("no new privileges: %w", err)
	}
	if err := p.restrictFiles(); err != nil {
		return "", nil, nil, fmt.Errorf("landlock: %w", err)
	}
	if seccompAvailable() == nil {
		if gate, err = filterSystemCalls(gateMissing() == nil); err != nil {
			return "", nil, nil, fmt.Errorf("seccomp: %w", err)
		}
	}
	return path, argv, gate, nil
}

// restrictFiles restricts the calling thread as far as the kernel can: that is the one that executes the command, so
// the others need not be stopped for it.
func (p *Profile) restrictFiles() error {
	version, err := landlock.LandlockGetABIVersion()
	if err != nil {
		return err
	}
	handled := handledBy(version)
	rules, err := landlock.LandlockCreateRuleset(&handled, 0)
	if err != nil {
		return err
	}
	defer unix.Close(rules)
	allow := func(access uint64, paths ...string) {
		for _, path := range paths {
			err = errors.Join(err, allowBelow(rules, path, access&handled.HandledAccessFS))
		}
	}
	// Names are not hidden: programs list the folders above the one they are in.
	allow(landlock.AccessFSReadDir, "/")
	hidden := append(slices.DeleteFunc(resolved(p.Hide), closed), terminals) // those of the person, and with them disks and all other devices
	allow(readAccess, p.readable(hidden, func(dir string) []string {
		if dir == "/dev" {
			return []string{sharedMemory}
		}
		return entries(dir)
	})...)
	if !slices.ContainsFunc(hidden, func(h string) bool { return below(h, sharedMemory) }) {
		allow(changeAccess, sharedMemory)
	}
	allow(fileAccess, "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
	if ownTerminals() {
		allow(fileAccess, "/dev/ptmx", terminals)
	}
	for _, path := range p.writable() {
		if below(path, "/dev") {
			allow(fileAccess, path)
		}
		allow(changeAccess, path)
	}
	allow(plainAccess, resolved(p.Plain)...)
	for _, objects := range resolved([]string{p.Objects}) {
		err = errors.Join(err, allowObjects(rules, objects, plainAccess&handled.HandledAccessFS))
	}
	if err != nil {
		return err
	}
	return landlock.LandlockRestrictSelf(rules, 0)
}

// terminals is the folder of pseudo-terminals.
const terminals = "/dev/pts"

// ownTerminals gives this thread pseudo-terminals of its own, and reports whether it could: the person's are not among
// them. Only root can, without a user namespace in which nothing would belong to root any more.
func ownTerminals() bool {
	if !privileged() || unix.Unshare(unix.CLONE_NEWNS) != nil {
		return false
	}
	// What the machine mounts later appears here, too; what is mounted here does not appear there.
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "") == nil &&
		unix.Mount("devpts", terminals, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620") == nil
}

// sharedMemory is the folder that programs share memory in. A command may change the whole of it when nothing hidden
// lies there.
const sharedMemory = "/dev/shm"

// handledBy returns what a version of Landlock can restrict: files, and signals and abstract sockets to processes outside.
func handledBy(version int) landlock.RulesetAttr {
	handled := landlock.RulesetAttr{HandledAccessFS: changeAccess | landlock.AccessFSReadDir | landlock.AccessFSMakeChar |
		landlock.AccessFSMakeBlock | landlock.AccessFSIoctlDev}
	if version < 3 {
		handled.HandledAccessFS &^= landlock.AccessFSTruncate
	}
	if version < 5 {
		handled.HandledAccessFS &^= landlock.AccessFSIoctlDev
	}
	if version >= 6 {
		handled.Scoped = landlock.ScopeSignal | landlock.ScopeAbstractUnixSocket
	}
	return handled
}

// allowBelow allows access to a file, or to a folder and everything below it. A path that does not exist, or that this user can't
// reach, needs no rule.
func allowBelow(rules int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0) //nolint:forbidigo // it opens nothing, it names a file to the kernel
	if err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
			return nil
		}
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	if access&^fileAccess != 0 { // only a folder takes more
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil {
			return &os.PathError{Op: "stat", Path: path, Err: err}
		}
		if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
			access &= fileAccess
		}
	}
	if err := landlock.LandlockAddPathBeneathRule(rules, &landlock.PathBeneathAttr{ParentFd: fd, AllowedAccess: access}, 0); err != nil {
		return &os.PathError{Op: "allow", Path: path, Err: err}
	}
	return nil
}

// allowObjects allows access to the folders of loose objects in a folder of git's objects. There are 256 of them, so each costs no more
// system calls than it must.
func allowObjects(rules int, objects string, access uint64) error {
	const folder = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	above, err := unix.Open(objects, folder, 0) //nolint:forbidigo // it opens nothing, it names a folder to the kernel
	if err != nil {
		return &os.PathError{Op: "open", Path: objects, Err: err}
	}
	defer unix.Close(above)
	for first := range 256 {
		name := fmt.Sprintf("%02x", first)
		fd, err := unix.Openat(above, name, folder, 0) //nolint:forbidigo // as above
		if err != nil {
			continue // something else stands in its place, or nothing
		}
		err = landlock.LandlockAddPathBeneathRule(rules, &landlock.PathBeneathAttr{ParentFd: fd, AllowedAccess: access}, 0)
		_ = unix.Close(fd)
		if err != nil {
			return &os.PathError{Op: "allow", Path: objects + "/" + name, Err: err}
		}
	}
	return nil
}

// closed reports whether a hidden path is closed to this user anyway, by its owner and mode. Then nothing need be allowed around it
// one by one. What belongs to the user itself a command could open with chmod(2).
func closed(path string) bool {
	var stat unix.Stat_t
	return unix.Stat(path, &stat) == nil && int(stat.Uid) != os.Geteuid() &&
		unix.Access(path, unix.R_OK) != nil && unix.Access(path, unix.X_OK) != nil
}

// dropCapabilities removes from root's bounding set the capabilities that inspect processes outside or change the kernel, the clock,
// network settings or limits: CAP_PERFMON alone opens /proc/PID/environ past Landlock. Other users have none to drop.
// With network, a network of its own, it also drops CAP_NET_RAW.
func dropCapabilities(network bool) error {
	dropped := []uintptr{unix.CAP_PERFMON, unix.CAP_SYS_PTRACE, unix.CAP_SYS_ADMIN, unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_SYS_BOOT,
		unix.CAP_BPF, unix.CAP_CHECKPOINT_RESTORE, unix.CAP_MKNOD, unix.CAP_NET_ADMIN, unix.CAP_SYS_RESOURCE, unix.CAP_SYS_TIME, unix.CAP_SYS_PACCT,
		unix.CAP_SYS_TTY_CONFIG, unix.CAP_SYSLOG, unix.CAP_LINUX_IMMUTABLE, unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE, unix.CAP_AUDIT_CONTROL,
		unix.CAP_AUDIT_WRITE, unix.CAP_AUDIT_READ, unix.CAP_WAKE_ALARM, unix.CAP_BLOCK_SUSPEND}
	if network {
		dropped = append(dropped, unix.CAP_NET_RAW)
	}
	for _, capability := range dropped {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if err != nil && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EINVAL) { // not root; an older kernel
			return err
		}
	}
	return nil
}

// limit lowers resource limits that are higher. A command dumps no core, because that would hold its secrets.
func (p *Profile) limit() error {
	tasks := uint64(maxTasks)
	if p.Tasks > 0 {
		tasks = runningTasks() + 2*uint64(p.Tasks) // the user starts others meanwhile
	}
	for _, l := range []struct {
		resource int
		most     uint64
	}{{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_NPROC, tasks}, {unix.RLIMIT_NOFILE, maxFiles}} {
		var limit unix.Rlimit
		if err := unix.Getrlimit(l.resource, &limit); err != nil {
			return fmt.Errorf("limits: %w", err)
		}
		limit.Max = min(limit.Max, l.most)
		limit.Cur = min(limit.Cur, limit.Max)
		if err := unix.Setrlimit(l.resource, &limit); err != nil {
			return fmt.Errorf("limits: %w", err)
		}
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(firstToDie), 0) //nolint:forbidigo // it is a word to the kernel, which may have a higher one
	return nil
}

// runningTasks is how many processes and threads the machine has.
func runningTasks() uint64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return maxTasks
	}
	_, after, _ := strings.Cut(string(text), "/")
	count, _, _ := strings.Cut(after, " ")
	n, err := strconv.ParseUint(count, 10, 64)
	if err != nil {
		return maxTasks
	}
	return n
}
