package roles

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	const first, most = time.Minute, 15 * time.Minute
	for tries, want := range map[int]time.Duration{0: first, 1: first, 2: 2 * first, 4: 8 * first, 5: most, 1000: most} {
		if got := Backoff(first, most, tries); got != want {
			t.Errorf("try %d: %s, want %s", tries, got, want)
		}
	}
}

func TestFirstLine(t *testing.T) {
	for text, want := range map[string]string{"": "", "\n a\nb": "a", "one": "one", "exit code 1:\nboom": "exit code 1", "a: b\n": "a: b"} {
		if got := FirstLine(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := FirstLine(string(make([]byte, 500))); len(got) > maxLine+len("…") {
		t.Errorf("%d bytes", len(got))
	}
}
