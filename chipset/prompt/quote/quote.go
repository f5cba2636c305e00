// Package quote makes what others wrote fit to stand in a text for a model: as data that no
// reader can take for the end of its frame, for a tag, or for a turn of somebody else.
package quote

import (
	"fmt"
	"reflect"
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

// roleMarker is how a line of a transcript says who speaks, in a list, quoted or in bold letters, too. Angle brackets are escaped already.
var roleMarker = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?im)^((?:&#?\w+;|[^\pL\pN\n])*(?:human|user|assistant|system|developer)(?:&#?\w+;|[^\pL\pN\n:])*):`)
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

// Lines is text of others, of any number of lines, fit to stand in an element.
func Lines(s string) Text { return Text(escape(Plain(s))) }

// Part is the longest beginning of plain text that can be found quickly whose
// escaped form has at most limit bytes. It is never empty unless plain is.
func Part(plain string, limit int) string {
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

// UpTo is Lines of at most limit bytes of result, and reports whether something was left off.
func UpTo(s string, limit int) (Text, bool) {
	plain := Plain(s)
	p := Part(plain, limit)
	return Text(escape(p)), len(p) < len(plain)
}

// Attribute is text for between two quotation marks, of at most limit bytes before it is escaped.
func Attribute(s string, limit int) Text {
	return Text(strings.NewReplacer(`"`, "&quot;", "'", "&#39;").Replace(escape(Line(s, limit))))
}

// Text is a text for a model: the program's own words, in which everything that others wrote is
// quoted. It is made by Sprintf, Join, Lines and their like, and by a constant; a conversion from
// string is a claim that has to be justified where it stands.
type Text string

// maxArgument bounds one argument of Sprintf, in bytes before it is escaped. Who wants less
// cuts it with Line first.
const maxArgument = 4 << 10

// Sprintf is fmt.Sprintf for a Text. An argument that is a string of any type, an error or a Stringer is taken for
// the words of others, and becomes one quoted line. A Text stands as it is.
func Sprintf(format string, args ...any) Text {
	safe := make([]any, len(args))
	for i, arg := range args {
		safe[i] = argument(arg)
	}
	return Text(fmt.Sprintf(format, safe...))
}

func argument(arg any) any {
	switch v := arg.(type) {
	case nil, Text:
		return arg
	case error:
		return escape(Line(v.Error(), maxArgument))
	case fmt.Stringer:
		return escape(Line(v.String(), maxArgument))
	}
	switch v := reflect.ValueOf(arg); v.Kind() {
	case reflect.String:
		return escape(Line(v.String(), maxArgument))
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return arg
	default: // a list or a struct could hold anything
		return escape(Line(fmt.Sprint(arg), maxArgument))
	}
}

// Join is strings.Join for texts.
func Join(parts []Text, between string) Text {
	words := make([]string, len(parts))
	for i, p := range parts {
		words[i] = string(p)
	}
	return Text(strings.Join(words, between))
}

// Builder collects a Text. Its zero value is empty.
type Builder struct{ b strings.Builder }

// Add appends texts.
func (b *Builder) Add(texts ...Text) {
	for _, t := range texts {
		b.b.WriteString(string(t))
	}
}

// Addf appends Sprintf of its arguments.
func (b *Builder) Addf(format string, args ...any) { b.Add(Sprintf(format, args...)) }

// Text is what was collected.
func (b *Builder) Text() Text { return Text(b.b.String()) }
