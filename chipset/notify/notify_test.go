package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/view"
)

// hostile is a title that ends the sequence of a terminal, begins others, and more.
const hostile = "--urgency=low \x1b\\\a\x1b]0;owned\a\u009b31m\u202e<b>\r\nX-Evil: 1"

func hostileNotice(t *testing.T) Notice {
	t.Helper()
	n, err := OfNeed("my rig", &view.Need{Number: 3, Kind: view.NeedQuestion, Key: "question:x", What: hostile, Commands: []string{"chipset answer 3 TEXT"}})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The text of an agent neither ends the sequence nor begins another.
func TestTerminalShowsAndDoesNotObey(t *testing.T) {
	var out bytes.Buffer
	if err := terminal(&out, hostileNotice(t)); err != nil {
		t.Fatal(err)
	}
	inner, begins := strings.CutPrefix(out.String(), "\x1b]9;chipset: ")
	inner, ends := strings.CutSuffix(inner, "\x1b\\\a")
	if !begins || !ends || strings.ContainsAny(inner, "\x1b\a\r\n\u009b\u202e") || !strings.Contains(inner, "]0;owned") {
		t.Errorf("%q", out.String())
	}
}

// The text of an agent is one argument, which begins no option and is no markup.
func TestDesktopArguments(t *testing.T) {
	n := hostileNotice(t)
	n.Title = "--icon=x" // even then
	if argv := desktop("linux", n); len(argv) != 5 || argv[2] != "--" || argv[3] != n.Title || strings.Contains(argv[4], "<b>") {
		t.Errorf("%q", argv)
	}
	if argv := desktop("darwin", n); argv[len(argv)-1] != n.Text || strings.Contains(strings.Join(argv[:len(argv)-2], " "), "owned") {
		t.Errorf("%q", argv)
	}
}

// A notice is the need, with a title and a text.
func TestJSON(t *testing.T) {
	n := hostileNotice(t)
	var got map[string]any
	if err := json.Unmarshal(n.JSON, &got); err != nil || bytes.Count(n.JSON, []byte("\n")) != 1 {
		t.Fatalf("%v\n%s", err, n.JSON)
	}
	for key, want := range map[string]any{"type": "need", "rig": "my rig", "title": n.Title, "text": n.Text, "kind": "question", "number": 3.0, "what": hostile} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
}

// fails starts a notifier whose failures arrive in a channel.
func fails(t *testing.T, def definition.Notify, timeout time.Duration) (*Notifier, chan string) {
	t.Helper()
	failed := make(chan string, 10)
	n := New(&def, Options{Dir: t.TempDir(), Timeout: timeout, Failed: func(name string, err error) { failed <- name + ": " + err.Error() }})
	return n, failed
}

func TestWebhook(t *testing.T) {
	var got atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other host was asked") }))
	defer other.Close()
	want := hostileNotice(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/elsewhere":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/here":
			http.Redirect(w, r, "/secret", http.StatusTemporaryRedirect)
		case "/get":
			http.Redirect(w, r, "/secret", http.StatusSeeOther)
		case "/broken":
			http.Error(w, "no", http.StatusTeapot)
		default:
			body, _ := io.ReadAll(r.Body)
			if r.Method != http.MethodPost || !bytes.Equal(body, want.JSON) || strings.Contains(fmt.Sprint(r.Header), "owned") || r.Header.Get("X-Message") != "{{.text}}" {
				t.Errorf("%s %v %s", r.Method, r.Header, body)
			}
			got.Add(1)
		}
	}))
	defer server.Close()
	for path, problem := range map[string]string{"/secret": "", "/here": "", "/elsewhere": "another host", "/get": "303", "/broken": "418"} {
		got.Store(0)
		n, failed := fails(t, definition.Notify{Webhook: server.URL + path}, 0)
		n.Send(want)
		n.Send(want)
		n.Close()
		close(failed)
		var all []string
		for text := range failed {
			all = append(all, text)
		}
		if problem == "" && (got.Load() != 2 || len(all) > 0) {
			t.Errorf("%s: %d arrived, %q", path, got.Load(), all)
		}
		if problem != "" && (got.Load() != 0 || len(all) != 1 || !strings.Contains(all[0], problem) || strings.Contains(all[0], path)) {
			t.Errorf("%s: %q, want %q once, without the address", path, all, problem)
		}
	}
}

// A server that does not answer is told of without its address.
func TestWebhookIsAway(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	n, failed := fails(t, definition.Notify{Webhook: server.URL + "/secret"}, 0)
	n.Send(hostileNotice(t))
	n.Close()
	if text := <-failed; !strings.HasPrefix(text, "webhook: ") || strings.Contains(text, "secret") {
		t.Error(text)
	}
}

// A command gets the JSON; one that hangs is ended with its children, fails once, and delays nobody.
func TestCommands(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "got")
	want := hostileNotice(t)
	n, failed := fails(t, definition.Notify{Command: []string{"sh", "-c", `cat >>"$0"`, file}}, 0)
	n.Send(want)
	n.Close()
	if data, err := os.ReadFile(file); err != nil || !bytes.Equal(data, want.JSON) || len(failed) > 0 {
		t.Errorf("%q, %v", data, err)
	}
	n, failed = fails(t, definition.Notify{Command: []string{"sh", "-c", "sleep 600 & wait"}}, time.Second)
	began := time.Now()
	for range maxQueued + 10 {
		n.Send(want)
	}
	if spent := time.Since(began); spent > 5*time.Second {
		t.Errorf("sending took %s", spent)
	}
	if text := <-failed; !strings.HasPrefix(text, "command: ") {
		t.Error(text)
	}
	n.stop(errors.New("the test ends"))
	n.Close()
	if len(failed) > 0 {
		t.Errorf("said again: %s", <-failed)
	}
}

// A command that hangs is ended with its children.
func TestCommandEndsWithItsChildren(t *testing.T) {
	held := filepath.Join(t.TempDir(), "held")
	if err := unix.Mkfifo(held, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(held, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	n, failed := fails(t, definition.Notify{Command: []string{"sh", "-c", `exec 9>"$0"; sleep 600 & echo began >&9; wait`, held}}, 3*time.Second)
	n.Send(hostileNotice(t))
	if text := <-failed; text != "command: it took too long" {
		t.Error(text)
	}
	if err := pipe.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(pipe); err != nil || string(data) != "began\n" {
		t.Errorf("its child still holds the pipe: %q, %v", data, err)
	}
	n.Close()
}

// What failed is tried again with the next notice, and said again once it has worked in between.
func TestFailuresAreSaidOnce(t *testing.T) {
	var said []string
	results := []error{errors.New("a"), errors.New("b"), nil, errors.New("c")}
	c := channel{name: "x", failed: func(_ string, err error) { said = append(said, err.Error()) }}
	for _, err := range results {
		c.note(err)
	}
	if got := strings.Join(said, " "); got != "a c" {
		t.Errorf("said %q", got)
	}
}
