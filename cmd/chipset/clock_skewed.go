//go:build skewed_clock

package main

import (
	"os"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

// clockOf is the system's clock, set forwards or back by what the file says that
// $SKEWED_CLOCK names. It is read again every time, so that the clock of a process
// jumps while it runs.
func clockOf(system state.Clock) state.Clock {
	file := os.Getenv("SKEWED_CLOCK")
	return func() time.Time {
		text, err := os.ReadFile(file)
		if err != nil {
			return system()
		}
		skew, err := time.ParseDuration(strings.TrimSpace(string(text)))
		if err != nil {
			return system()
		}
		return system().Add(skew)
	}
}
