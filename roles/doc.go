// Package roles holds what the agents of a rig decide. Each role is one
// package with one pure function, Decide: it gets the present state and the
// facts that a tick fetched, and returns the next state and the actions to
// carry out, in order. It touches no disk, no clock and no process: the same
// input always gives the same decision.
//
//	mayor     coordinates: dispatches beads, reworks, restarts, asks a person
//	polecat   executes one bead at a time
//	refinery  lands merge requests, one at a time, in order
//	witness   watches, and tells
//
// The actions are carried out by chipset/execute. Every action is idempotent,
// and their order says what must be durable before what.
package roles
