package blockcut

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// FileSystem is one kind of file system, made as small as its tools allow.
type FileSystem struct {
	Name string
	// Size of the disk in bytes.
	Size int64
	// Type is what mount(8) calls it.
	Type string
	// Options keep it from writing by itself every few seconds: on a slow machine
	// that would sync what a wrong program forgot to sync.
	Options string
	// whole are the blocks that its disk never tears: without a person's help
	// ext4 and btrfs do not start from half a super block.
	whole []int64
	make  []string
	// check is run before a mount after a power cut, where people's systems do.
	check []string
}

// FileSystems returns all that are tried.
func FileSystems() []FileSystem {
	const mib = 1 << 20
	return []FileSystem{
		{
			Name: "ext4", Type: "ext4", Size: 64 * mib, Options: "commit=300", whole: []int64{0},
			make: []string{"mkfs.ext4", "-q", "-F", "-b", "4096", "-J", "size=4", "-E", "lazy_itable_init=0,nodiscard"},
		},
		{
			Name: "ext4-nojournal", Type: "ext4", Size: 64 * mib, whole: []int64{0},
			make:  []string{"mkfs.ext4", "-q", "-F", "-b", "4096", "-O", "^has_journal", "-E", "lazy_itable_init=0,nodiscard"},
			check: []string{"e2fsck", "-fy"},
		},
		{Name: "xfs", Type: "xfs", Size: 300 * mib, make: []string{"mkfs.xfs", "-q", "-f", "-K"}},
		{
			Name: "btrfs", Type: "btrfs", Size: 160 * mib, Options: "commit=300", whole: []int64{64 << 10 / blockSize, 64 * mib / blockSize},
			make: []string{"mkfs.btrfs", "-q", "-f", "-K", "-d", "single", "-m", "single"},
		},
	}
}

// Tools returns the programs that the file system needs.
func (f FileSystem) Tools() []string {
	tools := []string{"mount", "umount", "losetup", f.make[0]}
	if len(f.check) > 0 {
		tools = append(tools, f.check[0])
	}
	return tools
}

// options for mount(8), through a loop device that goes away with the mount.
func (f FileSystem) options() string {
	return strings.TrimSuffix("loop,noatime,"+f.Options, ",")
}

// repair is what a boot after a power cut runs first.
func (f FileSystem) repair(disk string) error {
	if len(f.check) == 0 {
		return nil
	}
	err := run(f.check[0], append(f.check[1:], disk)...)
	const uncorrected = 4 // e2fsck: 1 and 2 say that errors were corrected
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() < uncorrected {
		return nil
	}
	return err
}

// run runs a program and returns its output with its failure.
func run(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
