// Package history keeps the history of a rig's state tree in git, and verifies that
// no object in it made an illegal transition. The rules are in state/audit and in
// the packages of the objects; this package reads the live tree and runs git.
//
// # A snapshot
//
// The tree is read while the rig runs, so the order of reading matters. A message only ever moves
// from its mailbox to the archive, and anything may move to the quarantine. A
// mailbox is therefore listed before its archive, and the quarantine last: what moves
// meanwhile may be seen twice but is never missed, and counts where it was seen last.
// Every file is replaced by renaming, so each is whole; the event log is cut after
// its last whole line.
//
// What is read may not be durable yet. The folders of everything that changed are
// synced before the commit is made, so that a power cut never leaves a history that is
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
