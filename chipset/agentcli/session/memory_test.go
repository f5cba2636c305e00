package session

import (
	"strings"
	"testing"
)

func FuzzKey(f *testing.F) {
	for _, s := range []string{"", "0a1b", "../x", "\x00", "A-B"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if k := key(id); strings.ContainsAny(k, "/\x00") || k == "." || k == ".." || k == "" || len(k) > 64 {
			t.Errorf("%q becomes the name %q", id, k)
		}
	})
}
