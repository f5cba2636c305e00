package definition

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agext/levenshtein"
	"github.com/docker/go-units"
	"gopkg.in/yaml.v3"
)

// readFormat checks a scalar against the rule that x-format names.
func (p place) readFormat(s *schema, clean *yaml.Node) bool {
	text, hint := p.node.Value, ""
	var err error
	switch s.Format {
	case "duration":
		clean.Tag = "!!str"
		clean.Value, err = readDuration(text, s)
		hint = "an integer of seconds, or a duration such as 90s, 5m or 1h30m"
	case "size":
		clean.Tag = "!!int"
		clean.Value, err = readSize(text, s)
		hint = "an integer of bytes, or a size such as 64KiB"
	case "name":
		if strings.ContainsFunc(text, notInName) {
			err = fmt.Errorf("%s holds a character that can't be printed", quote(text))
		}
	case "branch":
		err = checkBranch(text)
	case "own-branch":
		if err = checkBranch(text); err == nil && strings.HasPrefix(text, "polecat/") {
			err = fmt.Errorf("the branch %s would be one of a polecat's", quote(text))
		}
	case "inner-path":
		clean.Value, err = innerPath(text)
		hint = "for example .env or web/node_modules"
	case "url":
		err = checkURL(text)
		hint = "for example https://ntfy.sh/my-topic"
	case "state-path":
		clean.Value, err = statePath(text)
		hint = "for example state/mail/"
	}
	if errors.Is(err, errRange) {
		hint = ""
	}
	if err != nil {
		p.fail(hint, "%s", err)
	}
	return err == nil
}

// errRange is returned for a valid duration or size that is out of range.
var errRange = errors.New("is not between")

func readDuration(text string, s *schema) (string, error) {
	span, err := parseDuration(text)
	if err != nil {
		return "", fmt.Errorf("%s is not a duration", quote(text))
	}
	least, _ := time.ParseDuration(s.Least)
	most, _ := time.ParseDuration(s.Most)
	if span < least || span > most {
		return "", fmt.Errorf("%s %w %s and %s", short(text), errRange, s.Least, s.Most)
	}
	return span.String(), nil
}

// parseDuration returns math.MinInt64 or MaxInt64 for seconds that overflow a
// duration, so that they are reported as out of range and not as invalid.
func parseDuration(text string) (time.Duration, error) {
	seconds, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
	if err != nil {
		return time.ParseDuration(text)
	}
	const most = int64(math.MaxInt64 / time.Second)
	switch {
	case seconds > most:
		return math.MaxInt64, nil
	case seconds < -most:
		return math.MinInt64, nil
	}
	return time.Duration(seconds) * time.Second, nil
}

func readSize(text string, s *schema) (string, error) {
	size, err := units.RAMInBytes(strings.ReplaceAll(text, "_", ""))
	if err != nil {
		return "", fmt.Errorf("%s is not a size", quote(text))
	}
	least, _ := units.RAMInBytes(s.Least)
	most, _ := units.RAMInBytes(s.Most)
	if size < least || size > most {
		return "", fmt.Errorf("%s %w %s and %s", short(text), errRange, s.Least, s.Most)
	}
	return strconv.FormatInt(size, 10), nil
}

// notInName reports whether a character is not allowed in names for people.
func notInName(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }

// checkBranch accepts what git check-ref-format --branch accepts, except for names that
// could be taken for an option or a full ref. The empty name is accepted.
func checkBranch(name string) error {
	bad := func(why string) error { return fmt.Errorf("%s is not a branch: %s", quote(name), why) }
	switch {
	case name == "":
		return nil
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
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return bad(`a part of it is empty, begins with "." or ends with ".lock"`)
		}
	}
	return nil
}

// checkURL accepts http and https URLs with a host, and the empty text.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if text != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "") {
		return fmt.Errorf("%s is not an address of http or https", quote(text))
	}
	return nil
}

// statePath returns a channel's clean path relative to .chipset, or an error
// if it is not inside the state tree.
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

// innerPath returns a clean path below the root of a checkout, or an error for a path
// that leads out of it or belongs to git or the rig.
func innerPath(text string) (string, error) {
	clean := path.Clean(text)
	first, _, _ := strings.Cut(clean, "/")
	switch {
	case text == "":
		return "", errors.New("the path is empty")
	case strings.ContainsFunc(text, unicode.IsControl) || strings.Contains(text, `\`):
		return "", fmt.Errorf("path %s holds a backslash or a control character", quote(text))
	case path.IsAbs(text) || strings.HasPrefix(text, "~") || slices.Contains(strings.Split(text, "/"), ".."):
		return "", fmt.Errorf("path %s leads out of the checkout", quote(text))
	case clean == ".":
		return "", fmt.Errorf("path %s is the whole checkout", quote(text))
	case strings.EqualFold(first, ".chipset"):
		return "", fmt.Errorf("path %s is the rig's own", quote(text))
	case slices.ContainsFunc(strings.Split(clean, "/"), func(part string) bool { return strings.EqualFold(part, ".git") }):
		return "", fmt.Errorf("path %s is git's own", quote(text))
	}
	return clean, nil
}

// suggestKey is suggest for the keys of a mapping.
func suggestKey(word string, known map[string]*schema) string {
	return suggest(word, slices.Sorted(maps.Keys(known)))
}

// suggest returns a hint that names the known word nearest to the given one, or "" if
// none is similar.
func suggest(word string, known []string) string {
	const longest = 64
	if len(word) > longest {
		return ""
	}
	best, least := "", 3
	for _, candidate := range known {
		away := levenshtein.Distance(fold(word), fold(candidate), nil)
		if away < least && 2*away <= len(candidate) {
			best, least = candidate, away
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", best)
}

// fold removes the differences between styles of writing a key.
func fold(word string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(word))
}
