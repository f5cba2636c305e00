package definition

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	templatePolecats = 5
	maxNameLength    = 64
)

//go:embed template.yaml
var template string

// TemplateOptions is what a new definition starts from. The zero value is good.
type TemplateOptions struct {
	// RigName may be any text, such as a directory's name; CleanName is applied.
	RigName string
	// Prefix is the bead prefix, derived from the name where it is empty or illegal.
	Prefix string
	// Worker is the name of a preset or a command line; empty is claude.
	Worker string
	// Polecats is the size of the pool; below 1 is 5.
	Polecats int
	// Target is the branch work lands on; empty is the one recorded by init.
	Target string
	// Test is the test command, if there is one.
	Test string
	// Permissions is ask, edit or full; empty is ask.
	Permissions string
	// Worktree is the section of that name; its Timeout is not written.
	Worktree Worktree
}

// CleanName makes the name of a rig from any text: it drops unprintable characters and
// truncates the rest.
func CleanName(text string) string {
	text = strings.Map(func(r rune) rune {
		if notInName(r) {
			return -1
		}
		return r
	}, text)
	if utf8.RuneCountInString(text) > maxNameLength {
		text = string([]rune(text)[:maxNameLength])
	}
	if text = strings.TrimSpace(text); text == "" {
		return "rig"
	}
	return text
}

// Template returns a chipset.yaml that explains each of its keys. Parse accepts it
// without a warning if the branch and the commands are valid and there are at most
// 30 polecats.
func Template(opts TemplateOptions) []byte {
	name := CleanName(opts.RigName)
	prefix := opts.Prefix
	if len(prefix) > 8 || strings.Trim(prefix, "abcdefghijklmnopqrstuvwxyz0123456789") != "" || prefix == "" {
		prefix = BeadPrefix(name)
	}
	if opts.Polecats < 1 {
		opts.Polecats = templatePolecats
	}
	if opts.Worker = strings.TrimSpace(cleanText(opts.Worker)); opts.Worker == "" {
		opts.Worker = "claude"
	}
	if !slices.Contains([]string{"ask", "edit", "full"}, opts.Permissions) {
		opts.Permissions = "ask"
	}
	values := strings.NewReplacer(
		"{name}", yamlText(name),
		"{prefix}", yamlText(prefix),
		"{polecats}", strconv.Itoa(opts.Polecats),
		"{worker}", yamlText(opts.Worker),
		"{permissions}", opts.Permissions,
		"{target}", yamlText(opts.Target),
		"{test}", yamlText(strings.TrimSpace(opts.Test)),
		"{worktree}", opts.Worktree.yaml(),
		"{presets}", strings.Join(builtinPresets(), ", "),
		"{max_polecats}", fmt.Sprint(MaxPolecats),
	)
	return []byte(values.Replace(template))
}

// yaml returns the section with the values that are set.
func (w *Worktree) yaml() string {
	var text strings.Builder
	list := func(key string, paths []string) {
		var quoted []string
		for _, path := range paths {
			quoted = append(quoted, yamlText(path))
		}
		if len(paths) > 0 {
			fmt.Fprintf(&text, "\n  %s: [%s]", key, strings.Join(quoted, ", "))
		}
	}
	list("copy", w.Copy)
	list("link", w.Link)
	if w.Submodules {
		text.WriteString("\n  submodules: true")
	}
	if w.LFS {
		text.WriteString("\n  lfs: true")
	}
	if !w.Setup.IsZero() {
		fmt.Fprintf(&text, "\n  setup: %s", yamlText(w.Setup.String()))
	}
	list("setup_when", w.SetupWhen)
	if text.Len() == 0 {
		return "worktree: {}"
	}
	return "worktree:" + text.String()
}

func cleanText(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

// yamlText returns text as a YAML double-quoted scalar. Go's escapes are a subset of
// YAML's once the text is valid UTF-8.
func yamlText(text string) string { return strconv.Quote(cleanText(text)) }
