package definition

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

const (
	// maxValues bounds the values that are read, with aliases expanded: a small file
	// can expand to an enormous tree.
	maxValues = 200_000
	// maxProblems bounds the report.
	maxProblems = 500
)

// reader checks a document against the schema and collects the problems.
type reader struct {
	file     string
	opts     Options
	schema   *schema
	problems Problems
	patterns map[string]*regexp.Regexp
	values   int
	// stopped: a limit was passed, nothing more is read.
	stopped bool
}

// place is a node of the document and the keys that lead to it.
type place struct {
	r    *reader
	node *yaml.Node
	path string
}

func (p place) fail(hint, format string, args ...any) {
	p.r.report(SeverityError, p, hint, format, args...)
}

func (p place) warn(hint, format string, args ...any) {
	p.r.report(SeverityWarning, p, hint, format, args...)
}

func (r *reader) report(severity Severity, at place, hint, format string, args ...any) {
	if r.stopped {
		return
	}
	problem := Problem{
		File: r.file, Line: max(at.node.Line, 1), Column: max(at.node.Column, 1),
		Severity: severity, Path: at.path, Message: fmt.Sprintf(format, args...), Hint: hint,
	}
	if r.problems = append(r.problems, problem); len(r.problems) >= maxProblems {
		problem.Severity, problem.Path, problem.Hint = SeverityError, "", ""
		problem.Message = fmt.Sprintf("more than %d problems: the rest is not shown", maxProblems)
		r.problems, r.stopped = append(r.problems, problem), true
	}
}

// failed reports whether there is an error at the place or below it.
func (p place) failed() bool {
	return slices.ContainsFunc(p.r.problems, func(problem Problem) bool {
		return problem.Severity == SeverityError && strings.HasPrefix(problem.Path, p.path)
	})
}

// child returns the place of a node below p, with an alias resolved.
func (p place) child(node *yaml.Node, path string) place {
	if node.Kind == yaml.AliasNode && node.Alias != nil {
		node = node.Alias
	}
	child := place{p.r, node, path}
	if p.r.values++; p.r.values > maxValues && !p.r.stopped {
		child.fail("aliases count as often as they are used", "the definition holds more than %d values", maxValues)
		p.r.stopped = true
	}
	return child
}

// under returns the path of a key below p.
func (p place) under(key string) string {
	if p.path == "" {
		return key
	}
	return p.path + "." + key
}

func (p place) item(i int) string { return p.path + "[" + strconv.Itoa(i) + "]" }

// find returns the place below p that the keys and indices lead to, or the nearest
// existing one.
func (p place) find(keys ...any) place {
	for _, key := range keys {
		switch key := key.(type) {
		case int:
			p = place{p.r, p.node.Content[key], p.item(key)}
		case string:
			value := p.get(key)
			if value == nil {
				return p
			}
			p = place{p.r, value, p.under(key)}
		}
	}
	return p
}

// get returns the value of a key of a mapping, or nil.
func (p place) get(key string) *yaml.Node {
	if p.node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(p.node.Content); i += 2 {
			if p.node.Content[i].Value == key {
				return p.node.Content[i+1]
			}
		}
	}
	return nil
}

// read reports what the schema forbids, and returns a copy of the rest: without
// aliases and keys without values, and with durations and sizes in the form that the
// Definition is decoded from. It returns nil for an unusable value.
func (p place) read(s *schema) *yaml.Node {
	s = s.resolve(p.r.schema.Definitions)
	kind := jsonType(p.node)
	if !s.accepts(kind) {
		hint := ""
		if p.node.Kind == yaml.ScalarNode && slices.Equal(s.Type, []string{"string"}) {
			hint = "quote it: " + strconv.Quote(p.node.Value)
		}
		p.fail(hint, "expected %s, found %s", s.wanted(), describe(p.node))
		return nil
	}
	switch kind {
	case "object":
		return p.readMapping(s)
	case "array":
		return p.readList(s)
	case "null":
		return p.node
	}
	clean := *p.node
	clean.Anchor = ""
	if !p.readScalar(s, &clean) {
		return nil
	}
	return &clean
}

func (p place) readMapping(s *schema) *yaml.Node {
	clean := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: p.node.Line, Column: p.node.Column}
	seen, set := map[string]int{}, map[string]bool{}
	for i := 0; i+1 < len(p.node.Content) && !p.r.stopped; i += 2 {
		key := p.child(p.node.Content[i], p.path)
		if !key.readKey(seen) {
			continue
		}
		key.path = p.under(key.node.Value)
		value := p.child(p.node.Content[i+1], key.path)
		rule := s.Properties[key.node.Value]
		switch {
		case rule == nil && s.Any == nil:
			key.fail(suggestKey(key.node.Value, s.Properties), "unknown key %s", quote(key.node.Value))
			continue
		case rule == nil:
			key.readScalar(s.PropertyNames.resolve(p.r.schema.Definitions), key.node)
			rule = s.Any[""]
		case jsonType(value.node) == "null":
			continue // a key without a value is not set
		}
		set[key.node.Value] = true
		if node := value.read(rule); node != nil {
			clean.Content = append(clean.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key.node.Value,
				Line: key.node.Line, Column: key.node.Column}, node)
		}
	}
	for _, key := range s.Required {
		if !set[key] {
			p.r.report(SeverityError, place{p.r, p.node, p.under(key)}, "", "%s is required", quote(key))
		}
	}
	return clean
}

// readKey reports a key that is not text or is a duplicate. It records its line.
func (p place) readKey(seen map[string]int) bool {
	name := p.node.Value
	first, again := seen[name]
	switch {
	case p.node.Kind != yaml.ScalarNode:
		p.fail("", "expected a key, found %s", describe(p.node))
		return false
	case p.node.ShortTag() == "!!merge":
		p.fail("write the keys out, or give the whole mapping an alias", "merge keys (<<) are not supported")
		return false
	case again:
		p.path = p.under(name)
		p.fail("", "key %s is given twice, first in line %d", quote(name), first)
		return false
	}
	seen[name] = p.node.Line
	return true
}

func (p place) readList(s *schema) *yaml.Node {
	clean := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: p.node.Line, Column: p.node.Column}
	for i, node := range p.node.Content {
		if p.r.stopped {
			break
		}
		item := p.child(node, p.item(i))
		var read *yaml.Node
		if jsonType(item.node) == "null" {
			item.fail("", "the item is empty")
		} else {
			read = item.read(s.Items)
		}
		if read == nil { // a placeholder keeps the indices right
			read = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Line: item.node.Line, Column: item.node.Column}
			if slices.Contains(s.Items.resolve(p.r.schema.Definitions).Type, "object") {
				read.Kind, read.Tag = yaml.MappingNode, "!!map"
			}
		}
		clean.Content = append(clean.Content, read)
	}
	return clean
}

// readScalar checks a scalar against a schema that accepts its type. It changes clean
// to the form that a duration or a size is decoded from.
func (p place) readScalar(s *schema, clean *yaml.Node) bool {
	text := p.node.Value
	switch kind := jsonType(p.node); {
	case strings.ContainsRune(text, 0):
		p.fail("", "text holds a NUL character")
		return false
	case !s.scalar() && (kind == "integer" || kind == "number"):
		var n float64
		if err := p.node.Decode(&n); err != nil || !(n >= s.Minimum && n <= s.Maximum) {
			p.fail("", "%s is not between %g and %g", short(text), s.Minimum, s.Maximum)
			return false
		}
	case len(s.Enum) > 0 && !slices.Contains(s.Enum, text):
		hint := suggest(text, s.Enum)
		if hint == "" {
			hint = "one of " + strings.Join(s.Enum, ", ")
		}
		p.fail(hint, "unknown %s %s", s.Title, quote(text))
		return false
	case utf8.RuneCountInString(strings.TrimSpace(text)) < s.MinLength:
		p.fail("", "the %s is empty", s.Title)
		return false
	case s.MaxLength > 0 && utf8.RuneCountInString(text) > s.MaxLength:
		p.fail("", "%s is longer than %d characters", quote(text), s.MaxLength)
		return false
	case s.PatternError != "" && !p.r.matches(s.Pattern, text):
		p.fail("", "%s is %s", quote(text), s.PatternError)
		return false
	case s.Not != nil && s.Not.PatternError != "" && p.r.matches(s.Not.Pattern, text):
		p.fail("", "%s is %s", quote(text), s.Not.PatternError)
		return false
	}
	return s.Format == "" || p.readFormat(s, clean)
}

func (r *reader) matches(pattern, text string) bool {
	if r.patterns[pattern] == nil {
		r.patterns[pattern] = regexp.MustCompile(pattern)
	}
	return r.patterns[pattern].MatchString(text)
}

// jsonType returns the JSON type of a node, or "" for a tag that no schema knows.
func jsonType(node *yaml.Node) string {
	switch tag := node.ShortTag(); {
	case node.Kind == yaml.MappingNode && tag == "!!map":
		return "object"
	case node.Kind == yaml.SequenceNode && tag == "!!seq":
		return "array"
	case node.Kind != yaml.ScalarNode:
		return ""
	}
	switch node.ShortTag() {
	case "!!str", "!!timestamp":
		return "string"
	case "!!int":
		return "integer"
	case "!!float":
		return "number"
	case "!!bool":
		return "boolean"
	case "!!null":
		return "null"
	}
	return ""
}

// describe describes a node in a message.
func describe(node *yaml.Node) string {
	switch jsonType(node) {
	case "object":
		return "a mapping"
	case "array":
		return "a list"
	case "string":
		return "the text " + quote(node.Value)
	case "integer", "number":
		return "the number " + short(node.Value)
	case "boolean":
		return node.Value
	case "null":
		return "nothing"
	}
	return "a value with the tag " + quote(node.ShortTag())
}

// quote quotes text for a message: on one line, and of bounded length.
func quote(text string) string { return strconv.Quote(short(text)) }

func short(text string) string {
	const most = 60
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}
