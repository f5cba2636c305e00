// Package repair mends git's own files after a power cut, a kill or manual damage, where git itself refuses to
// continue.
//
// # Worktrees
//
// If anything of a linked worktree is torn (its folder below .git/worktrees, or its file .git), it is
// not mended file by file: [Worktree] sets the whole registration aside and makes a new one. The files of the work stay
// in place and become changes against the newest commit that can be found, so that the caller can save them on a ref.
//
// # Refs and objects
//
// A broken ref is set to the newest existing commit in its reflog or in a record ([RestoreRef]), or removed
// ([RemoveRef]). Empty objects are removed, because git takes them for present ([RemoveEmptyObjects]). Files
// in the place of folders are set aside ([Obstacles], [SetAside]).
//
// # A person's checkout
//
// [Advance] reverts what a killed fast-forward has written into the checkout of the target, and nothing else.
//
// Whatever is set aside is kept below chipset-aside in git's common folder. Nothing with content is deleted.
package repair
