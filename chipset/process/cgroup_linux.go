package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// cgroup is the control group of one command (cgroups(7), version 2): nothing that the command starts leaves it, and one word to the
// kernel ends all of it, however fast it forks. nil is none: this user may make none here, and limits are kept by looking alone.
type cgroup struct {
	dir  string
	file *os.File
}

// cgroupPrefix begins the names of the groups of commands.
const cgroupPrefix = "chipset-"

// newCgroup makes the group of a job, with those of its limits that the kernel keeps there.
func newCgroup(id string, limits Limits) *cgroup {
	for _, parent := range cgroupParents() {
		left, _ := filepath.Glob(filepath.Join(parent, cgroupPrefix+"*"))
		for _, dir := range left {
			_ = unix.Rmdir(dir) //nolint:forbidigo // of a supervisor that was killed; one with processes stays
		}
		g := &cgroup{dir: filepath.Join(parent, cgroupPrefix+id)}
		if unix.Mkdir(g.dir, 0o755) != nil { //nolint:forbidigo // a control group is no state
			continue
		}
		var err error
		if _, err = os.Stat(filepath.Join(g.dir, "cgroup.kill")); err == nil { // Linux 5.14
			g.file, err = os.Open(g.dir)
		}
		if err != nil {
			g.remove()
			continue
		}
		g.keep(limits)
		return g
	}
	return nil
}

// keep has the kernel keep limits for the group, those for which it has a controller there.
func (g *cgroup) keep(limits Limits) {
	if limits.Memory > 0 {
		g.say("memory.max", strconv.FormatInt(limits.Memory, 10))
	}
	if limits.Tasks > 0 {
		g.say("pids.max", strconv.Itoa(limits.Tasks))
	}
}

// exceeded names which limit the kernel has refused the group something for, or "".
func (g *cgroup) exceeded() string {
	switch {
	case g == nil:
		return ""
	case g.happened("memory.events", "oom_kill"):
		return OverMemory
	case g.happened("pids.events", "max"):
		return OverTasks
	}
	return ""
}

// happened reports whether a file that counts events in the group has counted one of a kind.
func (g *cgroup) happened(file, event string) bool {
	text, _ := os.ReadFile(filepath.Join(g.dir, file)) // none without a controller
	for line := range strings.Lines(string(text)) {
		if count, is := strings.CutPrefix(strings.TrimSpace(line), event+" "); is {
			return count != "0"
		}
	}
	return false
}

// cgroupParents returns the folders in which a group may be made, the best first: beside that of this process, where the kernel
// keeps limits for those that are there, and below it.
func cgroupParents() []string {
	mount := "/sys/fs/cgroup"
	var stat unix.Statfs_t
	if unix.Statfs(mount, &stat) != nil || stat.Type != unix.CGROUP2_SUPER_MAGIC {
		mount = "/sys/fs/cgroup/unified" // beside version 1
		if unix.Statfs(mount, &stat) != nil || stat.Type != unix.CGROUP2_SUPER_MAGIC {
			return nil
		}
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		if path, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::/"); is {
			own := filepath.Join(mount, path)
			if path == "" {
				return []string{own}
			}
			return []string{filepath.Dir(own), own}
		}
	}
	return nil
}

// say writes to a file of the group. One that is not there is a controller that the kernel does not offer here.
func (g *cgroup) say(file, text string) {
	fd, err := unix.Open(filepath.Join(g.dir, file), unix.O_WRONLY|unix.O_CLOEXEC, 0) //nolint:forbidigo // it is a word to the kernel
	if err != nil {
		return
	}
	defer unix.Close(fd)
	_, _ = unix.Write(fd, []byte(text))
}

// start executes a program in the group, and outside of it where the kernel does not want that.
func (g *cgroup) start(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	if g != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(g.file.Fd())
		pid, err := syscall.ForkExec(path, argv, attr)
		if err == nil {
			return pid, nil
		}
		attr.Sys.UseCgroupFD = false
	}
	return syscall.ForkExec(path, argv, attr)
}

// kill ends everything in the group at once.
func (g *cgroup) kill() {
	if g != nil {
		g.say("cgroup.kill", "1")
	}
}

// remove removes the group, in which nothing is left.
func (g *cgroup) remove() {
	if g != nil {
		_ = g.file.Close()
		_ = unix.Rmdir(g.dir) //nolint:forbidigo // the next one removes what stays
	}
}

// killGroup ends what a job has left in its group.
func killGroup(id string) {
	for _, parent := range cgroupParents() {
		(&cgroup{dir: filepath.Join(parent, cgroupPrefix+id)}).kill()
	}
}
