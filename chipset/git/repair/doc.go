// Package repair puts right what a power cut, a kill or a hand leaves of git's own files, where git itself refuses to
// go on.
//
// # Worktrees
//
// A linked worktree of which anything is torn (its folder below .git/worktrees, or its file .git) is
// not healed file by file: the whole registration is set aside, and made again by [Worktree]. The files of the work stay
// where they are and become changes against the commit that could be found, so that the caller can save them on a ref.
//
// # Refs and objects
//
// A ref that names nothing is put on the newest commit of which its reflog or a record tells ([RestoreRef]), or removed
// ([RemoveRef]). Objects without content are removed, because git takes them for there ([RemoveEmptyObjects]). Files that
// stand where git needs a folder are set aside ([Obstacles], [SetAside]).
//
// # A person's checkout
//
// [Advance] takes back what a fast-forward that was killed had written into the checkout of the target, and nothing else.
//
// What is set aside is kept below chipset-aside in git's common folder; nothing is deleted that held anything.
package repair
