package broker

import (
	"net"

	"golang.org/x/sys/unix"
)

// peer returns the user that made a connection. Who descends from whom is not known
// here once a parent has ended, so no process is named.
func peer(conn *net.UnixConn) (uid, pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var cred *unix.Xucred
	var failed error
	err = raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED) })
	if err == nil {
		err = failed
	}
	if err != nil {
		return 0, 0, err
	}
	return int(cred.Uid), 0, nil
}
