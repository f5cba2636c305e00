package git

import (
	"path/filepath"
	"strings"
	"testing"
)

// FuzzNames: no hash, ref or branch that passes is an option, leaves its folder, or
// names a revision expression.
func FuzzNames(f *testing.F) {
	f.Fuzz(func(t *testing.T, s string) {
		if h, err := ParseHash(s); err == nil && (strings.Trim(string(h), "0123456789abcdef") != "" || len(h) < 40) {
			t.Fatalf("%q is a hash", s)
		}
		if ref, err := ParseRef(s); err == nil {
			checkName(t, string(ref))
		}
		b, err := ParseBranch(s)
		if err != nil {
			return
		}
		if strings.HasPrefix(string(b), "-") || b == "HEAD" {
			t.Fatalf("%q is a branch", s)
		}
		checkName(t, string(b.Ref()))
	})
}

func checkName(t *testing.T, ref string) {
	t.Helper()
	if !strings.HasPrefix(ref, "refs/") || filepath.Clean(ref) != ref || strings.ContainsAny(ref, "\x00\n ~^:?*[\\") ||
		strings.Contains(ref, "..") || strings.Contains(ref, "@{") {
		t.Fatalf("%q is a ref", ref)
	}
}

// FuzzRegistration: what git says of its worktrees is read or refused.
func FuzzRegistration(f *testing.F) {
	f.Fuzz(func(t *testing.T, record string) {
		entry, err := parseRegistration(record)
		if err == nil && entry.Head != "" && (entry.Head.check() != nil || entry.Head.IsZero()) {
			t.Fatalf("HEAD is %q", entry.Head)
		}
	})
}
