// Package need numbers the needs of the person, the things that wait for a decision, so
// that a command can refer to one by a short number: run/needs.json.
//
// A need keeps its number as long as it lasts, and no later need gets the same number: a
// number that the person has read a while ago means the same need, or none. Numbers begin
// with 1 again only after run/ was deleted.
package need

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Key identifies a need. The same cause has the same key as long as it lasts; the next
// cause of the same kind has another key.
type Key string

// Numbered is a need with its number.
type Numbered struct {
	Number int `json:"number"`
	Key    Key `json:"key"`
	// What describes the need in a few words, for questions after it has ended.
	What string `json:"what"`
}

// Path is the file of the numbers.
const Path = state.RunDir + "/needs.json"

const (
	// maxKept is how many needs the file holds; the oldest ones are dropped.
	maxKept = 2000
	// maxOpen is how many needs can have numbers at the same time.
	maxOpen = 1000
	// maxWhat bounds Numbered.What, in bytes.
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

// read returns the content of the file. An invalid file counts as missing.
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

// Assign returns the numbers of needs, or of the first thousand if there are more. New
// needs get the next numbers, in their order; only then is the file written.
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

// Find returns the need with a number. Errors: *state.Unknown.
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
