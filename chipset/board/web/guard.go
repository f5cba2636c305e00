package web

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// guard lets the person in, and nobody else.
type guard struct {
	key []byte
	// reusable is true for a token from a file, which works any number of times.
	reusable bool
	// hosts are the host names of the board, without the port; nil accepts every IP address.
	hosts []string
	// spent is called with each new token, when the previous one has been used.
	spent func(token string)

	mu    sync.Mutex
	token string
}

const cookieName = "chipset_board"

// newGuard makes a guard for a token; "" makes tokens that work once. The secrets of the
// cookie and the folder are derived from the token of a file, or else from a key, or else
// from a random one.
func newGuard(token, key string, hosts []string) *guard {
	g := &guard{key: secret(), hosts: hosts, reusable: token != "", token: token}
	if lasting := cmp.Or(token, key); lasting != "" {
		sum := sha256.Sum256([]byte("chipset board\x00" + lasting))
		g.key = sum[:]
	}
	if !g.reusable {
		g.token = text(secret())
	}
	return g
}

func secret() []byte {
	b := make([]byte, 32)
	rand.Read(b) // never returns an error
	return b
}

func text(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// derived is a secret for one purpose.
func (g *guard) derived(purpose string) string {
	mac := hmac.New(sha256.New, g.key)
	mac.Write([]byte(purpose))
	return text(mac.Sum(nil))
}

// folder is the path of all pages.
func (g *guard) folder() string { return "/" + g.derived("folder")[:16] }

func (g *guard) csrf() string { return g.derived("csrf") }

func same(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }

// current returns the token that opens the board now.
func (g *guard) current() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.token
}

// admit reports whether a token opens the board. A token that works once is replaced.
func (g *guard) admit(token string) bool {
	g.mu.Lock()
	ok := same(token, g.token)
	next := ""
	if ok && !g.reusable {
		g.token = text(secret())
		next = g.token
	}
	g.mu.Unlock()
	if next != "" && g.spent != nil {
		g.spent(next)
	}
	return ok
}

// headers sets the headers of every response.
func headers(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; worker-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// With no-referrer browsers would send the origin of a form as null.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// wrap passes on requests that the person's browser sends from the board's own pages, and
// refuses all others.
func (g *guard) wrap(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers(w.Header())
		switch {
		case !g.knownHost(r.Host):
			refuse(w, http.StatusMisdirectedRequest, "The board is not at this address.")
		case !ownSite(r):
			refuse(w, http.StatusForbidden, "The request comes from another page.")
		case r.URL.Path == "/":
			g.enter(w, r)
		case !g.knows(r):
			refuse(w, http.StatusUnauthorized, notAdmitted)
		case r.Method == http.MethodPost && !g.mayChange(w, r):
			refuse(w, http.StatusForbidden, "The form is not from this board. Load the page again.")
		case r.Method != http.MethodPost && r.Method != http.MethodGet && r.Method != http.MethodHead:
			refuse(w, http.StatusMethodNotAllowed, "Only GET and POST.")
		default:
			inner.ServeHTTP(w, r)
		}
	})
}

// notAdmitted is the answer without a token or a cookie.
const notAdmitted = "Open the address that chipset board --web has printed last. Each address works once."

// enter exchanges a token for the cookie.
func (g *guard) enter(w http.ResponseWriter, r *http.Request) {
	token := r.URL.Query().Get("token")
	if r.Method != http.MethodGet || token == "" || !g.admit(token) {
		refuse(w, http.StatusUnauthorized, notAdmitted)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: g.derived("session"), Path: g.folder() + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	// If another program opened the address, the browser would not send the new cookie after a
	// redirect; after a refresh of the board's own page it does.
	w.Header().Set("Refresh", "0; url="+g.folder()+"/")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(`<!doctype html><html lang="en"><title>chipset</title><p><a href="` + g.folder() + `/">Open the board</a></p></html>`))
}

// knows reports whether a request has the cookie.
func (g *guard) knows(r *http.Request) bool {
	c, err := r.Cookie(cookieName)
	return err == nil && strings.HasPrefix(r.URL.Path, g.folder()+"/") && same(c.Value, g.derived("session"))
}

// maxForm bounds a form, in bytes.
const maxForm = 1 << 20

// mayChange reports whether a POST comes from a form of the board.
func (g *guard) mayChange(w http.ResponseWriter, r *http.Request) bool {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	return r.Header.Get("Origin") == "http://"+r.Host && same(r.PostFormValue("csrf"), g.csrf())
}

// ownSite reports whether a request comes from the board's own pages, or from an address
// that the person typed or opened.
func ownSite(r *http.Request) bool {
	if o := r.Header.Get("Origin"); o != "" && o != "http://"+r.Host {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	}
	// A link in a mail or a chat may lead to the address with the token, and to no other.
	return r.URL.Path == "/" && r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

// knownHost reports whether a Host header names the board. With DNS rebinding it would name
// another site.
func (g *guard) knownHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if g.hosts == nil {
		return net.ParseIP(name) != nil || name == "localhost"
	}
	for _, h := range g.hosts {
		if strings.EqualFold(name, h) {
			return true
		}
	}
	return false
}

// refuse answers, and ends the connection without waiting long for the rest of the request: who may not enter holds nothing open.
func refuse(w http.ResponseWriter, code int, why string) {
	w.Header().Set("Connection", "close")
	soon := time.Now().Add(time.Second)                     //nolint:forbidigo // the deadline of a connection
	_ = http.NewResponseController(w).SetReadDeadline(soon) // a recorder of a test has none
	http.Error(w, why, code)
}
