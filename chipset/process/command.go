package process

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

var (
	// ErrNoCommand is returned by ParseCommand for a line without a command.
	ErrNoCommand = errors.New("no command")
	// ErrBadCommand is returned by ParseCommand for a line that neither a shell
	// nor exec(2) could run.
	ErrBadCommand = errors.New("command line cannot be parsed")
)

// ParseCommand turns a command line into the arguments to execute. Plain words,
// quoted or not, are executed directly; a line that needs a shell (operators,
// pipes, redirections, assignments, expansions, globs, builtins without a program
// of their own) becomes sh -c LINE. So no shell sees a line that did not ask for
// one. It returns ErrNoCommand or ErrBadCommand.
func ParseCommand(line string) ([]string, error) {
	if strings.ContainsRune(line, 0) {
		return nil, fmt.Errorf("%w: it contains a NUL byte", ErrBadCommand)
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(line), "")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadCommand, err)
	}
	if len(file.Stmts) == 0 {
		return nil, ErrNoCommand
	}
	argv, plain := plainWords(file.Stmts)
	// Where a line continues is the shell's to say: in a comment, for one, the
	// parser and a shell differ about it.
	if !plain || strings.Contains(line, "\\\n") {
		return []string{"sh", "-c", line}, nil
	}
	if argv[0] == "" {
		return nil, fmt.Errorf("%w: the command's name is empty", ErrNoCommand)
	}
	return argv, nil
}

// plainWords returns the unquoted words of a single simple command, and false for
// everything that only a shell can run.
func plainWords(stmts []*syntax.Stmt) ([]string, bool) {
	if len(stmts) != 1 {
		return nil, false
	}
	stmt := stmts[0]
	if stmt.Negated || stmt.Background || stmt.Coprocess || stmt.Disown || len(stmt.Redirs) > 0 {
		return nil, false
	}
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(call.Args) == 0 {
		return nil, false
	}
	argv := make([]string, 0, len(call.Args))
	for _, word := range call.Args {
		text, ok := plainWord(word)
		if !ok {
			return nil, false
		}
		argv = append(argv, text)
	}
	return argv, !slices.Contains(shellBuiltins(), argv[0])
}

// shellBuiltins lists the POSIX builtins that no program stands in for: executed
// directly they would only be "not found".
func shellBuiltins() []string {
	return []string{
		".", ":", "alias", "bg", "break", "cd", "command", "continue", "eval", "exec", "exit",
		"export", "fc", "fg", "getopts", "hash", "jobs", "read", "readonly", "return", "set",
		"shift", "times", "trap", "type", "ulimit", "umask", "unalias", "unset", "wait",
	}
}

func plainWord(word *syntax.Word) (string, bool) {
	var text strings.Builder
	for i, part := range word.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			value, ok := unquoteLit(part.Value, i == 0)
			if !ok {
				return "", false
			}
			text.WriteString(value)
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", false
			}
			text.WriteString(part.Value)
		case *syntax.DblQuoted:
			value, ok := unquoteDouble(part)
			if !ok {
				return "", false
			}
			text.WriteString(value)
		default:
			return "", false
		}
	}
	return text.String(), true
}

// unquoteLit removes the backslashes of an unquoted literal. It refuses what a
// shell would expand: a glob, or a tilde at the beginning of the word.
func unquoteLit(value string, first bool) (string, bool) {
	if first && strings.HasPrefix(value, "~") {
		return "", false
	}
	var text strings.Builder
	for i := 0; i < len(value); i++ {
		switch c := value[i]; c {
		case '*', '?', '[':
			return "", false
		case '\\':
			i++
			if i == len(value) {
				return "", false
			}
			text.WriteByte(value[i])
		default:
			text.WriteByte(c)
		}
	}
	return text.String(), true
}

// unquoteDouble unquotes "…" as POSIX has it: there a backslash escapes only
// $, `, " and itself (and continues the line), and stands for itself otherwise.
func unquoteDouble(quoted *syntax.DblQuoted) (string, bool) {
	if quoted.Dollar {
		return "", false
	}
	var text strings.Builder
	for _, part := range quoted.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			return "", false
		}
		for i := 0; i < len(lit.Value); i++ {
			c := lit.Value[i]
			if c == '\\' && i+1 < len(lit.Value) && strings.IndexByte("$`\"\\", lit.Value[i+1]) >= 0 {
				i++
				c = lit.Value[i]
			}
			text.WriteByte(c)
		}
	}
	return text.String(), true
}
