package definition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says whether a definition with a problem can be run.
type Severity string

const (
	// SeverityError: the definition can't be used; Parse returns none.
	SeverityError Severity = "error"
	// SeverityWarning: the definition works, but perhaps not as its author meant.
	SeverityWarning Severity = "warning"
)

// Problem is one thing that is wrong in a definition, with its place.
type Problem struct {
	// File is the name the definition was parsed under.
	File string `json:"file"`
	// Line and Column count from 1; the column counts characters.
	Line     int      `json:"line"`
	Column   int      `json:"column"`
	Severity Severity `json:"severity"`
	// Path is the place in the document, as in agents.agents[1].role; empty for
	// a problem of the whole file.
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	// Hint says what to do about it, where that is known.
	Hint string `json:"hint,omitempty"`
}

// String returns the problem as compilers write theirs, so that editors find the
// place: file:line:column: path: message (hint). Warnings are marked.
func (p Problem) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Severity == SeverityWarning {
		text.WriteString("warning: ")
	}
	if p.Path != "" {
		text.WriteString(p.Path + ": ")
	}
	text.WriteString(p.Message)
	if p.Hint != "" {
		text.WriteString(" (" + p.Hint + ")")
	}
	return text.String()
}

// Error returns String: each problem can be collected as an error of its own.
func (p Problem) Error() string { return p.String() }

// Problems is everything found in one definition, in the order of its lines.
type Problems []Problem

// Err returns the problems that are errors as one error, or nil where there are
// none: a Problems that holds nothing but warnings is not a failure.
func (p Problems) Err() error {
	if errs := p.Errors(); len(errs) > 0 {
		return errs
	}
	return nil
}

// Errors returns the problems that keep the definition from being used.
func (p Problems) Errors() Problems { return p.with(SeverityError) }

// Warnings returns the problems that do not keep the definition from being used.
func (p Problems) Warnings() Problems { return p.with(SeverityWarning) }

func (p Problems) with(severity Severity) Problems {
	return slices.DeleteFunc(slices.Clone(p), func(problem Problem) bool { return problem.Severity != severity })
}

// Error returns one line per problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the problems one by one, for errors.As.
func (p Problems) Unwrap() []error {
	errs := make([]error, len(p))
	for i, problem := range p {
		errs[i] = problem
	}
	return errs
}

func (p Problems) sort() {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
