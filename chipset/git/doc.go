// Package git is everything a rig does with git, by running the git binary
// (2.39 or newer).
//
// # Explicit places
//
// The worktrees of a rig live below its main worktree. A git that runs in one of them and
// finds its .git file gone would walk upwards and find the person's own checkout,
// and "reset --hard" or "clean" would then hit that. So no command of this package
// ever lets git discover a repository: each names its git directory, and its work tree if it
// needs one. Only [Open] discovers, and it changes nothing.
//
// # Processes
//
// Starting git costs more than most questions that it answers. Questions about commits, trees and names therefore go to
// two long-lived processes of each Repo: "git cat-file --batch-command" and "git diff-tree --stdin". They start
// on demand and end after a few idle seconds, on [Repo.Close], and with this process. They
// resolve each name again, and look for new packs when an object is missing. Loose refs and HEADs
// are read directly when they are plain files. Only git changes a repository.
//
// # What is durable when a method returns
//
// Objects, refs and indexes are written with core.fsync=all. That does not cover
// every directory entry on every file system, so a caller that acknowledges a commit or a
// merge calls [Repo.Sync] first. [Repo.MakeDurable] makes durable what another git wrote. Package repair mends
// what a power cut tore.
//
// # Locks
//
// A Repo serialises making and removing worktrees inside one process. Between processes the
// callers hold a lock of their own; git's own locks guard the rest. A stale lock
// in a linked worktree of the rig is removed after a grace, because nobody but the rig works
// there. A lock in a person's checkout is only ever removed when the caller vouches for it.
//
// # Trust
//
// Branch names, hashes and remotes are types whose values are checked again in every method;
// refs are passed to git by their full name. User hooks never run. Paths of the work tree go
// through NUL-separated standard input with literal pathspecs, never through arguments.
package git
