package broker

import (
	"net"

	"golang.org/x/sys/unix"
)

// peer returns the user and the process that made a connection.
func peer(conn *net.UnixConn) (uid, pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err == nil {
		err = failed
	}
	if err != nil {
		return 0, 0, err
	}
	if cred.Pid == 0 { // of a container whose processes this one can't see
		return int(cred.Uid), -1, nil
	}
	return int(cred.Uid), int(cred.Pid), nil
}
