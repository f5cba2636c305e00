package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/prompt"
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// The resources, each about the agent that the server speaks as.
const (
	inboxURI      = "chipset://inbox"
	hookURI       = "chipset://hook"
	assignmentURI = "chipset://assignment"
)

func (s *Server) addResources() {
	s.resource(&mcp.Resource{URI: inboxURI, Name: "inbox", Title: "Your unread mail", MIMEType: "text/plain",
		Description: "Your unread mail in the order to take it, as data of its senders."},
		func(ctx context.Context, me *actor.Actor) (quote.Text, error) { return showInbox(ctx, me, inboxArgs{}) })
	s.resource(&mcp.Resource{URI: hookURI, Name: "hook", Title: "Your hook", MIMEType: "application/json",
		Description: "What is on your hook, as it is stored."},
		func(_ context.Context, me *actor.Actor) (quote.Text, error) {
			h, err := actor.HookOf(me.Rig, me.ID)
			if err != nil {
				return "", err
			}
			data, err := state.Encode(h)
			var safe bytes.Buffer
			json.HTMLEscape(&safe, data) // a string of it starts no tag
			return quote.Text(safe.String()), err
		})
	s.resource(&mcp.Resource{URI: assignmentURI, Name: "assignment", Title: "Your assignment", MIMEType: "text/markdown",
		Description: "What you are to do: the bead on your hook, when it is accepted, and why earlier attempts did not do."},
		func(ctx context.Context, me *actor.Actor) (quote.Text, error) {
			b, err := prompt.Prime(ctx, me.Rig, me.ID)
			if err != nil {
				return "", err
			}
			return b.Assignment(), nil
		})
}

func (s *Server) resource(r *mcp.Resource, read func(context.Context, *actor.Actor) (quote.Text, error)) {
	s.inner.AddResource(r, func(ctx context.Context, _ *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		kind := r.MIMEType
		var text quote.Text
		me, err := s.actor(ctx)
		if err == nil {
			text, err = read(ctx, me)
		}
		if err != nil {
			text, kind = explain(err), "text/plain" // an error of the protocol would reach no model
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.URI, MIMEType: kind, Text: string(text)}}}, nil
	})
}

// watch notifies subscribers of changes, from the first subscription on. Without a
// rig, or without file notification, there are no notifications.
func (s *Server) watch(ctx context.Context) {
	me, err := s.actor(ctx)
	if err != nil {
		return
	}
	s.watching.Do(func() {
		w, err := state.NewWatcher(me.Tree)
		if err != nil {
			return
		}
		own := string(me.ID) + ".json"
		inbox, inboxErr := w.Subscribe(me.Mailbox(me.ID).Dir())
		hooks, hookErr := w.SubscribeTo(func(p state.Path) bool { return p.Base() == own }, hook.Dir)
		beads, beadErr := w.Subscribe(bead.Dir)
		if inboxErr != nil || hookErr != nil || beadErr != nil {
			_ = w.Close() // it has not been used
			return
		}
		go s.tell(w, inbox, hooks, beads)
	})
}

// tell notifies subscribers until the server ends.
func (s *Server) tell(w *state.Watcher, inbox, hooks, beads <-chan struct{}) {
	defer w.Close()
	for {
		var uris []string
		select {
		case <-inbox:
			uris = []string{inboxURI}
		case <-hooks:
			uris = []string{hookURI, assignmentURI}
		case <-beads:
			uris = []string{assignmentURI}
		case <-s.live.Done():
			return
		}
		for _, uri := range uris {
			// A client that has gone misses nothing.
			_ = s.inner.ResourceUpdated(s.live, &mcp.ResourceUpdatedNotificationParams{URI: uri})
		}
	}
}
