package state

import (
	"golang.org/x/sys/unix"
)

func stampOf(st *unix.Stat_t) Stamp {
	return Stamp{Inode: st.Ino, Size: st.Size, Modified: st.Mtim.Nano(), Changed: st.Ctim.Nano(), Mode: uint32(st.Mode), Links: uint32(st.Nlink)}
}
