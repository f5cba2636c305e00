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
