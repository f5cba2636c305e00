package prompt

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// terminalSequence is what a terminal obeys: CSI, OSC and two-character escapes,
// in their 7-bit and 8-bit forms.
var terminalSequence = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\x1b\\]|\u009d)[^\x07\x1b\u009c\n]*(?:\x07|\x1b\\\\|\u009c)?|\x1b[ -/]*[0-~]")
})

// Plain is text of others without anything that acts instead of being read:
// sequences for terminals, control characters, what turns the direction of
// text or is not visible at all, and code points that stand for nothing. What
// ends a line in any way is a newline. Plain(Plain(s)) is Plain(s).
//
// Joiners and variation selectors go too: they are the place where text that
// nobody sees is hidden, and a message of an agent is readable without them.
func Plain(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = terminalSequence().ReplaceAllString(s, "")
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(s)
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if unicode.IsControl(r) || invisible(r) {
			return -1
		}
		return r
	}, s)
}

// invisible reports whether a character shows nothing, or changes what is around it.
func invisible(r rune) bool {
	const brailleBlank = '\u2800'
	return r == brailleBlank || unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs,
		unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point)
}

// Line is Plain as one line of at most limit bytes.
func Line(s string, limit int) string {
	s = strings.Join(strings.Fields(Plain(s)), " ")
	if len(s) <= limit {
		return s
	}
	return Cut(s, limit-len("…")) + "…"
}

// Cut takes at most n bytes, at a whole character.
func Cut(s string, n int) string {
	if n >= len(s) {
		return s
	}
	n = max(n, 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// roleMarker is how a line of a transcript says who speaks.
var roleMarker = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?im)^([ \t#*>]*(?:human|user|assistant|system|developer)[ \t]*):`)
})

// templateMarker is how chat templates without angle brackets tell turns apart.
var templateMarker = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\[(/?(?:inst|system_prompt|available_tools|tool_calls|tool_results)\])`)
})

// escape makes plain text that no reader can take for the end of the element
// it stands in, for an element of its own, or for a turn of somebody else.
// Everything is a character reference, so that unescaping gives the text back.
func escape(plain string) string {
	s := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;",
		// Looks and, for whoever normalises first, is the same.
		"\uFF1C", "&#xff1c;", "\uFF1E", "&#xff1e;", "\uFE64", "&#xfe64;", "\uFE65", "&#xfe65;").Replace(plain)
	s = roleMarker().ReplaceAllString(s, "$1&#58;")
	return templateMarker().ReplaceAllString(s, "&#91;$1")
}

// quote makes text of others fit to stand in an element.
func quote(s string) string { return escape(Plain(s)) }

// part is the longest beginning of plain text that can be found quickly whose
// escaped form has at most limit bytes. It is never empty unless plain is.
func part(plain string, limit int) string {
	p := Cut(plain, limit)
	for {
		n := len(escape(p))
		if n <= limit {
			return p
		}
		shorter := Cut(p, len(p)*limit/n)
		if shorter == "" || shorter == p {
			return p
		}
		p = shorter
	}
}

// quoteUpTo is quote of at most limit bytes of result, and reports whether
// something was left off.
func quoteUpTo(s string, limit int) (string, bool) {
	plain := Plain(s)
	p := part(plain, limit)
	return escape(p), len(p) < len(plain)
}

// attribute makes text for between two quotation marks, of at most limit bytes
// before it is escaped.
func attribute(s string, limit int) string {
	return strings.NewReplacer(`"`, "&quot;", "'", "&#39;").Replace(escape(Line(s, limit)))
}
