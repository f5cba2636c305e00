// Package history keeps the history of a rig's state tree in git, and proves that
// nothing in it moved illegally. The rules are those of state/audit and of the
// nouns they speak of; this package reads the live tree and talks to git.
//
// # A snapshot
//
// The tree is read while the rig runs, so its order counts. A message only ever moves
// from its mailbox to the archive, and anything may move to the quarantine. A
// mailbox is therefore listed before its archive, and the quarantine last: what moves
// meanwhile is seen twice, never not at all, and counts where it was seen last.
// Every file is replaced by renaming, so each is whole; the event log is cut behind
// its last whole line.
//
// What is seen need not be durable. The folders of everything that changed are
// synced before the commit is made, so that a power cut never leaves a history that is
// ahead of the tree it tells of.
//
// # A commit
//
// git mktree writes the folders that changed, one git fast-import the blobs and the
// commit, on a ref of its own; one update-ref moves the branch by compare-and-swap. No checkout, index or HEAD is
// touched. The repository is synced before the branch moves and once more after it.
//
// # A proof
//
// Every commit is held against each of its parents. Many legal steps may lie
// between the two; state/audit says what can be reached.
package history
