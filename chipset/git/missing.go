package git

import (
	"context"
	"errors"
	"fmt"
	"regexp"
)

// MissingError is returned for a commit whose history has a missing or damaged object.
type MissingError struct {
	// Tip is the commit, Object the first object that git can't read, "" if git does not name it.
	Tip, Object Hash
}

func (e *MissingError) Error() string {
	if e.Object == "" {
		return fmt.Sprintf("something that %s reaches is missing", e.Tip.Short())
	}
	return fmt.Sprintf("the object %s, which %s reaches, is missing", e.Object.Short(), e.Tip.Short())
}

// CheckReached walks the whole history of a commit and checks that every object exists. Errors: *MissingError.
func (r *Repo) CheckReached(ctx context.Context, tip Hash) error {
	if err := tip.check(); err != nil {
		return err
	}
	_, err := r.read(ctx, "rev-list", "--objects", "--quiet", string(tip), "--")
	return inPlainWords(tip, err)
}

// inPlainWords converts git's error for a history that it can't walk to a *MissingError.
func inPlainWords(tip Hash, err error) error {
	var failed *Error
	if !exited(err, 1, 128) || !errors.As(err, &failed) {
		return err
	}
	named := regexp.MustCompile(`\b[0-9a-f]{40}(?:[0-9a-f]{24})?\b`).FindString(failed.Stderr)
	return &MissingError{Tip: tip, Object: Hash(named)}
}

// MendReached restores the missing objects in the history of a branch: from KeepObjects' copies, then by fetching the whole branch from a
// remote. Errors: *MissingError if something is still missing.
func (r *Repo) MendReached(ctx context.Context, b Branch) error {
	tip, found, err := r.ResolveRef(ctx, b.Ref())
	if err != nil || !found {
		return err
	}
	if _, err := r.RestoreObjects(ctx); err != nil {
		return err
	}
	remotes, err := r.Remotes(ctx)
	if err != nil {
		return err
	}
	missing := r.CheckReached(ctx, tip)
	for _, remote := range remotes {
		if missing == nil {
			break
		}
		_, err = r.fetch(ctx, remote, b, "--refetch")
		r.Close() // the coprocesses have old packs open
		missing = r.CheckReached(ctx, tip)
	}
	if missing != nil {
		return errors.Join(missing, err)
	}
	return nil // what is lost with the power is missing again, and mended again
}
