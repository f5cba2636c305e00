package repair

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzIndex: an index that is changed anywhere is torn, and the check comes back.
func FuzzIndex(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "index")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if tornIndex(path) != "" {
			return
		}
		// Whatever is whole is torn without its end.
		if err := os.Truncate(path, int64(len(data))-1); err != nil {
			t.Fatal(err)
		}
		if tornIndex(path) == "" {
			t.Fatalf("%x is whole with and without its end", data)
		}
	})
}
