package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/state"
)

// Options are what a board needs from its caller.
type Options struct {
	Rig *rig.Rig
	// Watcher reports changes; without one the board looks every second.
	Watcher *state.Watcher
	// Run runs a chipset command line, given without its first word, as the person, and
	// returns what it printed and its error for the person.
	Run func(ctx context.Context, args []string) (output string, err error)
	// Token opens the board. "" makes tokens that work once.
	Token string
	// Key is a secret of the person for this rig, from which the cookie is derived, so that
	// open pages keep working after a restart. With "" they don't.
	Key string
	// Address is called with the address that opens the board, and again with each next one.
	Address func(url string)
}

// Server is a board.
type Server struct {
	Options
	guard *guard
	pages *pages
	live  live
}

// New makes a board. It fails only if the templates are invalid.
func New(o Options) (*Server, error) {
	s := &Server{Options: o, live: live{model: view.NewModel(o.Rig, o.Watcher), clients: map[chan view.Parts]bool{}}}
	var err error
	s.pages, err = newPages(s)
	return s, err
}

// Serve serves the board until the context ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.guard = newGuard(s.Token, s.Key, hostsOf(l.Addr()))
	tell := func(token string) { s.Address("http://" + l.Addr().String() + "/?token=" + url.QueryEscape(token)) }
	if !s.guard.reusable {
		s.guard.spent = tell
	}
	const headerTime, idleTime = 10 * time.Second, 2 * time.Minute
	server := &http.Server{Handler: s.guard.wrap(s.routes()), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, BaseContext: func(net.Listener) context.Context { return ctx }}
	go s.follow(ctx)
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	tell(s.guard.current())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// hostsOf returns the host names of a board that listens on an address.
func hostsOf(a net.Addr) []string {
	t, ok := a.(*net.TCPAddr)
	switch {
	case !ok:
		return []string{"localhost"}
	case t.IP.IsLoopback():
		return []string{"localhost", "127.0.0.1", "::1", t.IP.String()} // the last may be another, such as 127.0.0.2
	case t.IP.IsUnspecified():
		return nil
	}
	return []string{t.IP.String()}
}

// routes returns the handler of all pages.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, h := range map[string]func(http.ResponseWriter, *http.Request){
		"GET /{$}":                        s.pages.board,
		"GET /work":                       s.pages.work,
		"GET /bead/{id}":                  s.pages.story,
		"GET /bead/{id}/diff":             s.pages.diff,
		"GET /bead/{id}/transcript":       s.pages.beadTranscript,
		"GET /agent/{id}":                 s.pages.agent,
		"GET /agent/{id}/transcript":      s.pages.agentTranscript,
		"GET /mail":                       s.pages.mail,
		"GET /mail/{name}":                s.pages.message,
		"GET /convoy/{id}":                s.pages.convoy,
		"GET /convoy/{id}/graph.json":     s.convoyGraph,
		"GET /graph":                      s.pages.graph,
		"GET /graph/graph.json":           s.wholeGraph,
		"GET /figures":                    s.pages.figures,
		"GET /live":                       s.events,
		"POST /act":                       s.act,
		"GET /static/{version}/{name...}": static,
	} {
		mux.HandleFunc(pattern, h)
	}
	return http.StripPrefix(s.guard.folder(), mux)
}
