// Package view holds what a person may want to see of a rig, as values: what waits for
// them, the agents, the work with its graph, the queue, the history of one bead. It
// changes nothing but the numbers of needs.
//
//	stores, mailboxes, event log ──what changed──▶ Model ──▶ View, Parts that differ
//
// A Model is built once and then follows what changes, for whoever looks again and again.
// GetStatus, Needs and Why look once; what they show is put together by the same code.
//
// A rig that runs changes while it is read: a view shows what it found.
// The files that end in text.go write the values for a terminal.
package view
