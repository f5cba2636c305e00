// Package traced asks the kernel which syncs a piece of code really makes. What
// a test double records of package disk says nothing about the code below it.
package traced

import (
	"os"
	"path/filepath"
)

// Say tells the tracer what the calls from now on belong to. dir must exist;
// a word is said once.
func Say(dir, word string) error { return os.Mkdir(filepath.Join(dir, "say-"+word), 0o755) }
