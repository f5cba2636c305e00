package state

import (
	"io/fs"
	"syscall"
)

// unixStat is what fs.FileInfo.Sys holds on the systems this package builds for.
type unixStat = syscall.Stat_t

// device identifies the file system of a file, 0 if that is unknown.
func device(info fs.FileInfo) uint64 {
	st, ok := info.Sys().(*unixStat)
	if !ok {
		return 0
	}
	return uint64(st.Dev) //nolint:unconvert // the type differs between systems
}
