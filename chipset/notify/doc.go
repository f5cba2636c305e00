// Package notify reaches a person who does not look at the rig: by the terminal of up, the desktop, a command,
// a webhook.
//
// A notice is about one need, or is a digest of what came of the work. Each channel has a goroutine and a bounded queue
// of its own: one that hangs delays neither the rig nor the others. A notice that a channel can't deliver is lost there:
// the need itself stands in chipset inbox.
//
// Titles and reasons are text of agents. A terminal gets it without control characters, a program as one argument that
// begins with this package's own words, or as JSON on its standard input; no header of a request holds any.
package notify
