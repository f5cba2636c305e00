//go:build !linux

package process

import "os"

// dropBeginning is known only on Linux: elsewhere a log grows.
func dropBeginning(*os.File, int64) error { return nil }

// exceeded is not known.
func (*supervisor) exceeded() string { return "" }

// processesKnown: Memory and Tasks are not.
const processesKnown = false

// MachineMemory is not known.
func MachineMemory() int64 { return 0 }
