package broker

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// listen serves a broker that runs commands by a function, and returns its address.
func listen(t *testing.T, run func(c Command, signals <-chan unix.Signal) Status) Address {
	t.Helper()
	dir, err := os.MkdirTemp("", "b") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	a := NewAddress(dir)
	s, err := Listen(a, Options{Belongs: func(int) bool { return true }, Run: run})
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve()
	t.Cleanup(s.Close)
	return a
}

func dial(t *testing.T, a Address) *net.UnixConn {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: a.Path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return conn
}

// answered reads the answer to a call.
func answered(t *testing.T, conn *net.UnixConn) Status {
	t.Helper()
	var s Status
	if err := json.NewDecoder(conn).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMalformedRequests: a request that does not say all that a command needs is answered, and nothing is run.
func TestMalformedRequests(t *testing.T) {
	a := listen(t, func(Command, <-chan unix.Signal) Status {
		t.Error("it is run")
		return Status{}
	})
	body := func(r request) []byte {
		r.Secret = a.Secret
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for name, tt := range map[string]struct {
		body        []byte
		size        int // that is announced, 0 for that of body
		descriptors []int
		want        string
	}{
		"no streams":             {body: body(request{Args: []string{"x"}}), want: "three streams"},
		"a stream is missing":    {body: body(request{}), descriptors: []int{0, 1}, want: "three streams"},
		"a file is missing":      {body: body(request{Files: []string{"a"}}), descriptors: []int{0, 1, 2}, want: "three streams"},
		"a file that nobody has": {body: body(request{}), descriptors: []int{0, 1, 2, 0}, want: "three streams"},
		"longer than any":        {size: maxRequest + 1, descriptors: []int{0, 1, 2}, want: "is too long"},
		"no JSON":                {body: []byte("{"), descriptors: []int{0, 1, 2}, want: "JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, a)
			head := binary.BigEndian.AppendUint32(nil, uint32(max(tt.size, len(tt.body))))
			var rights []byte
			if len(tt.descriptors) > 0 {
				rights = unix.UnixRights(tt.descriptors...)
			}
			if _, _, err := conn.WriteMsgUnix(head, rights, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Write(tt.body); err != nil && !errors.Is(err, unix.EPIPE) { // the head alone may have been answered
				t.Fatal(err)
			}
			if s := answered(t, conn); s.Code != 1 || !strings.Contains(s.Error, tt.want) {
				t.Errorf("answered %+v", s)
			}
		})
	}
}

// TestSignals: a caller may interrupt and end its command, in order, and can do nothing else to it.
func TestSignals(t *testing.T) {
	var got []unix.Signal
	a := listen(t, func(_ Command, signals <-chan unix.Signal) Status {
		for len(got) < 2 {
			got = append(got, <-signals)
		}
		return Status{Code: 7}
	})
	conn := dial(t, a)
	if err := send(conn, request{Secret: a.Secret}, []int{0, 1, 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte{byte(unix.SIGKILL), byte(unix.SIGSTOP), byte(unix.SIGINT), 0, byte(unix.SIGTERM)}); err != nil {
		t.Fatal(err)
	}
	if s := answered(t, conn); s.Code != 7 || !slices.Equal(got, []unix.Signal{unix.SIGINT, unix.SIGTERM}) {
		t.Errorf("answered %+v after %v", s, got)
	}
}

// TestSweep: of what lies in the folder of sockets only those go on which nobody listens any more.
func TestSweep(t *testing.T) {
	dir, err := os.MkdirTemp("", "b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	long := time.Now().Add(-2 * staleAge)
	for _, name := range []string{"dead", "alive", "young", "file"} {
		path, old := filepath.Join(dir, name), name != "young"
		if name == "file" {
			err = os.WriteFile(path, bytes.Repeat([]byte("x"), 10), 0o600)
		} else {
			var l *net.UnixListener
			if l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}); err == nil {
				l.SetUnlinkOnClose(false)
				t.Cleanup(func() { _ = l.Close() })
				if name != "alive" {
					err = l.Close()
				}
			}
		}
		if err == nil && old {
			err = os.Chtimes(path, long, long)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	sweep(dir)
	left, err := os.ReadDir(dir)
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if err != nil || !slices.Equal(names, []string{"alive", "file", "young"}) {
		t.Errorf("left: %v, %v", names, err)
	}
}

// TestLeftSocket: a supervisor that was killed before its job began has left its socket; the next one of the job takes its place.
func TestLeftSocket(t *testing.T) {
	a := NewAddress(t.TempDir())
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: a.Path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Listen(a, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}
