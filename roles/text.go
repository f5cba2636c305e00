package roles

import "strings"

// maxLine bounds what FirstLine returns, in bytes.
const maxLine = 200

// FirstLine is the beginning of a text that may have many lines, for a subject or
// a reason. A colon that announced the next line is left out.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return Clip(strings.TrimRight(line, ": \r\t"), maxLine)
}

// Clip bounds a text in bytes, at a whole character. What it leaves out is marked
// by an ellipsis, which comes on top.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
