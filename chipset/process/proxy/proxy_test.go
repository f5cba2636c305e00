package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// served returns a proxy with rules and a client that goes through it.
func served(t *testing.T, allow ...string) (*Proxy, *http.Client) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := New(Rules{Allow: allow})
	go p.Serve(l)
	t.Cleanup(p.Close)
	return p, &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: l.Addr().String()}), TLSClientConfig: nil}}
}

func TestBothWaysOfHTTP(t *testing.T) {
	big := bytes.Repeat([]byte("x"), 1<<20)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Proxy-Authorization") != "" || r.Header.Get("X-Forwarded-For") != "" {
			http.Error(w, fmt.Sprint(err, r.Header), http.StatusBadRequest)
		}
		_, _ = w.Write(sent)
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	p, client := served(t, plain.Listener.Addr().String(), secure.Listener.Addr().String())
	client.Transport.(*http.Transport).TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
	for _, server := range []*httptest.Server{plain, secure} {
		answer, err := client.Post(server.URL, "text/plain", bytes.NewReader(big))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || !bytes.Equal(got, big) {
			t.Errorf("%d bytes back, %s, %v", len(got), answer.Status, err)
		}
	}
	client.CloseIdleConnections()
	for _, v := range p.Visits() {
		if v.Connections != 1 || v.Refused != 0 || v.Sent < 1<<20 || v.Received < 1<<20 {
			t.Errorf("%+v", v)
		}
	}
}

func TestRefusedHostsAreRecordedOnce(t *testing.T) {
	p, client := served(t, "registry.example.org")
	for range 2 {
		answer, err := client.Get("http://other.example.org/")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden || !strings.Contains(string(text), "other.example.org") {
			t.Errorf("%s: %s", answer.Status, text)
		}
	}
	if got := p.Visits(); len(got) != 1 || got[0] != (Visit{Host: "other.example.org", Refused: 2}) {
		t.Errorf("%+v", got)
	}
	for i := range 2 * maxVisits {
		_, err := p.dial(t.Context(), "tcp", fmt.Sprintf("h%d.example.org:443", i))
		if refused := (*RefusedError)(nil); !errors.As(err, &refused) {
			t.Fatal(err)
		}
	}
	if got := p.Visits(); len(got) != maxVisits+1 {
		t.Errorf("%d hosts are recorded", len(got))
	}
}

func TestCloseEndsConnections(t *testing.T) {
	host, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := New(Rules{Allow: []string{host.Addr().String()}})
	relay := make(chan struct{})
	go func() { p.Relay(l, host.Addr().String()); close(relay) }()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	accepted, err := host.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	if _, err := io.WriteString(client, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(accepted, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	p.Close()
	if _, err := client.Read(make([]byte, 1)); err == nil {
		t.Error("the connection stays")
	}
	<-relay
}
