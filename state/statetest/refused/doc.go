// Package refused lets one call on a file fail after the other, as a disk does that is about to die. A spoilt file
// fails every call; this fails the one that looks, the one that renames, or the one that syncs a folder alone.
package refused

// Call is one that was made.
type Call struct {
	// What names it and the file, relative to the folder.
	What string
	// From are the lines of code that made it, if none was to fail.
	From string
}
