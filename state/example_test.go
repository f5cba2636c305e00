package state_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gastown-chipset/chipset/state"
)

// counter is an object of a store. Its name is part of its content, so that a file
// under a wrong name is noticed.
type counter struct {
	Name  string `json:"name"`
	Value int    `json:"value"`
}

// A store keeps one JSON file for each object. Update is a compare-and-swap across
// processes.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	check(err)
	defer os.RemoveAll(dir)
	tree, err := state.Create(filepath.Join(dir, ".chipset"))
	check(err)

	counters := state.NewStore(tree, "state/counters", "counter", state.LockRecord, func(name string, c *counter) error {
		if c.Name != name {
			return fmt.Errorf("name %q contradicts the file's name", c.Name)
		}
		return nil
	})
	check(counters.Create("visits", counter{Name: "visits"}))
	after, err := counters.Update(ctx, "visits", func(c *counter) error { c.Value++; return nil })
	check(err)
	fmt.Println(after.Value)

	data, err := tree.Read("state/counters/visits.json", state.MaxFile)
	check(err)
	fmt.Print(string(data))
	// Output:
	// 1
	// {
	//   "name": "visits",
	//   "value": 1
	// }
}

// WriteNew publishes a file under a name that nobody has.
func ExampleTree_WriteNew() {
	dir, err := os.MkdirTemp("", "example-")
	check(err)
	defer os.RemoveAll(dir)
	tree, err := state.Create(filepath.Join(dir, ".chipset"))
	check(err)

	fmt.Println(tree.WriteNew("state/notes/1.json", []byte("{}\n"))) // durable when nil
	err = tree.WriteNew("state/notes/1.json", []byte("{}\n"))
	fmt.Println(errors.Is(err, state.ErrExists))
	// Output:
	// <nil>
	// true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
