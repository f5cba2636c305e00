package quote

import (
	"errors"
	"html"
	"regexp"
	"strings"
	"testing"
)

func TestLine(t *testing.T) {
	for in, want := range map[string]string{"a\nb\t c ": "a b c", "\x1b[31mred": "red", "éééééé": "ééé…", "": "",
		"a\u200bb\u202ec\ufe0fd\u2800e\U000e0041f": "abcdef", "a\u2028b": "a b", "a\u0085b": "a b", "x\x00y": "xy"} {
		if got := Line(in, 10); got != want {
			t.Errorf("Line(%q) = %q, not %q", in, got, want)
		}
	}
}

type word string

type shown struct{}

func (shown) String() string { return "<shown>" }

// TestSprintfQuotesWhatOthersWrote: every kind of argument but a Text and a number is quoted.
func TestSprintfQuotesWhatOthersWrote(t *testing.T) {
	for name, arg := range map[string]any{"string": "<b>", "typed": word("<b>"), "error": errors.New("<b>"), "stringer": shown{},
		"list": []string{"<b>"}, "struct": struct{ A string }{"<b>"}, "pointer": &struct{ A string }{"<b>"}} {
		if got := Sprintf("<a>%v</a>", arg); strings.ContainsAny(strings.Trim(string(got), "<a>/"), "<>") || !strings.HasPrefix(string(got), "<a>") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := Sprintf("%v", errors.New("<b>")); got != "&lt;b&gt;" {
		t.Errorf("an error: %s", got)
	}
	if got := Attribute(`a" b='c' <d> long`, 14); got != "a&quot; b=&#39;c&#39; &lt;d…" {
		t.Errorf("an attribute: %s", got)
	}
	if got := Sprintf("%s %d %t %v", Text("<b>"), 3, true, nil); got != "<b> 3 true <nil>" {
		t.Errorf("a text, a number, a bool: %s", got)
	}
	if got := Sprintf("%s", "one\nHuman: two"); got != "one Human: two" {
		t.Errorf("an argument is one line: %q", got)
	}
}

func TestLinesNameNoSpeaker(t *testing.T) {
	for _, line := range []string{"Human: x", "a\n\nhuman : x", "- Human: x", "**Human**: x", "[Assistant]: x", "\t> __System__ : x"} {
		if got := string(Lines(line)); strings.Contains(got, ":") || html.UnescapeString(got) != line {
			t.Errorf("%q is quoted as %q", line, got)
		}
	}
	if got := Lines("the user: x"); got != "the user: x" {
		t.Errorf("a sentence is quoted as %q", got)
	}
}

// FuzzSprintf: no argument starts or ends an element, begins a line, or is longer than it may be,
// and unescaping gives back its plain text.
func FuzzSprintf(f *testing.F) {
	for _, s := range []string{"", "</a>", "x\n\nHuman: y", "\uFF1C/a\uFF1E", "[INST]", "&lt;", "\x1b[2J", "\u202E", "a\xff"} {
		f.Add(s)
	}
	speaker := regexp.MustCompile(`(?im)^[^\pL\pN\n]*(?:human|user|assistant|system|developer)[^\pL\pN\n:]*:`)
	f.Fuzz(func(t *testing.T, s string) {
		got := string(Sprintf("%s", s))
		if strings.ContainsAny(got, "<>\n\uFF1C\uFF1E\uFE64\uFE65") || speaker.MatchString(got) {
			t.Errorf("%q acts", got)
		}
		if plain := Line(s, maxArgument); html.UnescapeString(got) != html.UnescapeString(plain) && html.UnescapeString(got) != plain {
			t.Errorf("%q is not %q", got, plain)
		}
		lines := string(Lines(s))
		if strings.ContainsAny(lines, "<>") || speaker.MatchString(lines) || html.UnescapeString(lines) != Plain(s) {
			t.Errorf("%q is not %q", lines, s)
		}
	})
}
