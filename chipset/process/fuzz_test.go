package process

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/gastown-chipset/chipset/state"
)

// FuzzReadExit: a record is read, or refused as one that is none; and what was read
// is written and read as the same.
func FuzzReadExit(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "exit.json")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		exit, found, err := ReadExit(path)
		if err != nil {
			if !errors.Is(err, ErrBadRecord) {
				t.Fatalf("not an ErrBadRecord: %v", err)
			}
			return
		}
		if !found || state.CheckID(exit.ID) != nil {
			t.Fatalf("found %v, the id is %q", found, exit.ID)
		}
		text, err := json.Marshal(exit)
		if err != nil {
			return // a year that no record can hold
		}
		var again Exit
		if err := json.Unmarshal(text, &again); err != nil || again.ID != exit.ID || again.Code != exit.Code || again.Done != exit.Done {
			t.Fatalf("%s became %s, %v", data, text, err)
		}
	})
}

// FuzzParseCommand: a command line of the definition becomes words without a NUL,
// or is refused; never no words at all.
func FuzzParseCommand(f *testing.F) {
	f.Fuzz(func(t *testing.T, line string) {
		words, err := ParseCommand(line)
		if err == nil && len(words) == 0 {
			t.Fatalf("%q is no words", line)
		}
	})
}
