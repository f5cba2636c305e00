// Package model asks of a durable operation what a power cut could leave of
// it, for every moment of the cut, and whether that is what was promised.
//
// A [Recorder] is a disk.Disk on a folder in memory. It does what it is told
// and writes down what each call changed. From that, every tree is derived that
// a file system with the same disk.Features could hold after a cut:
//
//   - The content of a file that was not synced: nothing, a half, whole pages,
//     zeros in its length, or all of it. A synced one is whole.
//   - The names in a folder that was not synced: each change of a name is there
//     or not, whatever became of the others, but of one name never a later
//     change without the earlier ones. SyncDir makes those of one folder durable.
//   - A rename changes two names at once where Features.Journal is set. Without
//     a journal the old name can be gone before the new one is there, and a name
//     is worth nothing before its inode is on the disk: the link count of a
//     linked file and a new folder are changes of their own, which only the sync
//     of that very file or folder, or a barrier, makes durable.
//   - Content that was flushed, and then any file synced, comes before any later
//     name where Features.Ordered is set.
//   - After a failed sync or barrier what it should have saved is in doubt for
//     ever, whatever a later one returns.
//
// The model is weaker than any file system that the features stand for, with
// one exception: a name whose replacement is not on the disk still leads to the
// old file, though a file system without a journal could have freed it already.
//
// A cut leaves nothing below run/, which is volatile by contract. A kill leaves
// all that is visible, but makes none of it durable: what the next process does
// with it is recorded on, and a cut may follow.
//
// [Sweep] plays a [Scenario] on each kind of file system that the product tells
// apart, judges every state, lets the code's own recovery heal it, cuts again
// during that, and repeats all with a fault at each call.
package model
