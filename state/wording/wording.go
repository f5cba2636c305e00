// Package wording formats small pieces of text for people: the first line of a longer
// text, a bounded quotation, a number with its noun.
package wording

import (
	"fmt"
	"strings"
	"unicode"
)

// FirstLine returns the first line of a text that is not blank, without spaces around it.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(line)
}

// Subject returns the first line of a text for use as a subject: valid UTF-8, without
// control characters, of at most that many bytes and an ellipsis. If that line is empty,
// it returns otherwise.
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

// Count returns a number with its noun, such as "1 file" or "2 files".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Strings converts words of any string type to strings.
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

// JoinFirst returns at most the given number of words, separated by commas, and an ellipsis if there are more.
func JoinFirst[T ~string](words []T, most int) string {
	if len(words) > most {
		return Join(words[:most], ", ") + ", …"
	}
	return Join(words, ", ")
}

// maxReason bounds what Reason returns, in bytes.
const maxReason = 200

// Reason shortens a text that says why something failed to one line of at most maxReason bytes,
// without a colon at its end.
func Reason(s string) string { return Clip(strings.TrimRight(FirstLine(s), ": \r\t"), maxReason) }

// Thousands formats a number in a few characters: 950, 12.3k, 4.5M.
func Thousands(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1_000_000)
}
