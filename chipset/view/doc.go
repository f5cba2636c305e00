// Package view holds what a person may want to see of a rig, as values: the status
// at a glance, the history of one bead, the health of the agents. It changes nothing.
//
// A rig that runs changes while it is read: a view shows what it found.
// The files that end in text.go write the values for a terminal.
package view
