package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/process/proxy"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/fault"
)

// maxRecord bounds what is read as an exit record.
const maxRecord = 1 << 20

// What a command went over, see Exit.Over.
const (
	OverDisk   = "disk"
	OverMemory = "memory"
	OverTasks  = "tasks"
)

// Exit tells of a command that runs or has ended. While Done is false only ID, Attended, the
// boot, the process identity, Mount and StartedAt mean anything.
type Exit struct {
	// Attended means that a person had the command on their terminal.
	Attended bool `json:"attended,omitempty"`
	// BootID and StartTime tell PID from a later process of the same number. The
	// unit of StartTime is the kernel's own; 0 is unknown.
	BootID string `json:"boot_id,omitempty"`
	// BootedAt is the time of day at which the machine had started.
	BootedAt state.Time `json:"booted_at,omitzero"`
	// Code is the exit code, 128 plus the signal for a command that a signal
	// ended, and -1 when it is not known because the supervisor was killed.
	Code int `json:"code"`
	// Done means that the record is final and nothing of the command is left.
	Done bool `json:"done"`
	// EndedAt is the end of the command itself, not of what it left behind.
	EndedAt state.Time `json:"ended_at,omitzero"`
	// Error says in words what kept the command from running or being followed.
	Error string `json:"error,omitempty"`
	// Fault is why the command could not be executed; it is zero for one that ran, and for
	// one whose arguments are too long.
	Fault fault.Fault `json:"fault,omitzero"`
	ID    string      `json:"id"`
	// Mount is the kernel's number for the mount that Dir was on, 0 where it has none.
	Mount uint64 `json:"mount,omitempty"`
	// NotFound and NotExecutable are what a shell says with 127 and 126, whether
	// the supervisor or the command itself found out.
	NotExecutable bool `json:"not_executable,omitempty"`
	NotFound      bool `json:"not_found,omitempty"`
	// TimedOut, Orphaned and Stopped say why the supervisor ended the command:
	// its time was up, the lifeline was lost, it was asked to. At most one is
	// set, and none for a command that was over before.
	Orphaned bool `json:"orphaned,omitempty"`
	Stopped  bool `json:"stopped,omitempty"`
	TimedOut bool `json:"timed_out,omitempty"`
	// Over is the same for a command that went over one of Spec.Limits: OverDisk, OverMemory or OverTasks.
	Over string `json:"over,omitempty"`
	// Refused counts what the command asked of its rig beyond Broker.MaxCalls.
	Refused int `json:"refused,omitempty"`
	// Hosts are those that a command without the whole network has asked for, refused ones first.
	Hosts []proxy.Visit `json:"hosts,omitempty"`
	// PID is the command's process, PGID its group, 0 when it never ran.
	PGID int `json:"pgid,omitempty"`
	PID  int `json:"pid,omitempty"`
	// Settled means that the file system of Dir was synced after nothing of the command
	// was left, and before this record was written: what it wrote there is durable.
	Settled bool `json:"settled,omitempty"`
	// Signal names the signal that ended the command, such as "SIGKILL".
	Signal    string     `json:"signal,omitempty"`
	StartTime uint64     `json:"start_time,omitempty"`
	StartedAt state.Time `json:"started_at,omitzero"`
	// SupervisorPID is also the ID of the session the command was born in.
	SupervisorPID   int    `json:"supervisor_pid,omitempty"`
	SupervisorStart uint64 `json:"supervisor_start,omitempty"`
}

// Alive reports whether the supervisor or the command that an unfinished record
// names still exists. It is advice: on a system that does not tell start times the
// answer rests on the process number alone.
func (e Exit) Alive() bool {
	if e.Done || e.BootID != BootID() {
		return false
	}
	return sameProcess(e.SupervisorPID, e.SupervisorStart) || sameProcess(e.PID, e.StartTime)
}

// Self fills in who this process is, as an unfinished record names a command.
func Self() Exit {
	return Exit{BootID: BootID(), PID: os.Getpid(), StartTime: startTime(os.Getpid())}
}

// Unbroken reports whether the machine has run on, with dir mounted, since the command of a
// record was started: what it wrote can be read there, even if it is not on the disk yet.
// It is false where that can't be known.
func (e Exit) Unbroken(dir string) bool {
	const slack = 2 * time.Second
	mount, booted := mountOf(dir), bootTime()
	// A virtual machine may keep its boot ID when it is switched off.
	return e.BootID != "" && e.BootID == BootID() && mount != 0 && e.Mount == mount && !booted.IsZero() && e.BootedAt.Sub(booted).Abs() < slack
}

// setStatus fills in how the command ended.
func (e *Exit) setStatus(status unix.WaitStatus, now time.Time) {
	e.EndedAt = state.At(now)
	if status.Signaled() {
		e.Code = 128 + int(status.Signal())
		e.Signal = unix.SignalName(status.Signal())
		return
	}
	e.setCode(status.ExitStatus())
}

func (e *Exit) setCode(code int) {
	e.Code = code
	e.NotExecutable = code == 126
	e.NotFound = code == 127
}

// ReadExit reads an exit record. It returns false without an error when there is
// none, and ErrBadRecord for a file that is something else.
func ReadExit(path string) (Exit, bool, error) {
	data, err := state.ReadOutside(path, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return Exit{}, false, nil
	}
	var exit Exit
	if err == nil {
		err = state.Decode(path, data, &exit)
	}
	if err == nil {
		err = state.CheckID(exit.ID)
	}
	if err == nil && exit.Fault.Check() != nil {
		err = fmt.Errorf("%w: %w", state.ErrCorrupt, exit.Fault.Check())
	}
	switch {
	case errors.Is(err, state.ErrCorrupt), errors.Is(err, state.ErrBadID), errors.Is(err, state.ErrTooLarge):
		return Exit{}, false, fmt.Errorf("read exit record %s: %w: %w", path, ErrBadRecord, err)
	case err != nil:
		return Exit{}, false, fmt.Errorf("read exit record: %w", err)
	}
	return exit, true, nil
}

// writeRecord replaces a record atomically and durably.
func writeRecord(path string, exit Exit) error {
	data, err := state.Encode(exit)
	if err == nil {
		err = state.ReplaceOutside(path, data)
	}
	if err != nil {
		return fmt.Errorf("write exit record: %w", err)
	}
	return nil
}
