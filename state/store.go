package state

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

// Store holds the JSON objects of one folder, one file each. It caches parsed objects, so
// that All, Select and Since read only files whose stamps have changed; Get and every
// compare-and-swap read the file itself. Returned values share memory: treat them as
// read-only.
type Store[T any] struct {
	tree  *Tree
	dir   Path
	kind  string
	lock  LockKind
	check func(name string, v *T) error

	// fields and cachePath are those of WithSummaries.
	fields    func(v *T) []string
	cachePath Path

	mu     sync.Mutex
	follow Follower
	cache  map[string]cached[T] // by file name
	// young names are looked at each time, because a later version of the file could
	// have the same stamp, or because the system refused to read it.
	young map[string]bool
	// order are the sorted names of cache; values and bad are the results of All. Each is
	// nil when it must be computed again.
	order  []string
	values []T
	bad    []error
	// history are the names of the last changes, oldest first; changes counts all
	// changes since the store was made.
	history []string
	changes int64
	// reads counts the files that were read, for tests of the cache.
	reads atomic.Int64
}

type cached[T any] struct {
	stamp Stamp
	fresh bool // no later version of the file can have the same stamp
	value T
	err   error
}

// NewStore returns a store of the objects in dir. kind names an object in messages, lock
// is the kind of their locks, and check returns an error for an object that is invalid or
// contradicts its file's name (without .json).
func NewStore[T any](t *Tree, dir Path, kind string, lock LockKind, check func(name string, v *T) error) *Store[T] {
	return &Store[T]{tree: t, dir: dir, kind: kind, lock: lock, check: check,
		cache: map[string]cached[T]{}, young: map[string]bool{}}
}

// Follow makes All, Select and Since look only at files that the watcher reports, unless
// it may have missed a change.
func (s *Store[T]) Follow(w *Watcher) {
	s.mu.Lock()
	s.follow = NewFollower(s.tree, s.dir, w)
	s.mu.Unlock()
}

// Dir is the folder of the store.
func (s *Store[T]) Dir() Path { return s.dir }

// Path is the file of the object called name.
func (s *Store[T]) Path(name string) Path { return s.dir.Join(name + suffix) }

// Get reads one object. Errors: *Unknown (an ErrNotFound), *Corruption.
func (s *Store[T]) Get(name string) (T, error) {
	var zero T
	if err := CheckID(name); err != nil {
		return zero, err
	}
	v, err := s.read(name)
	if errors.Is(err, ErrNotFound) {
		return zero, s.unknown(name)
	}
	return v, err
}

// GetCached is Get, but reads the file only if its stamp has changed.
func (s *Store[T]) GetCached(name string) (T, error) {
	var zero T
	if err := CheckID(name); err != nil {
		return zero, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, err := s.openFolder()
	if err != nil {
		return zero, err
	}
	if dir == nil {
		return zero, &Unknown{Kind: s.kind, Name: name}
	}
	defer dir.Close()
	c, gone := s.look(dir, name+suffix)
	if gone {
		return zero, &Unknown{Kind: s.kind, Name: name}
	}
	return c.value, c.err
}

// suffix ends the names of the files.
const suffix = ".json"

func (s *Store[T]) read(name string) (T, error) {
	var v T
	p := s.Path(name)
	data, err := s.tree.Read(p, MaxFile)
	if err != nil {
		return v, err
	}
	return s.decode(name, data)
}

func (s *Store[T]) decode(name string, data []byte) (T, error) {
	var v T
	p := string(s.Path(name))
	if err := Decode(p, data, &v); err != nil {
		return v, err
	}
	if err := s.check(name, &v); err != nil {
		return v, &Corruption{Path: p, Reason: err.Error()}
	}
	return v, nil
}

func (s *Store[T]) unknown(name string) error {
	return &Unknown{Kind: s.kind, Name: name, Known: func() []string {
		var names []string
		entries, _ := s.tree.List(s.dir)
		for _, e := range entries {
			names = append(names, strings.TrimSuffix(e.Name(), suffix))
		}
		return names
	}}
}

// Create publishes a new object; ErrExists when the name is taken. Durable
// when it returns nil.
func (s *Store[T]) Create(name string, v T) error {
	data, err := s.encode(name, &v)
	if err != nil {
		return err
	}
	return s.tree.WriteNew(s.Path(name), data)
}

// CreateAll publishes many new objects under the names that name returns, and returns
// for each what Create would have returned. It needs far fewer fsyncs than Create.
func (s *Store[T]) CreateAll(all []T, name func(v *T) string) []error {
	errs := make([]error, len(all))
	news, at := make([]NewFile, 0, len(all)), make([]int, 0, len(all))
	for i := range all {
		n := name(&all[i])
		data, err := s.encode(n, &all[i])
		if err != nil {
			errs[i] = err
			continue
		}
		news, at = append(news, NewFile{Path: s.Path(n), Data: data}), append(at, i)
	}
	for k, err := range s.tree.WriteAll(news) {
		errs[at[k]] = err
	}
	return errs
}

// Put creates or replaces an object. Durable when it returns nil.
func (s *Store[T]) Put(name string, v T) error {
	data, err := s.encode(name, &v)
	if err != nil {
		return err
	}
	return s.tree.Replace(s.Path(name), data)
}

func (s *Store[T]) encode(name string, v *T) ([]byte, error) {
	if err := CheckID(name); err != nil {
		return nil, err
	}
	if err := s.check(name, v); err != nil {
		return nil, fmt.Errorf("%s %s: %w", s.kind, name, err)
	}
	data, err := Encode(v)
	if err != nil {
		return nil, err
	}
	if len(data) > MaxFile {
		return nil, fmt.Errorf("%s %s: %w: %d bytes, at most %d", s.kind, name, ErrTooLarge, len(data), MaxFile)
	}
	return data, nil
}

// ErrUnchanged is returned by the change function of Update if there is nothing to
// change. Update then writes nothing and returns the object and a nil error.
var ErrUnchanged = errors.New("unchanged")

// Update changes one object under its lock: read, change, replace. If change returns an
// error, Update returns it and leaves the file untouched. Durable when it returns nil.
func (s *Store[T]) Update(ctx context.Context, name string, change func(v *T) error) (T, error) {
	return s.UpdateThen(ctx, name, change, nil)
}

// UpdateThen is Update with an action under the same lock: act runs after change has
// returned nil and before the object is replaced. An error of act leaves the file
// untouched.
func (s *Store[T]) UpdateThen(ctx context.Context, name string, change func(v *T) error, act func() error) (T, error) {
	return s.swap(ctx, name, func(v *T, found bool) error {
		if !found {
			return s.unknown(name)
		}
		return change(v)
	}, act)
}

// Upsert is Update for an object that may not exist yet; found is false and v is zero then.
func (s *Store[T]) Upsert(ctx context.Context, name string, change func(v *T, found bool) error) (T, error) {
	return s.swap(ctx, name, change, nil)
}

// swap changes an object under its lock. act may be nil.
func (s *Store[T]) swap(ctx context.Context, name string, change func(v *T, found bool) error, act func() error) (T, error) {
	var zero T
	if err := CheckID(name); err != nil {
		return zero, err
	}
	l, err := s.tree.Lock(ctx, s.lock, name, s.dir)
	if err != nil {
		return zero, err
	}
	defer l.Unlock()
	v, err := s.read(name)
	found := err == nil
	if err != nil && !errors.Is(err, ErrNotFound) {
		return zero, err
	}
	if err := change(&v, found); err != nil {
		if errors.Is(err, ErrUnchanged) {
			return v, nil
		}
		return zero, err
	}
	if act != nil {
		if err := act(); err != nil {
			return zero, err
		}
	}
	return v, s.Put(name, v)
}

// Quarantine moves the file of an object to the quarantine, if it is still damaged under
// its lock. See Tree.QuarantineDamaged. Durable when it returns nil.
func (s *Store[T]) Quarantine(ctx context.Context, name string, now Time) error {
	l, err := s.tree.Lock(ctx, s.lock, name, s.dir)
	if err != nil {
		return err
	}
	defer l.Unlock()
	_, err = s.Get(name)
	return s.tree.QuarantineDamaged(s.Path(name), err, now)
}

// Remove removes an object. A missing object is not an error. Durable when it returns nil.
func (s *Store[T]) Remove(name string) error {
	if err := CheckID(name); err != nil {
		return err
	}
	return s.tree.Remove(s.Path(name))
}
