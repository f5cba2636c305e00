package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropBeginning gives the first bytes of a file back to the disk.
func dropBeginning(file *os.File, bytes int64) error {
	if bytes <= 0 {
		return nil
	}
	return unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, bytes)
}
