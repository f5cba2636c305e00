package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// maxRecord bounds what is read as an exit record.
const maxRecord = 1 << 20

// Exit tells of a command that runs or has ended. While Done is false only ID, the
// process identity and StartedAt mean anything.
type Exit struct {
	ID string
	// PID is the command's process, PGID its group, 0 when it never ran.
	PID, PGID int
	// BootID and StartTime tell PID from a later process of the same number. The
	// unit of StartTime is the kernel's own; 0 is unknown.
	BootID    string
	StartTime uint64
	// SupervisorPID is also the ID of the session the command was born in.
	SupervisorPID   int
	SupervisorStart uint64

	StartedAt time.Time
	// EndedAt is the end of the command itself, not of what it left behind.
	EndedAt time.Time

	// Code is the exit code, 128 plus the signal for a command that a signal
	// ended, and -1 when it is not known because the supervisor was killed.
	Code int
	// Signal names the signal that ended the command, such as "SIGKILL".
	Signal string
	// TimedOut, Orphaned and Stopped say why the supervisor ended the command:
	// its time was up, the lifeline was lost, it was asked to. At most one is
	// set, and none for a command that was over before.
	TimedOut, Orphaned, Stopped bool
	// NotFound and NotExecutable are what a shell says with 127 and 126, whether
	// the supervisor or the command itself found out.
	NotFound, NotExecutable bool
	// Error says in words what kept the command from running or being followed.
	Error string
	// Done means that the record is final and nothing of the command is left.
	Done bool
	// Settled means that the file system of Dir was synced after nothing of the command
	// was left, and before this record was written: what it wrote there is durable.
	Settled bool
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

// setStatus fills in how the command ended.
func (e *Exit) setStatus(status unix.WaitStatus, now time.Time) {
	e.EndedAt = now
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

// stamp is a time as the state tree writes it: UTC, nine fractional digits.
type stamp time.Time

func (s stamp) MarshalText() ([]byte, error) {
	return []byte(time.Time(s).UTC().Format("2006-01-02T15:04:05.000000000Z")), nil
}

func (s *stamp) UnmarshalText(text []byte) error {
	return (*time.Time)(s).UnmarshalText(text)
}

// exitJSON is the record's format. Its fields stand in the order of their keys.
type exitJSON struct {
	BootID          string `json:"boot_id,omitempty"`
	Code            int    `json:"code"`
	Done            bool   `json:"done"`
	EndedAt         *stamp `json:"ended_at,omitempty"`
	Error           string `json:"error,omitempty"`
	ID              string `json:"id"`
	NotExecutable   bool   `json:"not_executable,omitempty"`
	NotFound        bool   `json:"not_found,omitempty"`
	Orphaned        bool   `json:"orphaned,omitempty"`
	PGID            int    `json:"pgid,omitempty"`
	PID             int    `json:"pid,omitempty"`
	Settled         bool   `json:"settled,omitempty"`
	Signal          string `json:"signal,omitempty"`
	StartTime       uint64 `json:"start_time,omitempty"`
	StartedAt       *stamp `json:"started_at,omitempty"`
	Stopped         bool   `json:"stopped,omitempty"`
	SupervisorPID   int    `json:"supervisor_pid,omitempty"`
	SupervisorStart uint64 `json:"supervisor_start,omitempty"`
	TimedOut        bool   `json:"timed_out,omitempty"`
}

// MarshalJSON writes the format of the exit record.
func (e Exit) MarshalJSON() ([]byte, error) { return json.Marshal(e.format()) }

func (e Exit) format() exitJSON {
	optional := func(t time.Time) *stamp {
		if t.IsZero() {
			return nil
		}
		s := stamp(t)
		return &s
	}
	return exitJSON{
		BootID: e.BootID, Code: e.Code, Done: e.Done, EndedAt: optional(e.EndedAt), Error: e.Error,
		ID: e.ID, NotExecutable: e.NotExecutable, NotFound: e.NotFound, Orphaned: e.Orphaned,
		PGID: e.PGID, PID: e.PID, Settled: e.Settled, Signal: e.Signal, StartTime: e.StartTime,
		StartedAt: optional(e.StartedAt), Stopped: e.Stopped,
		SupervisorPID: e.SupervisorPID, SupervisorStart: e.SupervisorStart, TimedOut: e.TimedOut,
	}
}

// UnmarshalJSON reads the format of the exit record.
func (e *Exit) UnmarshalJSON(data []byte) error {
	var r exitJSON
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	*e = Exit{
		ID: r.ID, PID: r.PID, PGID: r.PGID, BootID: r.BootID, StartTime: r.StartTime,
		SupervisorPID: r.SupervisorPID, SupervisorStart: r.SupervisorStart,
		Code: r.Code, Signal: r.Signal, TimedOut: r.TimedOut, Orphaned: r.Orphaned, Stopped: r.Stopped,
		NotFound: r.NotFound, NotExecutable: r.NotExecutable, Error: r.Error, Done: r.Done, Settled: r.Settled,
	}
	if r.StartedAt != nil {
		e.StartedAt = time.Time(*r.StartedAt)
	}
	if r.EndedAt != nil {
		e.EndedAt = time.Time(*r.EndedAt)
	}
	return nil
}

// ReadExit reads an exit record. It returns false without an error when there is
// none, and ErrBadRecord for a file that is something else.
func ReadExit(path string) (Exit, bool, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0) //nolint:forbidigo // read alone, and no link is followed
	if errors.Is(err, fs.ErrNotExist) {
		return Exit{}, false, nil
	}
	if err != nil {
		return Exit{}, false, fmt.Errorf("read exit record: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil {
		return Exit{}, false, fmt.Errorf("read exit record: %w", err)
	} else if !info.Mode().IsRegular() {
		return Exit{}, false, fmt.Errorf("read exit record %s: %w: not a regular file", path, ErrBadRecord)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxRecord+1))
	if err != nil {
		return Exit{}, false, fmt.Errorf("read exit record: %w", err)
	}
	var exit Exit
	if err := json.Unmarshal(data, &exit); err != nil {
		return Exit{}, false, fmt.Errorf("read exit record %s: %w: %w", path, ErrBadRecord, err)
	}
	if !validID(exit.ID) {
		return Exit{}, false, fmt.Errorf("read exit record %s: %w: ID %q", path, ErrBadRecord, exit.ID)
	}
	return exit, true, nil
}

// recordFile is a record that already has its place on the disk but not yet its
// name, so that a command is not started whose end could not be written down.
type recordFile struct{ pending *renameio.PendingFile }

func newRecordFile(path string) (recordFile, error) {
	pending, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)),
		renameio.WithStaticPermissions(0o600))
	if err != nil {
		return recordFile{}, fmt.Errorf("make exit record: %w", err)
	}
	return recordFile{pending}, nil
}

// publish gives the record its name; the old one, if any, is replaced atomically.
func (r recordFile) publish(exit Exit) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(exit.format()); err != nil {
		return fmt.Errorf("write exit record: %w", err)
	}
	defer r.discard()
	if _, err := r.pending.Write(text.Bytes()); err != nil {
		return fmt.Errorf("write exit record: %w", err)
	}
	if err := r.pending.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("write exit record: %w", err)
	}
	return nil
}

// discard removes what was not published. After publish it does nothing.
func (r recordFile) discard() { _ = r.pending.Cleanup() }

func writeRecord(path string, exit Exit) error {
	file, err := newRecordFile(path)
	if err != nil {
		return err
	}
	return file.publish(exit)
}
