package definition

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// MaxSize is the largest definition that is read, in bytes.
const MaxSize = 1 << 20

// Options change what Parse checks. The zero value checks the file alone.
type Options struct {
	// ForceCount lifts the limit of 30 polecats and of 30 beads in parallel.
	ForceCount bool
	// LookPath finds a command on PATH, as exec.LookPath does. With it, commands
	// that don't exist are warnings; those given as lines only with ParseCommand.
	LookPath func(file string) (string, error)
	// ParseCommand turns a command line into arguments. With it, lines that can't
	// be parsed are errors, and Command.Argv is filled.
	ParseCommand func(line string) ([]string, error)
}

// Parse reads a definition. It returns all problems at once; the definition is nil
// if and only if one of them is an error. The name only appears in the problems.
func Parse(name string, data []byte) (*Definition, Problems) {
	return ParseWith(name, data, Options{})
}

// ParseWith is Parse with options.
func ParseWith(name string, data []byte, opts Options) (*Definition, Problems) {
	r := &reader{file: name, opts: opts, schema: loadSchema(), patterns: map[string]*regexp.Regexp{}}
	var def *Definition
	if root := r.load(data); root != nil {
		def = r.definition(place{r: r, node: root})
	}
	r.problems.sort()
	if r.problems.Err() != nil {
		return nil, r.problems
	}
	return def, r.problems
}

// definition decodes what the schema accepts, and checks it as a whole.
func (r *reader) definition(file place) *Definition {
	root := place{r: r, node: file.read(r.schema)}
	def := defaults()
	def.MergeDefined = file.get("merge") != nil
	if audit := file.get("audit"); audit != nil {
		def.auditGiven = place{r: r, node: audit}.get("every") != nil
	}
	if err := root.node.Decode(def); err != nil {
		root.fail("", "%s", strings.Join(strings.Fields(err.Error()), " "))
	}
	def.derive()
	root.check(def)
	return def
}

// load returns the root of the one document, or nil after reporting why not.
func (r *reader) load(data []byte) *yaml.Node {
	top := place{r: r, node: &yaml.Node{Line: 1, Column: 1}}
	if len(data) > MaxSize {
		top.fail("", "the file has %d bytes, at most %d are read", len(data), MaxSize)
		return nil
	}
	if at := badByte(data); at >= 0 {
		top.node.Line += bytes.Count(data[:at], []byte("\n"))
		top.fail("", "the file is not UTF-8 text: byte 0x%02x", data[at])
		return nil
	}
	documents := yaml.NewDecoder(bytes.NewReader(data))
	document, err := next(documents)
	if err != nil && !errors.Is(err, io.EOF) {
		r.syntax(data, err)
		return nil
	}
	if errors.Is(err, io.EOF) || document.Content[0].ShortTag() == "!!null" {
		top.fail("at least the section agents is required", "the file is empty")
		return nil
	}
	second, err := next(documents)
	switch {
	case err == nil:
		place{r: r, node: second}.fail(`one file is one definition: remove the "---"`, "a second document begins")
	case !errors.Is(err, io.EOF):
		r.syntax(data, err)
	}
	root := top.child(document.Content[0], "")
	if jsonType(root.node) != "object" {
		root.fail("", "expected a mapping of sections, found %s", describe(root.node))
		return nil
	}
	return root.node
}

// errParser is returned by next when the YAML parser itself gave up.
var errParser = errors.New("the YAML parser failed")

// next returns the next document. The parser panics on a few malformed streams; a
// file from anywhere must not end the process.
func next(reader *yaml.Decoder) (document *yaml.Node, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			document, err = nil, fmt.Errorf("%w: %v", errParser, failure)
		}
	}()
	var node yaml.Node
	if err := reader.Decode(&node); err != nil {
		return nil, err
	}
	if node.Kind != yaml.DocumentNode || len(node.Content) != 1 {
		return nil, fmt.Errorf("%w: no content", errParser)
	}
	return &node, nil
}

// syntax reports an error of the YAML parser, which gives its line only as text, and
// often the line of the block around the error instead of its own.
func (r *reader) syntax(data []byte, err error) {
	line, message := 1, strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		number, rest, ok := strings.Cut(rest, ": ")
		if n, err := strconv.Atoi(number); ok && err == nil {
			line, message = n, rest
		}
	}
	const small = 64 << 10
	if len(data) <= small { // every halving parses again, and nobody writes a larger file by hand
		line = max(line, firstBroken(data))
	}
	hint := ""
	if tab := tabNear(data, line); tab > 0 {
		line, hint = tab, "indent with spaces, not with tabs"
	}
	place{r: r, node: &yaml.Node{Line: line}}.fail(hint, "not valid YAML: %s", message)
}

// firstBroken returns the line after the longest prefix of the file that can be
// parsed, found by bisection: earlier lines can't repair a later error. A prefix that
// ends inside a flow collection can't be parsed either, so the line may be too early.
func firstBroken(data []byte) int {
	ends := []int{0}
	for i, c := range data {
		if c == '\n' {
			ends = append(ends, i+1)
		}
	}
	return sort.Search(len(ends), func(i int) bool { return !parses(data[:ends[i]]) })
}

func parses(data []byte) bool {
	reader := yaml.NewDecoder(bytes.NewReader(data))
	for {
		if _, err := next(reader); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// tabNear returns the line next to the given one that is indented with a tab, or 0.
func tabNear(data []byte, line int) int {
	lines := bytes.Split(data, []byte("\n"))
	for _, candidate := range []int{line, line + 1, line - 1} {
		if candidate < 1 || candidate > len(lines) {
			continue
		}
		if bytes.HasPrefix(bytes.TrimLeft(lines[candidate-1], " "), []byte("\t")) {
			return candidate
		}
	}
	return 0
}

// badByte returns the offset of the first byte that is not text, or -1.
func badByte(data []byte) int {
	for i := 0; i < len(data); {
		r, width := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && width == 1 || r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f {
			return i
		}
		i += width
	}
	return -1
}
