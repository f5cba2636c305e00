package wording

import "testing"

func TestSubject(t *testing.T) {
	for in, want := range map[string]string{
		"":                "(none)",
		" \n\t ":          "(none)",
		"\x1b":            "(none)",
		"\n one \r\ntwo":  "one",
		"a\x07b":          "a b",
		"12345678äö":      "12345678ä…",
		"bad \xff byte":   "bad \uFFFD by…",
		"exactly ten":     "exactly te…",
		"ten bytes!\nand": "ten bytes!",
	} {
		if got := Subject(in, 10, "(none)"); got != want {
			t.Errorf("Subject(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	for in, want := range map[string]string{"": "", "äää": "ä…", "abc": "abc", "ab\xff": "ab…", "abcd": "abc…"} {
		if got := Clip(in, 3); got != want {
			t.Errorf("Clip(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 files", 1: "1 file", 2: "2 files"} {
		if got := Count(n, "file"); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestShortHash(t *testing.T) {
	for in, want := range map[string]string{"": "", "abc": "abc", "0123456789abcdef": "0123456789"} {
		if got := ShortHash(in); got != want {
			t.Errorf("ShortHash(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestReason(t *testing.T) {
	for in, want := range map[string]string{"": "", "\n a\nb": "a", "one": "one", "exit code 1:\nboom": "exit code 1", "a: b\n": "a: b"} {
		if got := Reason(in); got != want {
			t.Errorf("Reason(%q) = %q, want %q", in, got, want)
		}
	}
	if got := Reason(string(make([]byte, 500))); len(got) > maxReason+len("…") {
		t.Errorf("%d bytes", len(got))
	}
}

func TestJoin(t *testing.T) {
	type id string
	words := []id{"a", "b", "c"}
	for want, got := range map[string]string{"a → b → c": Join(words, " → "), "a, b, …": JoinFirst(words, 2), "a, b, c": JoinFirst(words, 3), "": JoinFirst([]id{}, 1)} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
