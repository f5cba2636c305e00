package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gastown-chipset/chipset/chipset/view"
)

// live is the model and the clients that follow it.
type live struct {
	mu      sync.Mutex
	model   *view.Model
	clients map[chan view.Parts]bool
}

const (
	// lookInterval is how often the model is updated without a notification, while there are clients.
	lookInterval = time.Second
	// lookPace is the least time between two looks.
	lookPace = 30 * time.Millisecond
	// beatInterval is how often a connection sends a sign of life.
	beatInterval = 20 * time.Second
)

// look brings the view up to date, and sends every client the changed parts.
func (l *live) look(ctx context.Context) (*view.View, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v, parts, err := l.model.Update(ctx)
	if parts == 0 {
		return v, err
	}
	for c := range l.clients {
		select {
		case before := <-c: // not yet sent
			c <- before | parts
		default:
			c <- parts
		}
	}
	return v, err
}

// join returns a channel that holds the changed parts that were not yet received.
func (l *live) join() chan view.Parts {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := make(chan view.Parts, 1)
	l.clients[c] = true
	return c
}

func (l *live) leave(c chan view.Parts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.clients, c)
}

func (l *live) watched() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.clients) > 0
}

// follow updates the model after every change, while there are clients.
func (s *Server) follow(ctx context.Context) {
	net := time.NewTicker(lookInterval)
	defer net.Stop()
	for {
		s.live.mu.Lock()
		changed := s.live.model.Changed()
		s.live.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-net.C:
		}
		if s.live.watched() {
			_, _ = s.live.look(ctx) // errors are warnings of the view
			select {
			case <-ctx.Done():
			case <-time.After(lookPace):
			}
		}
	}
}

// partNames are the names that pages use for the parts of a view.
func partNames(p view.Parts) string {
	var names []string
	for _, part := range []struct {
		is   view.Parts
		name string
	}{
		{view.NeedsPart, "needs"}, {view.AgentsPart, "agents"}, {view.WorkPart, "work"}, {view.QueuePart, "queue"}, {view.ConvoysPart, "convoys"},
		{view.MailPart, "mail"}, {view.StoryPart, "story"}, {view.SpendPart, "spend"}, {view.HealthPart, "health"},
	} {
		if p.Has(part.is) {
			names = append(names, part.name)
		}
	}
	return strings.Join(names, " ")
}

// events sends server-sent events with the names of the changed parts. The first one names
// all, because the page may be older than the connection.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	c := s.live.join()
	defer s.live.leave(c)
	beat := time.NewTicker(beatInterval)
	defer beat.Stop()
	send := func(format string, args ...any) bool {
		_, err := fmt.Fprintf(w, format, args...)
		return err == nil && out.Flush() == nil
	}
	if !send("retry: 1000\nevent: parts\ndata: %s\n\n", partNames(view.AllParts)) {
		return
	}
	for {
		ok := true
		select {
		case <-r.Context().Done():
			return
		case parts := <-c:
			ok = send("event: parts\ndata: %s\n\n", partNames(parts))
		case <-beat.C:
			ok = send(": still here\n\n")
		}
		if !ok {
			return
		}
	}
}
