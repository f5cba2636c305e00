package definition

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

const (
	// maxValues bounds the values looked at, aliases followed: a small file can
	// stand for an enormous tree.
	maxValues = 200_000
	// maxProblems bounds a report nobody would read to its end.
	maxProblems = 500
)

// decoder collects what is wrong while a document is read.
type decoder struct {
	file     string
	opts     Options
	problems Problems
	values   int
	// stopped: a limit was passed, nothing more is read.
	stopped bool
}

func (d *decoder) report(severity Severity, node *yaml.Node, path, hint, format string, args ...any) {
	if d.stopped {
		return
	}
	d.problems = append(d.problems, Problem{
		File: d.file, Line: max(node.Line, 1), Column: max(node.Column, 1),
		Severity: severity, Path: path, Message: fmt.Sprintf(format, args...), Hint: hint,
	})
	if len(d.problems) >= maxProblems {
		d.problems = append(d.problems, Problem{
			File: d.file, Line: max(node.Line, 1), Column: max(node.Column, 1),
			Severity: SeverityError, Message: fmt.Sprintf("more than %d problems: the rest is not shown", maxProblems),
		})
		d.stopped = true
	}
}

// value is one place in the document: a node and the keys that lead to it.
type value struct {
	d    *decoder
	node *yaml.Node
	path string
}

// field is a key that a mapping may have and what reads its value.
type field struct {
	key  string
	read func(value)
}

func (v value) fail(hint, format string, args ...any) {
	v.d.report(SeverityError, v.node, v.path, hint, format, args...)
}

func (v value) warn(hint, format string, args ...any) {
	v.d.report(SeverityWarning, v.node, v.path, hint, format, args...)
}

// child returns the value of a node below v, an alias replaced by what it names.
func (v value) child(node *yaml.Node, path string) value {
	if node.Kind == yaml.AliasNode && node.Alias != nil {
		node = node.Alias
	}
	child := value{d: v.d, node: node, path: path}
	if v.d.values++; v.d.values > maxValues && !v.d.stopped {
		child.fail("aliases count as often as they are used", "the definition holds more than %d values", maxValues)
		v.d.stopped = true
	}
	return child
}

func (v value) under(key string) string {
	if v.path == "" {
		return key
	}
	return v.path + "." + key
}

// null tells that a key stands there without a value, which means not set.
func (v value) null() bool {
	return v.node.Kind == yaml.ScalarNode && v.node.ShortTag() == "!!null"
}

// pair is one entry of a mapping.
type pair struct {
	name  string
	key   value
	value value
}

// pairs returns the entries of a mapping in their order. Keys that are no text and
// keys that come again are reported and left out.
func (v value) pairs() []pair {
	if v.null() {
		return nil
	}
	if v.node.Kind != yaml.MappingNode || v.node.ShortTag() != "!!map" {
		v.fail("", "expected a mapping, found %s", describe(v.node))
		return nil
	}
	var pairs []pair
	seen := map[string]int{}
	for i := 0; i+1 < len(v.node.Content) && !v.d.stopped; i += 2 {
		key := v.child(v.node.Content[i], v.path)
		if key.node.Kind != yaml.ScalarNode {
			key.fail("", "expected a key, found %s", describe(key.node))
			continue
		}
		if key.node.ShortTag() == "!!merge" {
			key.fail("write the keys out, or give the whole mapping an alias", "merge keys (<<) are not supported")
			continue
		}
		name := key.node.Value
		key.path = v.under(name)
		if first, again := seen[name]; again {
			key.fail("", "key %s is given twice, first in line %d", quote(name), first)
			continue
		}
		seen[name] = key.node.Line
		pairs = append(pairs, pair{name, key, v.child(v.node.Content[i+1], key.path)})
	}
	return pairs
}

// mapping reads the given fields and refuses all other keys. It returns the
// places of the values that are set.
func (v value) mapping(fields ...field) map[string]value {
	set := map[string]value{}
	for _, pair := range v.pairs() {
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == pair.name })
		if i < 0 {
			known := make([]string, len(fields))
			for i, f := range fields {
				known[i] = f.key
			}
			pair.key.fail(suggest(pair.name, known), "unknown key %s", quote(pair.name))
			continue
		}
		if !pair.value.null() {
			set[pair.name] = pair.value
			fields[i].read(pair.value)
		}
	}
	return set
}

// require reports the keys that are not set.
func (v value) require(set map[string]value, keys ...string) {
	for _, key := range keys {
		if _, ok := set[key]; !ok {
			v.d.report(SeverityError, v.node, v.under(key), "", "%s is required", quote(key))
		}
	}
}

// list reads each item of a sequence.
func (v value) list(read func(value)) {
	if v.node.Kind != yaml.SequenceNode || v.node.ShortTag() != "!!seq" {
		v.fail("", "expected a list, found %s", describe(v.node))
		return
	}
	for i, node := range v.node.Content {
		if v.d.stopped {
			return
		}
		item := v.child(node, v.path+"["+strconv.Itoa(i)+"]")
		if item.null() {
			item.fail("", "the item is empty")
			continue
		}
		read(item)
	}
}

// describe names what a node is, for a message.
func describe(node *yaml.Node) string {
	switch tag := node.ShortTag(); tag {
	case "!!map":
		return "a mapping"
	case "!!seq":
		return "a list"
	case "!!str":
		return "the text " + quote(node.Value)
	case "!!int", "!!float":
		return "the number " + short(node.Value)
	case "!!bool":
		return node.Value
	case "!!null":
		return "nothing"
	case "!!timestamp":
		return "the date " + short(node.Value)
	default:
		return "a value with the tag " + quote(tag)
	}
}

// quote returns text for a message: on one line, and not longer than it can bear.
func quote(text string) string { return strconv.Quote(short(text)) }

func short(text string) string {
	const most = 60
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}
