// Package state is the only code of chipset that touches the disk below
// .chipset/. It knows names, bytes, locks and fsync, but not what a file means.
//
//	.chipset/
//	  state/                       durable and auditable
//	    rig.json                   {rig_id, format}: marks the live tree of a rig
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
//	    permissions/{rule}.json    permanent decisions of the person
//	    events/{YYYY-MM-DD}.jsonl  append-only event log
//	    quarantine/…               damaged and misplaced files, each with a reason beside it
//	  run/                         volatile: locks, liveness, worker records
//	  logs/                        transcripts
//	  worktrees/                   git worktrees
//
// # The protocol
//
// Every durable change is one of these verbs. Except for Append, a verb returns nil
// only when its effect survives a power cut. They use only the calls of package disk:
//
//	WriteNew   write → fsync → close → name without replacing → fsync directory
//	WriteAll   write each → settle → name each → fsync each directory
//	Replace    temp in the same directory → write → fsync → rename → fsync directory
//	Move       rename without replacing → fsync destination → fsync source
//	MkdirAll   per component, top-down: mkdir → fsync parent, also when it already existed
//	Append     one write with O_APPEND; durable after SyncFile, because no decision relies on events
//
// WriteNew writes to a unique temp name and renames it. On file systems that were
// tested for it, it writes to a file without a name and links that. Many concurrent
// callers are served like WriteAll. To settle is to put the content of all files on
// the disk: by a barrier, which is syncfs and an fsync, or, on a file system that
// writes in order, by flushing each file and syncing one. On file systems that are not
// known to be safe with either, WriteAll syncs each file by itself. Without a journal,
// a rename between two folders can lose the file, so Move publishes a copy and then
// removes the original. disk.Features lists what each file system is trusted with, and
// docs/durability.md says why.
//
// A failed fsync is never retried on the same file, because the kernel reports an
// error once and drops the data: the temp file is removed, and the operation fails
// with the old content intact. For the same reason a failed sync counts against
// other changes too. A failed fsync of a folder counts against every change of that
// folder, and a failed barrier, which concerns the whole file system, against
// everything written to it, if the change was made before the failure and was not
// acknowledged yet. A file never gets its name before its content is durable, because
// the fsync of any other process could make the name durable alone. Visible is not
// durable: Lock fsyncs the folder of what it protects before it returns, so that no
// holder acts on an entry of another process that a power cut could still undo.
//
// Locks are flock(2) on one file for each object, below run/locks/. A lock file is
// never renamed or inherited. Only its holder removes it, when a power cut has left two
// lock files with one inode. Lock order: dispatch, bead, hook, queue, mailbox.
//
// The package refuses symbolic links, FIFOs, devices, and files with a second hard
// link. On a file system without a journal a power cut can leave such links: an old
// name, of a lock or of a ref of git, comes back after its inode was given to a file of
// the state. If all other names are in the rig's own folders, BreakAllHardLinks gives
// the file an inode of its own; its content was synced.
package state
