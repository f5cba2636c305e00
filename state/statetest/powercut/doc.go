// Package powercut is a file system for tests on which a power cut can be
// played: it lives in memory, is mounted through FUSE, and the real binary and
// git run on it.
//
// Every file and folder has two states. The volatile one is what programs see.
// The durable one is what a power cut leaves. They meet only where a program
// asks for it:
//
//	fsync(file)    its content and size become durable; its name does not
//	fsync(folder)  its entries become durable; the content of the files does not
//	syncfs         everything becomes durable
//
// A cut throws the volatile state away. What was not synced is lost, or kept,
// or survives in part, as the Mode says:
//
//	Drop     nothing of it: the strictest file system
//	Keep     all of it
//	Ordered  the changes of folders up to one moment, as a journal writes them;
//	         the content of files in any part and order
//	Scatter  the changes of folders name by name in any order, files as above
//
// In part means: of a file any 512 bytes are as they were after any of the
// writes since the last fsync, or zeros where there was nothing, and its size
// is any it had since. A rename within or between folders shows the old name,
// the new name, or both; it never shows neither, and with AtomicRenames never
// both. A new name for a file that
// never was synced shows an empty or torn file.
//
// A Fault changes the result of the nth operation that changes something. All
// these operations are counted and logged with path and result, so a failed run
// can be read, and the same Fault at the same number plays it again.
//
// What is modelled otherwise than a disk would do it: access times do not exist,
// times that utimes sets and permission bits are durable at once, and a symbolic
// link is durable with its name. A failed fsync loses what the file was waiting to write, as
// Linux does: the page cache still shows it, the next fsync succeeds, and it is
// gone. A failed fsync of a folder leaves its entries waiting: where that
// happens to a journal, nothing can be written any more, which ReadOnly models.
package powercut
