package state

import "syscall"

// unixStat is what fs.FileInfo.Sys holds on the systems this package builds for.
type unixStat = syscall.Stat_t
