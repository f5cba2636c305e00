//go:build !linux && !darwin

package process

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// BootID returns "": this system has no name for a boot.
func BootID() string { return "" }

func mountOf(string) uint64 { return 0 }

func bootTime() time.Time { return time.Time{} }

func startTime(int) uint64 { return 0 }

func sameProcess(pid int, _ uint64) bool {
	return pid > 0 && !errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}
