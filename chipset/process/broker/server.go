package broker

import (
	"crypto/subtle"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// requestTimeout is how long a caller may take to send its command.
	requestTimeout = 10 * time.Second
	// maxRequest bounds a request in bytes; no system takes longer command lines.
	maxRequest = 4 << 20
	// maxFiles bounds the files of a command.
	maxFiles = 8
	// maxCalls is how many commands of a session may run at once. More of them wait.
	maxCalls = 32
	// callGrace is how long a command whose caller is gone has after its TERM.
	callGrace = 5 * time.Second
)

// Server is the broker of one session.
type Server struct {
	address  Address
	listener *net.UnixListener
	options  Options
	calls    chan struct{}
	closed   sync.Once
}

// Options say what a server does.
type Options struct {
	// Belongs reports whether a process belongs to the session. It is asked only where
	// the system can name the process at the other end of a socket.
	Belongs func(pid int) bool
	// Run runs a command to its end, and sends it the signals. It closes no descriptors.
	Run func(c Command, signals <-chan unix.Signal) Status
}

// Listen makes the socket: from now on calls are taken, and answered once Serve runs. It replaces a socket that a killed
// supervisor of the same job has left.
func Listen(a Address, options Options) (*Server, error) {
	_ = os.Remove(a.Path) //nolint:forbidigo // see Folder
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: a.Path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	return &Server{address: a, listener: l, options: options, calls: make(chan struct{}, maxCalls)}, nil
}

// Serve answers calls until Close.
func (s *Server) Serve() {
	for {
		conn, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of descriptors, which calls that end give back
			continue
		}
		if !s.admits(conn) {
			go refuse(conn)
			continue
		}
		s.calls <- struct{}{}
		go func() {
			defer func() { <-s.calls }()
			s.answer(conn)
		}()
	}
}

// Close takes no more calls and removes the socket. Commands that run go on.
func (s *Server) Close() { s.closed.Do(func() { _ = s.listener.Close() }) }

// admits reports whether the process at the other end is this user's and belongs to the session.
func (s *Server) admits(conn *net.UnixConn) bool {
	uid, pid, err := peer(conn)
	return err == nil && uid == os.Getuid() && (pid == 0 || s.options.Belongs(pid))
}

func refuse(conn *net.UnixConn) {
	_ = conn.SetDeadline(time.Now().Add(requestTimeout))
	_ = json.NewEncoder(conn).Encode(Status{Code: 1, Refused: true})
	_ = conn.Close()
}

// answer takes one call from its request to its answer.
func (s *Server) answer(conn *net.UnixConn) {
	c, err := s.receive(conn)
	defer func() {
		for _, fd := range c.Descriptors {
			_ = unix.Close(fd)
		}
	}()
	if errors.Is(err, ErrRefused) {
		refuse(conn)
		return
	}
	status := Status{Code: 1}
	if err != nil {
		status.Error = err.Error()
	} else {
		ended := make(chan struct{})
		signals := make(chan unix.Signal)
		go relay(conn, signals, ended)
		status = s.options.Run(c, signals)
		close(ended)
	}
	_ = conn.SetWriteDeadline(time.Now().Add(requestTimeout))
	_ = json.NewEncoder(conn).Encode(status)
	_ = conn.Close()
}

// receive reads a request. The caller closes the descriptors, also after an error.
func (s *Server) receive(conn *net.UnixConn) (Command, error) {
	_ = conn.SetReadDeadline(time.Now().Add(requestTimeout))
	var c Command
	head, rights := make([]byte, 4), make([]byte, unix.CmsgSpace(4*(3+maxFiles)))
	n, rn, flags, _, err := conn.ReadMsgUnix(head, rights)
	c.Descriptors = descriptors(rights[:rn])
	if err != nil {
		return c, err
	}
	if n != len(head) || flags&unix.MSG_CTRUNC != 0 {
		return c, errors.New("not a request to a broker")
	}
	size := binary.BigEndian.Uint32(head)
	if size > maxRequest {
		return c, fmt.Errorf("a command line of %d bytes is too long", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(conn, body); err != nil {
		return c, err
	}
	var r request
	if err := json.Unmarshal(body, &r); err != nil {
		return c, err
	}
	if subtle.ConstantTimeCompare([]byte(r.Secret), []byte(s.address.Secret)) != 1 {
		return c, ErrRefused
	}
	if len(c.Descriptors) != 3+len(r.Files) {
		return c, errors.New("a request has three streams, and a descriptor for each file")
	}
	c.Args, c.Files = r.Args, r.Files
	return c, conn.SetReadDeadline(time.Time{})
}

// descriptors are those in ancillary data.
func descriptors(rights []byte) []int {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil
	}
	var all []int
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil {
			all = append(all, fds...)
		}
	}
	return all
}

// relay passes on the signals of a caller until the command has ended. When the caller
// goes away it ends the command.
func relay(conn *net.UnixConn, signals chan<- unix.Signal, ended <-chan struct{}) {
	pass := func(sig unix.Signal) {
		select {
		case signals <- sig:
		case <-ended:
		}
	}
	one := make([]byte, 1)
	for {
		if _, err := conn.Read(one); err != nil {
			break
		}
		if sig := unix.Signal(one[0]); sig == unix.SIGINT || sig == unix.SIGTERM {
			pass(sig)
		}
	}
	pass(unix.SIGTERM)
	select {
	case <-time.After(callGrace):
		pass(unix.SIGKILL)
	case <-ended:
	}
}
