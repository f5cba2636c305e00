package mcpserver

import (
	"context"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
)

// effect is what a tool does to the rig, for clients that ask before they call.
type effect int

const (
	// reads changes nothing.
	reads effect = iota
	// adds makes something new each time.
	adds
	// settles does the same however often it is called.
	settles
	// ends can't be taken back.
	ends
)

func (e effect) annotations(title string) *mcp.ToolAnnotations {
	no, yes := false, true
	a := &mcp.ToolAnnotations{Title: title, OpenWorldHint: &no, DestructiveHint: &no}
	switch e {
	case reads:
		a.ReadOnlyHint, a.IdempotentHint = true, true
	case adds:
	case settles:
		a.IdempotentHint = true
	case ends:
		a.IdempotentHint, a.DestructiveHint = true, &yes
	}
	return a
}

// tool describes one tool.
type tool struct {
	name, title, description string
	effect                   effect
	// words are the values that an argument may have, by its name.
	words map[string][]string
}

// maxResult bounds the text of a result, in bytes. Every tool has a way to get
// the rest that costs less than reading all of it again.
const maxResult = 24 << 10

// add offers a tool. What run returns is the text of the result; its error
// becomes the result of a failed call, with what to do next.
func add[In any](s *Server, t tool, run func(context.Context, *actor.Actor, In) (quote.Text, error)) {
	mcp.AddTool(s.inner, &mcp.Tool{Name: t.name, Title: t.title, Description: t.description, InputSchema: schema[In](t),
		Annotations: t.effect.annotations(t.title)},
		func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
			var text quote.Text
			me, err := s.actor(ctx)
			if err == nil {
				text, err = run(ctx, me, in)
			}
			if err != nil {
				return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: string(explain(err))}}}, nil, nil
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil, nil
		})
}

// schema returns the schema of the arguments in a form that every client understands:
// one type for each property, and an enum where only some values are allowed.
func schema[In any](t tool) *jsonschema.Schema {
	sch, err := jsonschema.For[In](nil)
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", t.name, err)) // a mistake in the table, found by any test
	}
	for name, p := range sch.Properties {
		if len(p.Types) == 2 && p.Types[0] == "null" {
			p.Type, p.Types = p.Types[1], nil
		}
		for _, w := range t.words[name] {
			p.Enum = append(p.Enum, w)
		}
	}
	return sch
}

// listed joins at most limit lines and maxResult bytes, and says how to see the
// others. none is the text if there are no lines.
func listed(lines []quote.Text, limit int, none, rest quote.Text) quote.Text {
	text, _ := listedLines(lines, limit, none, rest)
	return text
}

// listedLines is listed, and says how many of the lines it shows.
func listedLines(lines []quote.Text, limit int, none, rest quote.Text) (_ quote.Text, shown int) {
	if len(lines) == 0 {
		return none, 0
	}
	var b quote.Builder
	for i, line := range lines {
		if i >= limit || len(b.Text())+len(line) > maxResult {
			b.Addf("(%d more: %s)\n", len(lines)-i, rest)
			return b.Text(), i
		}
		b.Add(line, "\n")
	}
	return b.Text(), len(lines)
}

// limited returns the limit of a caller, bounded, or the usual one if there is none.
func limited(given, usual int) int {
	if given <= 0 {
		return usual
	}
	return min(given, 200)
}
