package mail

import (
	"path/filepath"
	"strings"
	"testing"
)

// FuzzParseName: a name that a person gave is one file of a mailbox, or refused;
// and what it says can be said again.
func FuzzParseName(f *testing.F) {
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseName(s)
		if err != nil {
			return
		}
		if filepath.Base(string(n)) != string(n) || !strings.HasSuffix(string(n), ".json") || n.Time().IsZero() && !strings.HasPrefix(string(n), "0001-01-01") {
			t.Fatalf("%q is the name %q at %s", s, n, n.Time())
		}
		if again, err := ParseName(string(n)); err != nil || again != n {
			t.Fatalf("%q, then %q, %v", n, again, err)
		}
	})
}
