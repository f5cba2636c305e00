package statetest

import (
	"fmt"
	"os"
	"testing"
)

// Figures logs what a test has tried: states, faults, kills. Where CHIPSET_FIGURES
// names a file they are appended to it as well, because go test prints the log of a
// test that passed only with -v.
func Figures(t testing.TB, format string, args ...any) {
	t.Helper()
	t.Logf(format, args...)
	file := os.Getenv("CHIPSET_FIGURES")
	if file == "" {
		return
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(t.Name() + ": " + fmt.Sprintf(format, args...) + "\n")
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		t.Fatal(err)
	}
}
