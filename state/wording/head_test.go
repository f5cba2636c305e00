package wording

import (
	"strings"
	"testing"
)

func TestHead(t *testing.T) {
	h := Head{Most: 5}
	for _, part := range []string{"abc", "defg", "h"} {
		if n, err := h.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("%q: %d, %v", part, n, err)
		}
	}
	if got := h.String(); got != "abcde" {
		t.Errorf("kept %q", got)
	}
	if _, _ = h.Write([]byte(strings.Repeat("x", 10))); h.String() != "abcde" {
		t.Errorf("kept %q", h.String())
	}
}
