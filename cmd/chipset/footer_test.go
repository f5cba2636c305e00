package main

import (
	"strings"
	"testing"
)

// TestFooterStays: what is printed goes above it, and nothing of it is left at the end.
func TestFooterStays(t *testing.T) {
	var out strings.Builder
	f := &footer{w: &out}
	took := func(want string) {
		t.Helper()
		if got := out.String(); got != want {
			t.Errorf("wrote %q, want %q", got, want)
		}
		out.Reset()
	}
	f.print("one")
	took("one\n")
	f.set([]string{"a", "b"})
	took("a\nb")
	f.set([]string{"a", "b"})
	took("")
	f.print("two")
	took("\r\x1b[A\x1b[Jtwo\na\nb")
	f.set([]string{"c"})
	took("\r\x1b[A\x1b[Jc")
	f.end()
	took("\r\x1b[J")
	f.set([]string{"late"})
	f.print("three")
	took("three\n")
}
