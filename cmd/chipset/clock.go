//go:build !skewed_clock

package main

import "github.com/gastown-chipset/chipset/state"

// clockOf returns the clock of every command: the system's. The build of the soak test has
// another one, which can be set while it runs.
func clockOf(system state.Clock) state.Clock { return system }
