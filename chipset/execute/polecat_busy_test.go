package execute

import (
	"testing"
	"time"
)

// TestBusy: a client that uses 2% of a processor while it waits is not busy, however late it is looked at.
func TestBusy(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		used, elapsed time.Duration
		want          bool
	}{
		{20 * ms, time.Second, false},
		{60 * ms, time.Second, true},
		{100 * ms, 5 * time.Second, false},
		{300 * ms, 5 * time.Second, true},
		{0, 20 * ms, false},
		{cpuTick, 20 * ms, true},
		{2 * time.Second, 8 * time.Hour, false}, // the machine slept
		{4 * time.Second, 8 * time.Hour, true},
	} {
		if got := isBusy(tt.used, tt.elapsed); got != tt.want {
			t.Errorf("%s in %s: %v", tt.used, tt.elapsed, got)
		}
	}
}
