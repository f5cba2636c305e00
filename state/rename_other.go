//go:build !linux && !darwin

package state

// renameNoReplace moves old to name and fails with EEXIST when name is taken.
func renameNoReplace(old, name string) error { return linkThenUnlink(old, name) }
