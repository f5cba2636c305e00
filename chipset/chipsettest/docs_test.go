package chipsettest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The page for newcomers names packages and files. Each of them exists.
func TestArchitectureNamesWhatExists(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, m := range regexp.MustCompile("`((?:state|mail|hook|nudge|roles|chipset|cmd)(?:/[a-z_./]+)?)`").FindAllStringSubmatch(string(page), -1) {
		if strings.HasPrefix(m[1], "state/hooks/") {
			continue // a file of a rig
		}
		named++
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(m[1]))); err != nil {
			t.Errorf("docs/architecture.md names %s, which does not exist", m[1])
		}
	}
	if named < 40 {
		t.Errorf("only %d names were found: the pattern no longer reads the page", named)
	}
}

// Every local link of the documentation leads to a file, and to a heading of it.
func TestDocumentationLinks(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	pages = append(pages, filepath.Join(root, "README.md"))
	texts, anchors := map[string]string{}, map[string]map[string]bool{}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		texts[page], anchors[page] = string(text), headings(string(text))
	}
	for _, page := range pages {
		for _, m := range regexp.MustCompile(`\]\(([^)#:\s]*)(?:#([^)\s]*))?\)`).FindAllStringSubmatch(texts[page], -1) {
			target := page
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), filepath.FromSlash(m[1]))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", filepath.Base(page), m[1])
			}
			if m[2] != "" && anchors[target] != nil && !anchors[target][m[2]] {
				t.Errorf("%s links to %s#%s: there is no such heading", filepath.Base(page), m[1], m[2])
			}
		}
	}
}

// headings returns the anchors of a page's headings, as GitHub makes them.
func headings(text string) map[string]bool {
	anchors := map[string]bool{}
	text = regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(text, "")
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		words := regexp.MustCompile(`[^\pL\pN _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		anchors[strings.ReplaceAll(words, " ", "-")] = true
	}
	return anchors
}
