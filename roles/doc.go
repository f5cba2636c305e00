// Package roles holds what the agents of a rig decide. Each role is one
// package with one pure function, Decide: it gets the present state and the
// facts that a tick fetched, and returns a Decision. It touches no disk, no
// clock and no process: the same input always gives the same decision.
//
//	mayor     coordinates: dispatches beads, reworks, restarts, asks a person
//	polecat   executes one bead at a time
//	refinery  lands merge requests, one at a time, in order
//	witness   watches, and tells
//
// This package is what they share: the actions that more than one role takes,
// and the rule by which a decision is carried out (see Progress). The actions
// themselves are carried out by chipset/execute, and in simulated time by
// chipset/simulate. Every action is idempotent.
package roles
