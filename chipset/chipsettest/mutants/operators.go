package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Operators. Each is a mistake that a person makes in code that must be durable.
const (
	// opNegate negates the condition of an if.
	opNegate = "negate"
	// opIgnore ignores an error.
	opIgnore = "ignore-error"
	// opSwallow returns nil where an error is returned.
	opSwallow = "swallow-error"
	// opBoundary moves a comparison by one.
	opBoundary = "boundary"
	// opLogic swaps "and" and "or".
	opLogic = "logic"
	// opRemove leaves a statement out.
	opRemove = "remove"
	// opSwap swaps two steps.
	opSwap = "swap"
	// opUnlock releases a lock before the code that it guards.
	opUnlock = "unlock-early"
)

// variant is a mutant that an operator has made. Its source wraps pieces of the text, so
// that many of them are in one binary and a number switches one on.
type variant struct {
	name string
	file string // relative to the module
	line int
	// order is its place among those of its file: outer ones come first.
	order int
	// wraps are what stands around pieces of the source, with a NUL for the number.
	wraps []wrap
}

// wrap puts text around source[from:to].
type wrap struct {
	from, to      int
	before, after string
}

// generate lists every mutant that the operators make of a file, outer ones first. file is
// relative to the module.
func generate(module, file string) ([]variant, error) {
	source, err := os.ReadFile(filepath.Join(module, filepath.FromSlash(file)))
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	g := &generator{file: file, source: source, fset: fset}
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			g.function = nameOf(f)
			g.returnsError = lastResultIsError(f.Type)
			ast.Inspect(f.Body, g.node)
		}
	}
	for i := range g.found {
		g.found[i].order = i
	}
	return number(g.found), nil
}

// nameOf is a function's name with that of its receiver's type.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

func lastResultIsError(t *ast.FuncType) bool {
	if t.Results == nil || len(t.Results.List) == 0 {
		return false
	}
	id, ok := t.Results.List[len(t.Results.List)-1].Type.(*ast.Ident)
	return ok && id.Name == "error"
}

// number tells mutants of one name apart, in the order of the text, so that a name
// stays the same while its function does.
func number(all []variant) []variant {
	seen := map[string]int{}
	for i := range all {
		name := all[i].name
		if seen[name]++; seen[name] > 1 {
			all[i].name = fmt.Sprintf("%s #%d", name, seen[name])
		}
	}
	return all
}

// generator walks one file.
type generator struct {
	file     string
	source   []byte
	fset     *token.FileSet
	function string
	// returnsError: the last result of the function is an error.
	returnsError bool
	found        []variant
}

func (g *generator) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		// Its returns are its own.
		outer := g.returnsError
		g.returnsError = lastResultIsError(n.Type)
		ast.Inspect(n.Body, g.node)
		g.returnsError = outer
		return false
	case *ast.IfStmt:
		g.condition(n)
	case *ast.BinaryExpr:
		g.binary(n)
	case *ast.ReturnStmt:
		g.results(n)
	case *ast.BlockStmt:
		g.statements(n.List)
	case *ast.CaseClause:
		g.statements(n.Body)
	}
	return true
}

func (g *generator) condition(n *ast.IfStmt) {
	if isErrCheck(n.Cond) {
		g.wrap(opIgnore, n.Cond, "(", " && !mutantOn(\x00))")
		return
	}
	g.wrap(opNegate, n.Cond, "(mutantOn(\x00) != (", "))")
}

// isErrCheck reports whether a condition is err != nil.
func isErrCheck(e ast.Expr) bool {
	b, ok := e.(*ast.BinaryExpr)
	if !ok || b.Op != token.NEQ {
		return false
	}
	x, isName := b.X.(*ast.Ident)
	y, isNil := b.Y.(*ast.Ident)
	return isName && isNil && y.Name == "nil" && strings.HasPrefix(strings.ToLower(x.Name), "err")
}

func (g *generator) binary(n *ast.BinaryExpr) {
	other := map[token.Token]struct{ op, text string }{
		token.LSS: {opBoundary, "<="}, token.LEQ: {opBoundary, "<"},
		token.GTR: {opBoundary, ">="}, token.GEQ: {opBoundary, ">"},
		token.LAND: {opLogic, "||"}, token.LOR: {opLogic, "&&"},
	}
	to, ok := other[n.Op]
	if !ok {
		return
	}
	changed := fmt.Sprintf("(%s) %s (%s)", g.text(n.X), to.text, g.text(n.Y))
	g.found = append(g.found, variant{name: g.name(to.op, n.Op.String()), file: g.file, line: g.fset.Position(n.OpPos).Line,
		wraps: []wrap{g.around(n, "(mutantOn(\x00) && ("+changed+") || !mutantOn(\x00) && (", "))")}})
}

func (g *generator) results(n *ast.ReturnStmt) {
	if !g.returnsError || len(n.Results) == 0 {
		return
	}
	last := n.Results[len(n.Results)-1]
	if id, ok := last.(*ast.Ident); ok && id.Name != "nil" {
		g.wrap(opSwallow, last, "mutantError(\x00, ", ")")
	}
}

// statements removes, and swaps, what stands in one block.
func (g *generator) statements(list []ast.Stmt) {
	for i, s := range list {
		g.remove(s)
		if i > 0 && isStep(list[i-1]) && isStep(s) {
			instead := func(at, other ast.Stmt) wrap {
				return g.around(at, "if mutantOn(\x00) {"+g.text(other)+"} else {", "}")
			}
			both := string(g.source[g.offset(list[i-1].Pos()):g.offset(s.End())])
			g.found = append(g.found, variant{name: g.name(opSwap, both), file: g.file, line: g.fset.Position(s.Pos()).Line,
				wraps: []wrap{instead(list[i-1], s), instead(s, list[i-1])}})
		}
	}
}

func (g *generator) remove(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.ExprStmt, *ast.IncDecStmt:
		g.wrap(opRemove, s, "if !mutantOn(\x00) {", "}")
	case *ast.AssignStmt:
		if s.Tok != token.DEFINE {
			g.wrap(opRemove, s, "if !mutantOn(\x00) {", "}")
		}
	case *ast.DeferStmt:
		if sel, ok := s.Call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Unlock" {
			g.wrap(opUnlock, s, "if mutantOn(\x00) {"+g.text(s.Call)+"} else {", "}")
		}
	}
}

// isStep reports whether a statement does something of its own and defines nothing
// that a later one needs.
func isStep(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt:
		_, call := s.X.(*ast.CallExpr)
		return call
	case *ast.IfStmt: // if err := step(); err != nil
		init, ok := s.Init.(*ast.AssignStmt)
		if !ok || len(init.Rhs) != 1 {
			return false
		}
		_, call := init.Rhs[0].(*ast.CallExpr)
		return call && isErrCheck(s.Cond)
	}
	return false
}

// wrap keeps one mutant of one piece.
func (g *generator) wrap(op string, n ast.Node, before, after string) {
	g.found = append(g.found, variant{name: g.name(op, g.text(n)), file: g.file, line: g.fset.Position(n.Pos()).Line,
		wraps: []wrap{g.around(n, before, after)}})
}

func (g *generator) around(n ast.Node, before, after string) wrap {
	return wrap{from: g.offset(n.Pos()), to: g.offset(n.End()), before: before, after: after}
}

// name holds what a mutant changes, so that it can be named in a list although lines move.
func (g *generator) name(op, old string) string {
	return fmt.Sprintf("%s: %s: %s: %s", g.file, g.function, op, oneLine(old))
}

func (g *generator) text(n ast.Node) string {
	return string(g.source[g.offset(n.Pos()):g.offset(n.End())])
}

func (g *generator) offset(p token.Pos) int { return g.fset.Position(p).Offset }

// oneLine is a text without its line breaks, cut to what tells it from others.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 70 {
		s = strings.ToValidUTF8(s[:70], "") + "…"
	}
	return s
}

// product reports whether a file is code of the program itself.
func product(file string) bool {
	dir := path.Dir(file)
	return strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") && !strings.HasSuffix(dir, "test") &&
		!strings.Contains(dir, "test/") && path.Base(file) != "doc.go"
}

// weave writes all variants of a file into its source; numbers[i] switches variants[i] on. Those
// that were found first are the outer ones.
func weave(source []byte, variants []variant, numbers []int) []byte {
	opens, closes := map[int]string{}, map[int]string{}
	for i, v := range variants {
		text := func(s string) string { return strings.ReplaceAll(s, "\x00", strconv.Itoa(numbers[i])) }
		for _, w := range v.wraps {
			opens[w.from] += text(w.before)
			closes[w.to] = text(w.after) + closes[w.to]
		}
	}
	var out bytes.Buffer
	for i := range len(source) + 1 {
		out.WriteString(closes[i] + opens[i])
		if i < len(source) {
			out.WriteByte(source[i])
		}
	}
	return out.Bytes()
}
