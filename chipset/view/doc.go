// Package view holds what a person may want to see of a rig, as values: what waits for
// them, the agents, the work with its graph, the queue, the history of one bead. It
// writes nothing but the numbers of needs.
//
//	stores, mailboxes, event log ──what changed──▶ Model ──▶ View, Parts that differ
//
// A Model is built once and then follows changes, for callers that look again and again.
// GetStatus, Needs and Why look once, and use the same code.
//
// A running rig changes while it is read, so the parts of a view may be from slightly
// different moments. The files that end in text.go write the values for a terminal.
package view
