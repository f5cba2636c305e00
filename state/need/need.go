// Package need numbers what waits for the person, so that a short number names it:
// run/needs.json.
//
// A number is given once. It stays with its need as long as that lasts, however others
// come and go, and no later need gets it: a number that the person has read a while ago
// means the same need, or none. Numbers begin again with 1 only where run/ was deleted.
package need

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Key says what a need is about. The same cause has the same key as long as it lasts; the
// next cause of the same kind has another.
type Key string

// Numbered is a need with its number.
type Numbered struct {
	Number int `json:"number"`
	Key    Key `json:"key"`
	// What is the need in a few words, for who asks after it is gone.
	What string `json:"what"`
}

// Path is the file of the numbers.
const Path = state.RunDir + "/needs.json"

const (
	// maxKept bounds the file: the oldest numbers are forgotten.
	maxKept = 2000
	// maxOpen is how many needs have numbers at once.
	maxOpen = 1000
	// maxWhat bounds what is kept of a need, in bytes.
	maxWhat = 100
)

// Store keeps the numbers of a tree.
type Store struct{ tree *state.Tree }

// NewStore opens the numbers of a tree.
func NewStore(t *state.Tree) Store { return Store{t} }

// known is the content of the file, lowest number first.
type known struct {
	Next  int        `json:"next"`
	Needs []Numbered `json:"needs"`
}

// read returns what is known. A file that can't be used counts as none.
func (s Store) read() (known, error) {
	k := known{Next: 1}
	data, err := s.tree.Read(Path, state.MaxFile)
	if errors.Is(err, state.ErrNotFound) {
		return k, nil
	}
	if err != nil {
		return k, fmt.Errorf("numbers of needs: %w", err)
	}
	var stored known
	if json.Unmarshal(data, &stored) == nil && stored.Next > 0 {
		k = stored
	}
	return k, nil
}

func (k *known) numbers() map[Key]int {
	numbers := make(map[Key]int, len(k.Needs))
	for _, n := range k.Needs {
		numbers[n.Key] = n.Number
	}
	return numbers
}

// Assign returns the numbers of needs, of at most the first thousand. New ones get the
// next numbers, in the order given; only then is the file written.
func (s Store) Assign(ctx context.Context, needs []Numbered) (map[Key]int, error) {
	needs = needs[:min(maxOpen, len(needs))]
	k, err := s.read()
	if numbers := k.numbers(); err != nil || !missing(numbers, needs) {
		return numbers, err
	}
	lock, err := s.tree.Lock(ctx, state.LockRecord, "needs")
	if err != nil {
		return k.numbers(), err
	}
	defer lock.Unlock()
	if k, err = s.read(); err != nil {
		return nil, err
	}
	before, numbers := k.numbers(), k.numbers()
	for _, n := range needs {
		if numbers[n.Key] != 0 {
			continue
		}
		n.Number, n.What = k.Next, wording.Subject(n.What, maxWhat, "")
		numbers[n.Key] = n.Number
		k.Needs = append(k.Needs, n)
		k.Next++
	}
	k.Needs = k.Needs[max(0, len(k.Needs)-maxKept):]
	if err := s.tree.ReplaceJSON(Path, k); err != nil {
		return before, err
	}
	return numbers, nil
}

func missing(numbers map[Key]int, needs []Numbered) bool {
	for _, n := range needs {
		if numbers[n.Key] == 0 {
			return true
		}
	}
	return false
}

// Find returns what a number was given to. Errors: *state.Unknown.
func (s Store) Find(number int) (Numbered, error) {
	k, err := s.read()
	if err != nil {
		return Numbered{}, err
	}
	for _, n := range k.Needs {
		if n.Number == number {
			return n, nil
		}
	}
	return Numbered{}, &state.Unknown{Kind: "need", Name: fmt.Sprint(number)}
}
