// Package blockcut puts real file systems (ext4 with and without a journal,
// xfs, btrfs) on a disk whose power can be cut at every write.
//
// The disk is one file of a FUSE file system, which the kernel's loop driver
// uses as a block device:
//
//	a test's programs
//	   │ write, fsync, rename …
//	ext4, xfs, btrfs          the kernel's own code
//	   │ blocks, cache flushes
//	loop device
//	   │ WRITE, FSYNC
//	FUSE file                 Record: every write and flush, and the test's marks, in order
//
// A loop device hands a flush of the disk's cache on as an fsync of its file,
// so the record knows what a real disk would know. From it every disk can be
// made that a power cut may leave (Record.Image): the writes before the last
// flush are there; of those after it any part may be missing, in any order,
// torn at the size of a sector. A mark says what the programs had been told by
// then, so "cut right after the last acknowledgement" is a point in the record:
// the only one that shows a missing fsync, because the next fsync hides it.
//
// What it does not model: a disk that lies about flushes, that damages sectors
// it was not writing to, or that tears inside a sector.
//
// The test's process serves the disk, so it never touches the file system that
// lies on it: one that waits for itself can't even be killed. Programs do, and
// mount(8). Isolated gives a test a mount namespace of its own; whatever is
// mounted in it goes away with it, also after kill -9.
package blockcut
