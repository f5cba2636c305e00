// Package terminal is the board on a terminal: what waits for the person, the agents, the
// work, the queue, and the story, transcript, diff and mail of what is selected.
//
//	state tree ──notification──▶ look: view.Model ──viewMsg──▶ Update ──▶ View
//	keys, mouse ──▶ Update ──act──▶ Options.Run: the command itself ──ranMsg──▶ Update
//
// Update only moves values; everything that reads the disk or takes time is a command of
// Bubble Tea. View draws only the visible rows, so a frame costs the same with ten beads
// and with ten thousand. Text from agents is cleaned where it becomes a cell or a line
// (fit and wrap), and nowhere else.
//
// An act is a command line, run by the code of the command line: the board can do what
// chipset can, and is refused what chipset is refused.
package terminal
