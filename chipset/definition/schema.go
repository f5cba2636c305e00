package definition

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/segmentio/encoding/json"
)

//go:embed chipset.schema.json
var schemaText string

// Schema returns the JSON Schema of chipset.yaml, for editors. Parse checks keys,
// types, ranges and patterns by it too.
func Schema() string { return schemaText }

// schema is the part of a JSON Schema that Parse uses.
type schema struct {
	Ref   string `json:"$ref"`
	Title string `json:"title"`

	Type    []string `json:"type"`
	Enum    []string `json:"enum"`
	Minimum float64  `json:"minimum"`
	Maximum float64  `json:"maximum"`

	MinLength int    `json:"minLength"`
	MaxLength int    `json:"maxLength"`
	Pattern   string `json:"pattern"`
	// PatternError completes a sentence that begins with the text. A pattern without
	// it is only for editors: Format is stricter.
	PatternError string  `json:"patternErrorMessage"`
	Not          *schema `json:"not"`

	Properties    map[string]*schema `json:"properties"`
	Required      []string           `json:"required"`
	PropertyNames *schema            `json:"propertyNames"`
	// Any is under the key "": it describes the values of keys that are not in Properties.
	Any         map[string]*schema `json:"patternProperties"`
	Items       *schema            `json:"items"`
	Definitions map[string]*schema `json:"definitions"`

	// Format names a rule of formats.go; Least and Most bound durations and sizes.
	Format string `json:"x-format"`
	Least  string `json:"x-minimum"`
	Most   string `json:"x-maximum"`
}

// loadSchema parses the embedded schema. Every command that opens a rig does that, and
// encoding/json takes twice as long.
func loadSchema() *schema {
	var root schema
	if err := json.Unmarshal([]byte(schemaText), &root); err != nil {
		panic(err) // the schema is part of the program, and tested
	}
	return &root
}

// resolve returns s, or the schema that it refers to, with the bounds given beside the
// reference.
func (s *schema) resolve(definitions map[string]*schema) *schema {
	if s.Ref == "" {
		return s
	}
	named := *definitions[strings.TrimPrefix(s.Ref, "#/definitions/")]
	named.Least, named.Most = s.Least, s.Most
	named.MinLength = max(named.MinLength, s.MinLength)
	return &named
}

// scalar reports whether every scalar is read as text: a command named true and a
// prefix such as 007 are text there.
func (s *schema) scalar() bool {
	return len(s.Enum) > 0 || len(s.Type) == 0 || slices.Contains(s.Type, "string") && len(s.Type) > 1
}

// accepts reports whether a value of a JSON type is one of the schema's.
func (s *schema) accepts(kind string) bool {
	switch {
	case kind == "integer" && slices.Contains(s.Type, "number"):
		return true
	case kind == "string" || kind == "integer" || kind == "number" || kind == "boolean":
		return s.scalar() || slices.Contains(s.Type, kind)
	}
	return slices.Contains(s.Type, kind)
}

// wanted names the types that the schema accepts, for a message.
func (s *schema) wanted() string {
	var names []string
	switch {
	case s.scalar() || slices.Contains(s.Type, "string"):
		names = append(names, "text")
	case slices.Contains(s.Type, "integer"):
		names = append(names, "an integer")
	case slices.Contains(s.Type, "number"):
		names = append(names, "a number")
	case slices.Contains(s.Type, "boolean"):
		names = append(names, "true or false")
	}
	if slices.Contains(s.Type, "array") {
		names = append(names, "a list")
	}
	if slices.Contains(s.Type, "object") {
		names = append(names, "a mapping")
	}
	return strings.Join(names, " or ")
}
