// Package notify reaches a person who is not looking at the rig: by the terminal of up, the desktop, a command,
// a webhook.
//
// A notice is about one need, or is a digest of the work done. Each channel has its own goroutine and bounded queue: one
// that hangs delays neither the rig nor the others. A channel drops a notice that it can't deliver; the need itself is
// still in chipset inbox.
//
// Titles and reasons contain text from agents. A terminal gets them without control characters; a program gets them as
// one argument that starts with this package's own words, or as JSON on its standard input; request headers never
// contain them.
package notify
