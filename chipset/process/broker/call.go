package broker

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

var (
	// ErrGone is returned by Call when nobody listens: the session is over.
	ErrGone = errors.New("the session of this worker is over")
	// ErrRefused is returned by Call for a process that does not belong to the session.
	ErrRefused = errors.New("this process does not belong to the worker of the broker")
	// ErrLost is returned by Call when the broker ends before the command: the
	// command may have been carried out or not.
	ErrLost = errors.New("the broker ended before the command")
)

// Command is a command line, and what it works on.
type Command struct {
	Args []string
	// Files are the files that Args names, by their names there.
	Files []string
	// Descriptors are standard input, output and error, then one for each of Files.
	Descriptors []int
}

// Status is how a command ended.
type Status struct {
	// Code is the exit code, 128 and the signal for a command that was killed.
	Code int `json:"code"`
	// Error says why it was not run, or is "".
	Error string `json:"error,omitempty"`
	// Refused: the caller does not belong to the session.
	Refused bool `json:"refused,omitempty"`
}

// request is what a caller sends.
type request struct {
	Secret string   `json:"secret"`
	Args   []string `json:"args"`
	Files  []string `json:"files"`
}

// Call has a command run by the broker and waits for its end. The end of ctx sends
// TERM to the command. Errors: ErrGone, ErrRefused, ErrLost.
func Call(ctx context.Context, a Address, c Command) (Status, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: a.Path, Net: "unix"})
	if err != nil {
		return Status{}, fmt.Errorf("%w (%w)", ErrGone, err)
	}
	defer conn.Close()
	if err := send(conn, request{Secret: a.Secret, Args: c.Args, Files: c.Files}, c.Descriptors); err != nil && !errors.Is(err, unix.EPIPE) {
		return Status{}, fmt.Errorf("%w (%w)", ErrLost, err)
	} // who is refused may find that nobody reads; the answer says it
	defer context.AfterFunc(ctx, func() { _, _ = conn.Write([]byte{byte(unix.SIGTERM)}) })()
	var status Status
	if err := json.NewDecoder(conn).Decode(&status); err != nil {
		return Status{}, fmt.Errorf("%w (%w)", ErrLost, err)
	}
	switch {
	case status.Refused:
		return status, ErrRefused
	case status.Error != "":
		return status, errors.New(status.Error)
	}
	return status, nil
}

func send(conn *net.UnixConn, r request, descriptors []int) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	if _, _, err := conn.WriteMsgUnix(head, unix.UnixRights(descriptors...), nil); err != nil {
		return err
	}
	_, err = conn.Write(body)
	return err
}
