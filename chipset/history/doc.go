// Package history keeps the history of a rig's state tree in git, and verifies that
// no object in it made an illegal transition. The rules are in state/audit and in
// the packages of the objects; this package reads the live tree and runs git.
//
// # A snapshot
//
// The tree is read while the rig runs, so the order of reading matters. A message only ever moves
// from its mailbox to the archive, and anything may move to the quarantine. A
// mailbox is therefore listed before its archive, and the quarantine last: a file that moves
// meanwhile may be seen twice but is never missed, and the later place counts.
// Every file is replaced by renaming, so each is whole; the event log is cut after
// its last complete line.
//
// What is read may not be durable yet. The folders of all changed files are
// synced before the commit is made, so that after a power cut the history is never
// ahead of the tree.
//
// # A commit
//
// git mktree writes the folders that changed; one git fast-import writes the blobs and
// the commit on a ref of its own; one update-ref moves the branch by
// compare-and-swap. No checkout, index or HEAD is touched. The repository is synced before the branch moves and once more after it.
//
// # A proof
//
// Every commit is compared with each of its parents. Many legal steps may lie
// between the two; state/audit says which states are reachable.
package history
