//go:build !skewed_clock

package main

import "github.com/gastown-chipset/chipset/state"

// clockOf is the clock of every command: the system's, as it is. The build that the soak
// runs has another one, which can be set while it runs.
func clockOf(system state.Clock) state.Clock { return system }
