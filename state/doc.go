// Package state is the only code of chipset that touches the disk below
// .chipset/. It knows names, bytes, locks and fsync, never meanings.
//
//	.chipset/
//	  state/                       durable and auditable
//	    rig.json                   {rig_id, format}: this is the live tree of this rig
//	    agents/{agent}.json        identity: role, rig, life-cycle status, session
//	    work/{bead}.json           beads, the work items
//	    convoys/{convoy}.json      groups of beads
//	    hooks/{agent}.json         exactly one per agent
//	    mail/{agent}/{time}-{from}.json
//	    mail/{agent}/archive/{time}-{from}.json
//	    nudge/{agent}/latest.json, from/{sender}.json, seen.json
//	    merge-queue/{mr}.json
//	    dispatch/{bead}.json       write-ahead record of a dispatch
//	    retire/{assignment}.json   the end of an attempt, published once
//	    handoff/{agent}/{time}.json
//	    incidents/{incident}.json
//	    permissions/{rule}.json    what the person has decided for good
//	    events/{YYYY-MM-DD}.jsonl  append-only event log
//	    quarantine/…               what did not belong, with a reason beside it
//	  run/                         volatile: locks, liveness, worker records
//	  logs/                        transcripts
//	  worktrees/                   git worktrees
//
// # The protocol
//
// Every durable change is one of these verbs, and each verb returns nil only
// when its effect survives a power cut. They are written with the calls of
// package disk and no others:
//
//	WriteNew   write → fsync → close → name without replacing → fsync directory
//	WriteAll   write each → settle → name each → fsync each directory
//	Replace    temp in the same directory → write → fsync → rename → fsync directory
//	Move       rename without replacing → fsync destination → fsync source
//	MkdirAll   per component, top-down: mkdir → fsync parent, also when it already existed
//	Append     one write with O_APPEND; synced by SyncFile, because nothing is decided by events
//
// WriteNew writes to a unique temp name that it renames, or, where that was
// tried and found to survive, to a file without a name that it links. Many
// callers at once are served like WriteAll. To settle is to put the content of
// all on the disk: by a barrier, which is syncfs and an fsync, or where the file
// system writes in order by flushing each and syncing one. On file systems that
// are not known to keep the promise with either, WriteAll syncs each file by
// itself. Without a journal a rename between two folders can lose the file, so
// Move publishes a copy there and then removes the original. What each file
// system is trusted with stands in disk.Features, and why in docs/durability.md.
//
// A failed fsync is never retried on the same file, because the kernel reports an
// error once and drops the data: the temp file is removed, and the operation fails
// with the old content intact. For the same reason a failed sync counts against
// other changes too. A failed fsync of a folder counts against every change of that
// folder, and a failed barrier, which is about the whole file system, against
// everything written to it, if the change was made before the failure and was not
// acknowledged yet. No name comes before its content, because the fsync
// of any other process could make the name durable alone. What is visible is not
// yet durable: Lock fsyncs the directory of what it protects before its holder
// looks, so that nobody acts on an entry of another process that a power cut
// could still take back.
//
// Locks are flock(2) on a file below run/locks/ of its own for every object;
// it is never renamed and never inherited, and removed only where a power cut let
// two of them be one, by who holds it. Lock order: dispatch,
// bead, hook, queue, mailbox.
//
// Nothing is reached through a symbolic link, a FIFO, a device, or a file with
// a second hard link. On a file system without a journal a power cut leaves such
// files: an old name, of a lock or of a ref of git, comes back after its inode was
// given to a file of the state. Where all other names lie in the rig's own
// folders, BreakAllHardLinks gives the file an inode of its own; what it holds was synced.
package state
