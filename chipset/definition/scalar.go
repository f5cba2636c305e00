package definition

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// written returns a scalar as it stands in the file, whatever YAML takes it for: a
// command named true and a prefix such as 007 are text here.
func (v value) written() (string, bool) {
	if v.node.Kind == yaml.ScalarNode {
		switch v.node.ShortTag() {
		case "!!str", "!!int", "!!float", "!!bool", "!!timestamp":
			if strings.ContainsRune(v.node.Value, 0) {
				v.fail("", "text holds a NUL character")
				return "", false
			}
			return v.node.Value, true
		}
	}
	v.fail("", "expected text, found %s", describe(v.node))
	return "", false
}

// text returns a string that YAML takes for one as well.
func (v value) text() (string, bool) {
	if v.node.Kind != yaml.ScalarNode || v.node.ShortTag() != "!!str" {
		hint := ""
		if v.node.Kind == yaml.ScalarNode {
			hint = "quote it: " + strconv.Quote(v.node.Value)
		}
		v.fail(hint, "expected text, found %s", describe(v.node))
		return "", false
	}
	return v.written()
}

func (v value) scalar(tag, want, hint string) (string, bool) {
	if v.node.Kind != yaml.ScalarNode || v.node.ShortTag() != tag {
		if v.node.Kind != yaml.ScalarNode {
			hint = ""
		}
		v.fail(hint, "expected %s, found %s", want, describe(v.node))
		return "", false
	}
	return v.node.Value, true
}

// freeText reads descriptive text of any content.
func freeText(to *string) func(value) {
	return func(v value) {
		if text, ok := v.text(); ok {
			*to = text
		}
	}
}

// ruled reads text that check must not refuse.
func ruled[T ~string](to *T, check func(string) error) func(value) {
	return func(v value) {
		text, ok := v.written()
		if !ok {
			return
		}
		if err := check(text); err != nil {
			v.fail("", "%s", err)
			return
		}
		*to = T(text)
	}
}

// oneOf reads one of a few words; what names the kind of them.
func oneOf[T ~string](to *T, what string, options ...T) func(value) {
	return func(v value) {
		text, ok := v.written()
		if !ok {
			return
		}
		if slices.Contains(options, T(text)) {
			*to = T(text)
			return
		}
		known := make([]string, len(options))
		for i, option := range options {
			known[i] = string(option)
		}
		hint := suggest(text, known)
		if hint == "" {
			hint = "one of " + strings.Join(known, ", ")
		}
		v.fail(hint, "unknown %s %s", what, quote(text))
	}
}

func boolean(to *bool) func(value) {
	return func(v value) {
		if text, ok := v.scalar("!!bool", "true or false", "write true or false"); ok {
			*to = strings.EqualFold(text, "true")
		}
	}
}

func integer(to *int, least, most int) func(value) {
	return func(v value) {
		text, ok := v.scalar("!!int", "an integer", "")
		if !ok {
			return
		}
		n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 0, 64)
		if err != nil || n < int64(least) || n > int64(most) {
			v.fail("", "%s is not between %d and %d", short(text), least, most)
			return
		}
		*to = int(n)
	}
}

func number(to *float64, least, most float64) func(value) {
	return func(v value) {
		tag := v.node.ShortTag()
		if v.node.Kind != yaml.ScalarNode || tag != "!!int" && tag != "!!float" {
			v.fail("", "expected a number, found %s", describe(v.node))
			return
		}
		n, err := strconv.ParseFloat(strings.ReplaceAll(v.node.Value, "_", ""), 64)
		if err != nil || math.IsNaN(n) || n < least || n > most {
			v.fail("", "%s is not between %g and %g", short(v.node.Value), least, most)
			return
		}
		*to = n
	}
}

// duration reads an integer of seconds or a duration such as 5m.
func duration(to *time.Duration, least, most time.Duration) func(value) {
	return func(v value) {
		text, ok := v.written()
		if !ok {
			return
		}
		span, err := parseDuration(text)
		if err != nil {
			v.fail("an integer of seconds, or a duration such as 90s, 5m or 1h30m", "%s is not a duration", quote(text))
			return
		}
		if span < least || span > most {
			v.fail("", "%s is not between %s and %s", short(text), formatDuration(least), formatDuration(most))
			return
		}
		*to = span
	}
}

// parseDuration returns math.MinInt64 or MaxInt64 for seconds beyond what a
// duration holds, so that they fail a range and not a syntax.
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

// formatDuration leaves out the zero units that time.Duration prints: 5m, not 5m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// size reads an integer of bytes or a size such as 64KiB.
func size(to *int64, least, most int64) func(value) {
	return func(v value) {
		text, ok := v.written()
		if !ok {
			return
		}
		bytes, err := parseSize(text)
		if err != nil {
			v.fail("an integer of bytes, or a size such as 64KiB", "%s is not a size", quote(text))
			return
		}
		if bytes < least || bytes > most {
			v.fail("", "%s is not between %s and %s", short(text), formatSize(least), formatSize(most))
			return
		}
		*to = bytes
	}
}

func parseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, "KMGiB ")
	unit := int64(1)
	switch strings.TrimSpace(text[len(digits):]) {
	case "", "B":
	case "KB":
		unit = 1000
	case "MB":
		unit = 1000 * 1000
	case "K", "KiB":
		unit = 1 << 10
	case "M", "MiB":
		unit = 1 << 20
	case "G", "GiB":
		unit = 1 << 30
	default:
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(digits, "_", ""), 10, 64)
	if err != nil {
		return 0, err
	}
	if n > math.MaxInt64/unit {
		return math.MaxInt64, nil
	}
	return n * unit, nil
}

func formatSize(bytes int64) string {
	switch {
	case bytes >= 1<<20 && bytes%(1<<20) == 0:
		return strconv.FormatInt(bytes>>20, 10) + "MiB"
	case bytes >= 1<<10 && bytes%(1<<10) == 0:
		return strconv.FormatInt(bytes>>10, 10) + "KiB"
	}
	return strconv.FormatInt(bytes, 10) + "B"
}
