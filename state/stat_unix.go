package state

import (
	"io/fs"
	"syscall"
)

// unixStat is what fs.FileInfo.Sys holds on the systems this package builds for.
type unixStat = syscall.Stat_t

// device is the file system on which something lies, or 0 when it does not say.
func device(info fs.FileInfo) uint64 {
	st, ok := info.Sys().(*unixStat)
	if !ok {
		return 0
	}
	return uint64(st.Dev) //nolint:unconvert // the type differs between systems
}
