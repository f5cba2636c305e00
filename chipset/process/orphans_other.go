//go:build !linux

package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	orphanPoll    = 10 * time.Millisecond
	orphanTimeout = time.Minute
)

// KillOrphans ends what an earlier role has left running, as far as it can be told
// here: the supervisor and the process group of each unfinished record whose command
// still is the process that the record names. The environment of other processes
// can't be read reliably, so match is not asked. TERM comes first, after grace KILL.
// It returns how many groups are gone, and an error when
// some are not.
func KillOrphans(ctx context.Context, _ func(env map[string]string) bool, grace time.Duration, records ...Exit) (int, error) {
	killed := 0
	for _, record := range records {
		if record.Done || record.PGID <= 1 || record.BootID != BootID() || !sameProcess(record.PID, record.StartTime) {
			continue
		}
		if err := killGroup(ctx, record, grace); err != nil {
			return killed, err
		}
		killed++
	}
	return killed, nil
}

func killGroup(ctx context.Context, record Exit, grace time.Duration) error {
	if sameProcess(record.SupervisorPID, record.SupervisorStart) {
		_ = unix.Kill(record.SupervisorPID, unix.SIGTERM)
	}
	_ = unix.Kill(-record.PGID, unix.SIGTERM)
	_ = unix.Kill(-record.PGID, unix.SIGCONT)
	started := time.Now()
	ticker := time.NewTicker(orphanPoll)
	defer ticker.Stop()
	for !errors.Is(unix.Kill(-record.PGID, 0), unix.ESRCH) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("end orphans: %w", ctx.Err())
		case <-ticker.C:
		}
		if age := time.Since(started); age > grace+orphanTimeout {
			return fmt.Errorf("end orphans: processes survive: group %d", record.PGID)
		} else if age >= grace {
			_ = unix.Kill(-record.PGID, unix.SIGKILL)
		}
	}
	return nil
}

// cpuBelow is not known here.
func cpuBelow(int) (float64, error) { return 0, nil }

func cpuOfIdle(int) float64 { return 0 }
