// Package mcpserver serves a rig to any client of the Model Context Protocol:
// tools that do what the commands do, resources, and the prompt prime. The
// identity of a server is fixed when it is made; no argument of a call changes
// it. Text that others wrote is always escaped and labelled.
package mcpserver

import (
	"context"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/prompt"
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
)

// Options are what a server needs to know.
type Options struct {
	// Version is that of the binary.
	Version string
	// Open finds the rig and the agent that the server speaks as. It is called until
	// it succeeds once: a server may be started before there is a rig.
	Open func(context.Context) (*actor.Actor, error)
}

// Server is one server with its identity. It serves any number of sessions,
// all of them as the same agent.
type Server struct {
	opts  Options
	inner *mcp.Server
	// watching makes sure that changes are watched once.
	watching sync.Once
	// live ends the watching.
	live context.Context

	mu     sync.Mutex
	opened *actor.Actor
}

// instructions are what a client may show to its model at the start.
const instructions = `This server is your place in a chipset rig: a git repository in which several agents work on beads
(work items). Call the prompt "prime" or read chipset://assignment first. Touch your hook during long quiet steps,
look at your mail between steps, and end your assignment with exactly one of done, fail or block.
` + string(prompt.Preamble)

// New makes a server. Notifications to its subscribers end with ctx.
func New(ctx context.Context, opts Options) *Server {
	s := &Server{opts: opts, live: ctx}
	s.inner = mcp.NewServer(&mcp.Implementation{Name: "chipset", Title: "chipset rig", Version: opts.Version}, &mcp.ServerOptions{
		Instructions: instructions,
		Capabilities: &mcp.ServerCapabilities{},
		// A subscription to a resource that never changes is harmless.
		SubscribeHandler: func(ctx context.Context, _ *mcp.SubscribeRequest) error {
			s.watch(ctx)
			return nil
		},
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	s.addMailTools()
	s.addHookTools()
	s.addWorkTools()
	s.addRigTools()
	s.addTeamTools()
	s.addResources()
	s.addPrompt()
	return s
}

// Run serves one client until it disconnects or ctx ends.
func (s *Server) Run(ctx context.Context, t mcp.Transport) error {
	err := s.inner.Run(ctx, t)
	if ctx.Err() != nil {
		return nil // the end was asked for
	}
	return err
}

// actor returns the agent that the server speaks as. It opens the rig at the first call.
func (s *Server) actor(ctx context.Context) (*actor.Actor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened != nil {
		return s.opened, nil
	}
	opened, err := s.opts.Open(ctx)
	if err != nil {
		return nil, err
	}
	s.opened = opened
	return opened, nil
}

// addPrompt offers the briefing.
func (s *Server) addPrompt() {
	s.prompt(&mcp.Prompt{Name: "prime", Title: "Begin", Description: "Everything you need to begin: your role and its rules, what is on your hook, the last hand-off, unread mail."},
		"Who you are in this rig and what is on your hook", prime)
}

// prompt offers a prompt without arguments; about describes its text.
func (s *Server) prompt(p *mcp.Prompt, about string, write func(context.Context, *actor.Actor) (quote.Text, error)) {
	s.inner.AddPrompt(p, func(ctx context.Context, _ *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		var text quote.Text
		me, err := s.actor(ctx)
		if err == nil {
			text, err = write(ctx, me)
		}
		if err != nil {
			text = explain(err) // a client can show it; an error it might swallow
		}
		return &mcp.GetPromptResult{Description: about, Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: string(text)}}}}, nil
	})
}

func prime(ctx context.Context, me *actor.Actor) (quote.Text, error) {
	b, err := prompt.Prime(ctx, me.Rig, me.ID)
	if err != nil {
		return "", err
	}
	me.Injected("the prompt prime", b.InText()...)
	return b.Text(), nil
}

// explain says to a model what went wrong, and what it can do next.
func explain(err error) quote.Text {
	text := quote.Lines(err.Error())
	next := actor.HintFor(err)
	switch {
	case errors.Is(err, rig.ErrNoRig):
		next = "there is no rig where this server was started. Nothing you call here will help: tell the person that `chipset init` makes one, or that --dir (or CHIPSET_DIR) must name it. " + next
	case next != "":
	case errors.Is(err, state.ErrNotFound):
		next = "look for the right name: status lists the agents; mail_inbox, bead_list, convoy_list and queue_list the rest"
	case errors.Is(err, actor.ErrInvalid), errors.Is(err, state.ErrBadID):
		next = "put the argument right and call again"
	case errors.Is(err, state.ErrTooLarge):
		next = "say it shorter, or put it into a file of your branch and name the file"
	case errors.Is(err, state.ErrConflict):
		next = "nothing was changed. Look at what is there now (hook_show, bead_show, status) before you decide what to do; do not just repeat the call"
	default:
		next = "nothing was changed. Try once more; if it fails again, go on without it and say so in your summary"
	}
	return quote.Sprintf("%s\nNext: %s.", text, quote.Line(next, 600))
}
