package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// NamedRef is a ref and what it names.
type NamedRef struct {
	Ref  Ref
	Hash Hash
}

// ListRefs lists the refs below the given prefixes, by name.
func (r *Repo) ListRefs(ctx context.Context, below ...string) ([]NamedRef, error) {
	out, err := r.read(ctx, append([]string{"for-each-ref", "--format=%(objectname) %(refname)", "--"}, below...)...)
	if err != nil {
		return nil, err
	}
	var refs []NamedRef
	for line := range strings.Lines(string(out)) {
		hash, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		ref, refErr := ParseRef(name)
		h, hashErr := ParseHash(hash)
		if err := errors.Join(refErr, hashErr); err != nil {
			return nil, fmt.Errorf("for-each-ref: %w", err)
		}
		refs = append(refs, NamedRef{ref, h})
	}
	return refs, nil
}
