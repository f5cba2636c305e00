package session

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// onlyReads reports whether a command line is known to change no file: every
// command in it is one that reads, with options that keep it so, and nothing is
// redirected into a file. What it does not understand it does not vouch for. It
// guards against an agent in a hurry, and not against one that means harm.
func onlyReads(line string) bool {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		return false
	}
	fine := true
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.CallExpr:
			// A variable such as PATH or GIT_PAGER would make another command of it.
			fine = fine && len(n.Assigns) == 0 && callReads(n.Args)
		case *syntax.Redirect:
			fine = fine && redirectReads(n)
		case *syntax.DeclClause, *syntax.FuncDecl, *syntax.CoprocClause, *syntax.ArithmCmd, *syntax.LetClause:
			fine = false
		}
		return fine
	})
	return fine
}

func redirectReads(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.RdrIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.DplIn:
		return true
	case syntax.DplOut: // 2>&1, but >&file writes one
		to := r.Word.Lit()
		return to == "-" || to != "" && strings.Trim(to, "0123456789") == ""
	case syntax.RdrOut, syntax.AppOut, syntax.RdrAll, syntax.AppAll, syntax.RdrClob:
		return r.Word.Lit() == "/dev/null"
	}
	return false
}

// reader is a command that only reads, unless one of the options stands in its
// arguments; those are prefixes. strict ones must be spelled out whole.
type reader struct {
	name    string
	strict  bool
	without []string
	// operands bounds how many arguments there are that are no options; 0 is any.
	operands int
}

func readers() []reader {
	plain := []string{"cat", "ls", "head", "tail", "wc", "grep", "egrep", "fgrep", "cut", "tr", "diff", "cmp", "comm", "stat", "file", "du", "df", "pwd",
		"echo", "printf", "true", "false", "test", "[", "which", "date", "basename", "dirname", "realpath", "readlink", "nl", "od", "hexdump",
		"md5sum", "sha1sum", "sha256sum", "cd", "type", "jq", "seq", "sleep", "chipset", ":"}
	all := make([]reader, 0, len(plain)+8)
	for _, name := range plain {
		all = append(all, reader{name: name})
	}
	return append(all,
		reader{name: "rg", strict: true, without: []string{"--pre"}},
		reader{name: "find", strict: true, without: []string{"-delete", "-exec", "-ok", "-fprint", "-fls"}},
		reader{name: "fd", strict: true, without: []string{"-x", "-X", "--exec"}},
		reader{name: "sort", strict: true, without: []string{"-o", "--output", "--compress-program"}},
		reader{name: "tree", strict: true, without: []string{"-o", "--output"}},
		reader{name: "uniq", strict: true, operands: 1})
}

func callReads(args []*syntax.Word) bool {
	if len(args) == 0 {
		return true
	}
	name := args[0].Lit()
	switch name {
	case "git":
		return gitReads(args[1:])
	case "sed":
		return sedReads(args[1:])
	}
	all := readers()
	i := slices.IndexFunc(all, func(r reader) bool { return r.name == name })
	return i >= 0 && all[i].reads(args[1:])
}

func (r *reader) reads(args []*syntax.Word) bool {
	operands := 0
	for _, word := range args {
		text, spelled := literal(word)
		if !spelled && r.strict {
			return false
		}
		if slices.ContainsFunc(r.without, func(option string) bool { return strings.HasPrefix(text, option) }) {
			return false
		}
		if !strings.HasPrefix(text, "-") {
			operands++
		}
	}
	return r.operands == 0 || operands <= r.operands
}

// gitReads knows the commands of git that look at things.
func gitReads(args []*syntax.Word) bool {
	var texts []string
	for _, word := range args {
		text, spelled := literal(word)
		if !spelled || strings.HasPrefix(text, "--output") || text == "--ext-diff" || strings.HasPrefix(text, "--open-files") || strings.HasPrefix(text, "-O") {
			return false
		}
		texts = append(texts, text)
	}
	for len(texts) > 0 && strings.HasPrefix(texts[0], "-") {
		switch texts[0] {
		case "--no-pager":
			texts = texts[1:]
		case "-C":
			texts = texts[min(2, len(texts)):]
		default:
			return false // -c and others can make it run a program
		}
	}
	if len(texts) == 0 {
		return true
	}
	switch texts[0] {
	case "log", "show", "diff", "status", "blame", "grep", "ls-files", "ls-tree", "cat-file", "rev-parse", "describe", "shortlog", "merge-base", "rev-list", "name-rev":
		return true
	case "branch", "tag", "remote", "stash", "worktree":
		listing := []string{"-a", "-r", "-v", "-vv", "--list", "-l", "list", "show", "--show-current"}
		return !slices.ContainsFunc(texts[1:], func(arg string) bool { return !slices.Contains(listing, arg) })
	}
	return false
}

// sedReads allows what prints lines: sed -n 10,20p FILE.
func sedReads(args []*syntax.Word) bool {
	if len(args) < 2 || args[0].Lit() != "-n" {
		return false
	}
	script, spelled := literal(args[1])
	if !spelled || script == "" || strings.Trim(script, "0123456789,$p; ") != "" {
		return false
	}
	for _, word := range args[2:] {
		if text, spelled := literal(word); !spelled || strings.HasPrefix(text, "-") {
			return false
		}
	}
	return true
}

// literal is the text of a word without quotes, and whether it is spelled out:
// no expansion stands in it.
func literal(word *syntax.Word) (string, bool) {
	var text strings.Builder
	spelled := true
	var add func(parts []syntax.WordPart)
	add = func(parts []syntax.WordPart) {
		for _, part := range parts {
			switch p := part.(type) {
			case *syntax.Lit:
				text.WriteString(p.Value)
			case *syntax.SglQuoted:
				text.WriteString(p.Value)
			case *syntax.DblQuoted:
				add(p.Parts)
			default:
				spelled = false
			}
		}
	}
	add(word.Parts)
	return text.String(), spelled
}
