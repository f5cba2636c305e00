//go:build !linux && !darwin

package disk

func renameNew(from, to string) error { return linkThenUnlink(from, to) }
