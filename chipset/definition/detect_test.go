package definition

import (
	"slices"
	"testing"
)

// TestDetectWorktree: what git does not check out is made again where a lock file says how, and is linked otherwise.
func TestDetectWorktree(t *testing.T) {
	for _, c := range []struct {
		files, ignored []string
		setup, link    string
	}{
		{[]string{"package.json", "package-lock.json"}, []string{"node_modules/"}, "npm ci", ""},
		{[]string{"package.json", "pnpm-lock.yaml"}, []string{"node_modules/"}, "pnpm install --frozen-lockfile", ""},
		{[]string{"package.json", "yarn.lock"}, nil, "yarn install --frozen-lockfile", ""},
		{[]string{"package.json"}, []string{"node_modules/"}, "", "node_modules"},
		{[]string{"package.json"}, nil, "", ""},
		{[]string{"yarn.lock"}, []string{"node_modules/"}, "", ""},
	} {
		w := DetectWorktree(c.ignored, func(p string) bool { return slices.Contains(c.files, p) }, func(string) []byte { return nil })
		link := ""
		if len(w.Link) > 0 {
			link = w.Link[0]
		}
		if w.Setup.String() != c.setup || link != c.link {
			t.Errorf("%v: setup %q, link %q", c.files, w.Setup, link)
		}
	}
}
