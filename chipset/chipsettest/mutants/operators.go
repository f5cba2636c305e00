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
	"slices"
	"strings"
)

// Operators. Each is a mistake that a person makes in code that must be durable.
const (
	// opNegate turns the condition of an if round.
	opNegate = "negate"
	// opIgnore takes no notice of an error.
	opIgnore = "ignore-error"
	// opSwallow returns nil where an error is returned.
	opSwallow = "swallow-error"
	// opBoundary moves a comparison by one.
	opBoundary = "boundary"
	// opLogic makes "and" of "or", and the other way round.
	opLogic = "logic"
	// opRemove leaves a statement out.
	opRemove = "remove"
	// opSwap does two steps in the other order.
	opSwap = "swap"
	// opUnlock frees a lock before what it guards.
	opUnlock = "unlock-early"
)

// generate lists every mutant that the operators make of a file, in the order of
// the text. file is relative to the module; test is what must fail.
func generate(module, file string, test []string) ([]mutant, error) {
	source, err := os.ReadFile(filepath.Join(module, filepath.FromSlash(file)))
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	g := &generator{file: file, test: test, source: source, fset: fset}
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			g.function = nameOf(f)
			g.returnsError = lastResultIsError(f.Type)
			ast.Inspect(f.Body, g.node)
		}
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
func number(all []mutant) []mutant {
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
	test     []string
	source   []byte
	fset     *token.FileSet
	function string
	// returnsError: the last result of the function is an error.
	returnsError bool
	found        []mutant
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
		g.replace(opIgnore, n.Cond, g.text(n.Cond)+" && false")
		return
	}
	g.replace(opNegate, n.Cond, "!("+g.text(n.Cond)+")")
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
	if to, ok := other[n.Op]; ok {
		at := g.offset(n.OpPos)
		g.edit(to.op, n.OpPos, at, at+len(n.Op.String()), to.text)
	}
}

func (g *generator) results(n *ast.ReturnStmt) {
	if !g.returnsError || len(n.Results) == 0 {
		return
	}
	last := n.Results[len(n.Results)-1]
	if id, ok := last.(*ast.Ident); ok && id.Name != "nil" {
		g.replace(opSwallow, last, "error(nil)")
	}
}

// statements removes, and swaps, what stands in one block.
func (g *generator) statements(list []ast.Stmt) {
	for i, s := range list {
		g.remove(s)
		if i > 0 && isStep(list[i-1]) && isStep(s) {
			first, second := g.text(list[i-1]), g.text(s)
			from, to := g.offset(list[i-1].Pos()), g.offset(s.End())
			between := string(g.source[g.offset(list[i-1].End()):g.offset(s.Pos())])
			g.edit(opSwap, s.Pos(), from, to, second+between+first)
		}
	}
}

func (g *generator) remove(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.ExprStmt:
		g.replace(opRemove, s, "")
	case *ast.AssignStmt:
		if s.Tok != token.DEFINE {
			g.replace(opRemove, s, g.keepUsed(s))
		}
	case *ast.IncDecStmt:
		g.replace(opRemove, s, "")
	case *ast.DeferStmt:
		if sel, ok := s.Call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Unlock" {
			g.replace(opUnlock, s, g.text(s.Call))
		}
	}
}

// keepUsed makes of an assignment that is left out one that still uses its names, so
// that it compiles.
func (g *generator) keepUsed(s *ast.AssignStmt) string {
	if len(s.Rhs) != 1 {
		return ""
	}
	if _, call := s.Rhs[0].(*ast.CallExpr); call {
		return "" // what it calls is left out, too
	}
	return "_ = " + g.text(s.Rhs[0])
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

func (g *generator) replace(op string, n ast.Node, text string) {
	g.edit(op, n.Pos(), g.offset(n.Pos()), g.offset(n.End()), text)
}

// edit keeps one mutant: its name holds what it changes, so that it can be named in
// a list although lines move.
func (g *generator) edit(op string, at token.Pos, from, to int, text string) {
	old := string(g.source[from:to])
	changed := slices.Concat(g.source[:from], []byte(text), g.source[to:])
	if _, err := parser.ParseFile(token.NewFileSet(), g.file, changed, parser.SkipObjectResolution); err != nil || bytes.Equal(changed, g.source) {
		return
	}
	g.found = append(g.found, mutant{
		name: fmt.Sprintf("%s: %s: %s: %s", g.file, g.function, op, oneLine(old)),
		file: g.file, test: g.test, line: g.fset.Position(at).Line, changed: changed,
		why: fmt.Sprintf("line %d", g.fset.Position(at).Line),
	})
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
