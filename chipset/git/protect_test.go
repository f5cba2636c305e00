package git

import "testing"

func TestMatchPaths(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{".claude/", ".claude/settings.json", true},
		{".claude/", ".Claude/Settings.json", true},
		{".claude/", "sub/.claude/a/b", true},
		{".claude/", ".claude", true}, // a link, or a submodule
		{".claude/", ".clau\u200cde/a", true},
		{".claude/", "sub/.claude. /a", true},
		{".claude/", ".clau\u00adde\ufe0f/a", true},
		{".husky/", ".hu\u017f\u212ay/pre-commit", true}, // a long s, and the sign for kelvin
		{"Jenkinsfile", "Jenkins\ufb01le", true},
		{".mcp.json", ".mcp.json::$DATA", true},
		{".claude/", ".claudes/a", false},
		{".claude/", "a.claude/a", false},
		{"Jenkinsfile", "jenkinsfile", true},
		{"Jenkinsfile", "Jenkinsfile.bak", false},
		{".github/workflows/", ".github/workflows/a.yml", true},
		{".github/workflows/", ".github/workflows", true},
		{".github/workflows/", ".github", true},
		{".github/workflows/", ".github/x.md", false},
		{".github/workflows/", "sub/.github/workflows/a.yml", false},
		{"/Makefile", "Makefile", true},
		{"/Makefile", "sub/Makefile", false},
		{"deploy/**", "deploy/a/b", true},
		{"deploy/**", "sub/deploy/a", false},
		{"a/**/b", "a/b", true},
		{"a/**/b", "a/x/y/b/c", true},
		{"a/**/b", "a/x/c", false},
		{"*.lock", "x/go.lock", true},
		{"*.lock", "go.lock/x", true},
		{"*.l?ck", "go.luck", true},
		{"a.c", "abc", false},
		{"**", "any/thing", true},
		{".claude/", ".claude/line\nbreak", true},
	} {
		if got := MatchPaths("nothing-else", c.pattern)(c.path); got != c.want {
			t.Errorf("%q matches %q: %t, want %t", c.pattern, c.path, got, c.want)
		}
	}
	if MatchPaths()("x") {
		t.Error("no pattern matches")
	}
}
