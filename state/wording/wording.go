// Package wording writes small pieces of text for people: the first line of a
// longer text, a bounded quotation, a number with its noun.
package wording

import (
	"fmt"
	"strings"
	"unicode"
)

// FirstLine returns the first line of a text that has more than blanks.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(line)
}

// Subject returns the first line of a text for use as a subject: valid UTF-8, without
// control characters, of at most that many bytes and an ellipsis. It returns otherwise
// where that line is empty.
func Subject(s string, most int, otherwise string) string {
	line := strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, FirstLine(s)))
	if line == "" {
		return otherwise
	}
	return Clip(line, most)
}

// Clip returns a text as valid UTF-8, cut at a whole character to at most that many
// bytes. An ellipsis, which is not counted, marks the cut.
func Clip(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// ShortHash returns the first ten digits of a commit's hash.
func ShortHash[T ~string](hash T) string { return string(hash[:min(10, len(hash))]) }

// Count returns a number with its noun: 1 file, 2 files.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Strings returns words, of whatever type, as strings.
func Strings[T ~string](words []T) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return all
}

// Join is strings.Join for words of any type.
func Join[T ~string](words []T, between string) string {
	return strings.Join(Strings(words), between)
}

// JoinFirst returns the first words, separated by commas, and an ellipsis where there are more.
func JoinFirst[T ~string](words []T, most int) string {
	if len(words) > most {
		return Join(words[:most], ", ") + ", …"
	}
	return Join(words, ", ")
}

// maxReason bounds what Reason returns, in bytes.
const maxReason = 200

// Reason returns the beginning of a text that says why something failed, on one line.
// A colon that announced the next line is left out.
func Reason(s string) string { return Clip(strings.TrimRight(FirstLine(s), ": \r\t"), maxReason) }

// Thousands is a number in a few characters: 950, 12.3k, 4.5M.
func Thousands(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1_000_000)
}
