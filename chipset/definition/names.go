package definition

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxIDLength      = 64
	maxPrefixLength  = 8
	maxRigNameLength = 64
)

func lowerOrDigit(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

func letterOrDigit(c byte) bool { return lowerOrDigit(c) || c >= 'A' && c <= 'Z' }

// checkID holds a name to the rule for everything that becomes a file's name in
// the state tree.
func checkID(id string) error {
	if id == "" {
		return errors.New("the name is empty")
	}
	if len(id) > maxIDLength {
		return fmt.Errorf("%s is longer than %d characters", quote(id), maxIDLength)
	}
	for i := range len(id) {
		c := id[i]
		if !lowerOrDigit(c) && (i == 0 || c != '.' && c != '_' && c != '-') {
			return fmt.Errorf("%s is not a legal ID: it begins with a-z or 0-9, then a-z 0-9 . _ -", quote(id))
		}
	}
	if slices.Contains([]string{"archive", "latest", "from", "human"}, id) {
		return fmt.Errorf("the ID %s is reserved", quote(id))
	}
	return nil
}

// checkKebab is the rule for the names of skills: words of a-z and 0-9 joined by
// single hyphens.
func checkKebab(name string) error {
	if len(name) > maxIDLength {
		return fmt.Errorf("%s is longer than %d characters", quote(name), maxIDLength)
	}
	for _, word := range strings.Split(name, "-") {
		if word == "" || strings.ContainsFunc(word, func(r rune) bool { return r > 'z' || !lowerOrDigit(byte(r)) }) {
			return fmt.Errorf("%s is not kebab-case, as in agent-topology", quote(name))
		}
	}
	return nil
}

// checkLabel is the rule for names that no path is made of.
func checkLabel(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return errors.New("the name is empty")
	case utf8.RuneCountInString(name) > maxRigNameLength:
		return fmt.Errorf("%s is longer than %d characters", quote(name), maxRigNameLength)
	case strings.ContainsFunc(name, notInLabel):
		return fmt.Errorf("%s holds a character that can't be printed", quote(name))
	}
	return nil
}

func notInLabel(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }

func checkPrefix(prefix string) error {
	if prefix == "" || len(prefix) > maxPrefixLength {
		return fmt.Errorf("bead prefix %s is not 1 to %d characters long", quote(prefix), maxPrefixLength)
	}
	for i := range len(prefix) {
		if !lowerOrDigit(prefix[i]) {
			return fmt.Errorf("bead prefix %s holds something else than a-z and 0-9", quote(prefix))
		}
	}
	return nil
}

// checkVersion is the rule of semantic versions, semver.org, version 2.0.0.
func checkVersion(version string) error {
	bad := fmt.Errorf("version %s is not a semantic version, as in 1.0.0", quote(version))
	rest, build, hasBuild := strings.Cut(version, "+")
	core, release, hasRelease := strings.Cut(rest, "-")
	numbers := strings.Split(core, ".")
	if len(numbers) != 3 {
		return bad
	}
	for _, number := range numbers {
		if !isNumber(number) || len(number) > 1 && number[0] == '0' {
			return bad
		}
	}
	if hasRelease && !isDotted(release, true) || hasBuild && !isDotted(build, false) {
		return bad
	}
	return nil
}

func isNumber(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

func isDotted(text string, noLeadingZero bool) bool {
	for _, part := range strings.Split(text, ".") {
		if part == "" || noLeadingZero && isNumber(part) && len(part) > 1 && part[0] == '0' {
			return false
		}
		for i := range len(part) {
			c := part[i]
			if c != '-' && !letterOrDigit(c) {
				return false
			}
		}
	}
	return true
}

// checkBranch is what git check-ref-format --branch accepts, less names that an
// option or a full ref could be taken for.
func checkBranch(name string) error {
	bad := func(why string) error { return fmt.Errorf("%s is not a branch: %s", quote(name), why) }
	switch {
	case name == "":
		return bad("it is empty")
	case len(name) > 200:
		return bad("it is too long")
	case strings.HasPrefix(name, "-"):
		return bad(`it begins with "-"`)
	case name == "HEAD" || name == "@":
		return bad("git gives that name another meaning")
	case strings.HasPrefix(name, "refs/"):
		return bad("leave refs/heads/ out")
	case strings.Contains(name, "..") || strings.Contains(name, "@{"):
		return bad(`it holds ".." or "@{"`)
	case strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == utf8.RuneError || strings.ContainsRune("~^:?*[\\", r)
	}):
		return bad("it holds a character that git refuses")
	case strings.HasSuffix(name, "."):
		return bad(`it ends with "."`)
	}
	for _, part := range strings.Split(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return bad("a part of it is empty, begins with \".\" or ends with \".lock\"")
		}
	}
	return nil
}

// checkOwnBranch keeps what the rig writes itself away from polecats' branches.
func checkOwnBranch(name string) error {
	if err := checkBranch(name); err != nil {
		return err
	}
	if strings.HasPrefix(name, "polecat/") {
		return fmt.Errorf("the branch %s would be one of a polecat's", quote(name))
	}
	return nil
}

// checkTarget accepts the empty branch, which init's record replaces.
func checkTarget(name string) error {
	if name == "" {
		return nil
	}
	return checkOwnBranch(name)
}

// checkRemote accepts the name of a remote and no address, which git could be made
// to run commands with.
func checkRemote(name string) error {
	if name == "" {
		return nil
	}
	for i := range len(name) {
		c := name[i]
		if !letterOrDigit(c) && (i == 0 || !strings.ContainsRune("._-/", rune(c))) {
			return fmt.Errorf("%s is not the name of a git remote; an address gets one by git remote add", quote(name))
		}
	}
	return checkBranch(name)
}

func checkVariable(name string) error {
	for i := range len(name) {
		c := name[i]
		if c != '_' && !letterOrDigit(c) || i == 0 && c >= '0' && c <= '9' {
			return fmt.Errorf("%s is not the name of a variable", quote(name))
		}
	}
	switch {
	case name == "":
		return errors.New("a variable has no name")
	case strings.HasPrefix(name, "CHIPSET_"):
		return fmt.Errorf("%s is set by the rig itself", name)
	}
	return nil
}

// statePath returns a channel's path relative to .chipset and clean, or an error
// for one that is not inside the state tree.
func statePath(text string) (string, error) {
	switch {
	case text == "":
		return "", errors.New("the path is empty")
	case strings.ContainsFunc(text, unicode.IsControl) || strings.Contains(text, `\`):
		return "", fmt.Errorf("path %s holds a backslash or a control character", quote(text))
	case path.IsAbs(text) || strings.HasPrefix(text, "~"):
		return "", fmt.Errorf("path %s is absolute, not relative to .chipset", quote(text))
	case slices.Contains(strings.Split(text, "/"), ".."):
		return "", fmt.Errorf(`path %s holds ".."`, quote(text))
	}
	clean := strings.TrimPrefix(path.Clean(text), ".chipset/")
	if !strings.HasPrefix(clean, "state/") {
		return "", fmt.Errorf("path %s is outside of the state tree: it must lie below state/", quote(text))
	}
	return clean, nil
}

// suggest returns the hint that names the known word which somebody who wrote word
// most likely meant, or "".
func suggest(word string, known []string) string {
	if len(word) > maxIDLength {
		return ""
	}
	best, least := "", 3
	for _, candidate := range known {
		away := distance(plain(word), plain(candidate))
		if away < least && away*3 <= max(len(candidate), 3) {
			best, least = candidate, away
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", best)
}

// plain levels what different habits of writing a key differ in.
func plain(word string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(word))
}

// distance counts the insertions, deletions, replacements and swaps of neighbours
// that lead from a to b.
func distance(a, b string) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// BeadPrefix derives a bead prefix of two to four letters from a rig's name: the
// initials of its words (my-rig gives mr), or the beginning of a single word
// (gastown gives ga).
func BeadPrefix(rigName string) string {
	words := strings.FieldsFunc(strings.ToLower(rigName), func(r rune) bool { return r < 'a' || r > 'z' })
	const most = 4
	switch {
	case len(words) == 0:
		return "bd"
	case len(words) > 1:
		initials := ""
		for _, word := range words[:min(len(words), most)] {
			initials += word[:1]
		}
		return initials
	case len(words[0]) == 1:
		return words[0] + words[0]
	}
	return words[0][:2]
}
