// Package agentclitest stands in for the models that coding agents talk to, so
// that the real clients run offline and do what a test wants.
//
// A [Model] listens on 127.0.0.1 and speaks four interfaces at once: Anthropic
// Messages (Claude Code), OpenAI Responses (Codex), OpenAI chat completions
// (opencode and most others), and Gemini's generateContent. Its answers come from
// a script of turns. Every request is recorded, so a test can ask what the agent
// was told and when.
package agentclitest

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Turn is one answer of the model. Of the turns that are left, the first whose
// conditions the request meets answers it.
type Turn struct {
	// Has and Lacks are what the conversation must and must not contain.
	Has, Lacks []string
	// Say is text; Calls are tool calls, made after it.
	Say   string
	Calls []Call
	// API is the interface that the request must use, "" for any.
	API string
	// Status is that of an error of the API, with Say as its message; 0 is none, Cut and Hang break an answer off.
	Status int
	// RetryAfter is the header of that name of an error, "" for none.
	RetryAfter string
	// Hold delays the answer until it is closed. Seen is closed when the request
	// has come.
	Hold <-chan struct{} `json:"-"`
	Seen chan struct{}   `json:"-"`
	// Always keeps the turn after it was used.
	Always bool
}

// Values of Turn.Status for an answer of which half is sent.
const (
	// Cut ends the connection in the middle of the answer.
	Cut = -1
	// Hang leaves it open and sends nothing more.
	Hang = -2
)

// Call is one tool call.
type Call struct {
	// Tool is the client's own name for it, Input its arguments.
	Tool  string
	Input map[string]any
	// Raw is the free-form input of a tool that takes text instead of arguments.
	Raw string
	// Shell is a command to run with whatever tool the client has for that.
	Shell string
}

// Shell is a call that runs a command line.
func Shell(line string) Call { return Call{Shell: line} }

// Use is a call of a named tool.
func Use(tool string, input map[string]any) Call { return Call{Tool: tool, Input: input} }

// Request is what a client asked.
type Request struct {
	// API is messages, responses, chat or gemini.
	API string
	// Model is the name of the model that was asked for.
	Model string
	// Text is every piece of text in the conversation, one a line, results of
	// tools included; Last is what has come since the model last spoke.
	Text, Last string
	// Tools are the names of those offered. A request without any is one of the
	// client's own about the conversation (a title, a summary), and not scripted.
	Tools []string
	Body  []byte
}

// Has reports whether the conversation contains all of the texts.
func (r *Request) Has(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(r.Text, text) })
}

// Model is the stand-in.
type Model struct {
	// URL is where it listens, without a path.
	URL string

	server  *httptest.Server
	mu      sync.Mutex
	script  []Turn
	asked   []Request
	answers int
}

// StartModel starts a stand-in that lives as long as the test.
func StartModel(t testing.TB, script ...Turn) *Model {
	t.Helper()
	m := NewModel(script...)
	t.Cleanup(m.Close)
	return m
}

// NewModel starts a stand-in that lives until Close.
func NewModel(script ...Turn) *Model {
	m := &Model{script: script}
	m.server = httptest.NewServer(http.HandlerFunc(m.serve))
	m.URL = m.server.URL
	return m
}

// Play gives it a new script, for turns that need to know what came after its start.
func (m *Model) Play(script ...Turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.script = slices.Clone(script)
}

// Disconnect refuses connections from now on, and breaks those that there are; Reconnect takes them again.
func (m *Model) Disconnect() { m.Close() }

// Reconnect listens where it did before Disconnect.
func (m *Model) Reconnect(t testing.TB) {
	t.Helper()
	listener, err := net.Listen("tcp", strings.TrimPrefix(m.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(m.serve))
	if err := server.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	server.Listener, m.server = listener, server
	server.Start()
}

// Close ends it, and with it the requests that it still holds.
func (m *Model) Close() {
	m.server.CloseClientConnections()
	m.server.Close()
}

// Requests are the scripted requests so far, in order.
func (m *Model) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.asked), func(r Request) bool { return len(r.Tools) == 0 })
}

// All are the requests so far, those without tools too, in order.
func (m *Model) All() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked)
}

// maxRequest bounds what is read of one request.
const maxRequest = 64 << 20

func (m *Model) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		return // the client has gone
	}
	dialect := dialectOf(r.URL.Path)
	switch {
	case strings.HasSuffix(r.URL.Path, "count_tokens"):
		writeJSON(w, http.StatusOK, object{"input_tokens": len(body) / bytesPerToken})
		return
	case strings.HasSuffix(r.URL.Path, ":countTokens"):
		writeJSON(w, http.StatusOK, object{"totalTokens": len(body) / bytesPerToken})
		return
	case dialect == nil || r.Method != http.MethodPost:
		writeJSON(w, http.StatusNotFound, object{"error": object{"type": "not_found_error", "message": "no such interface: " + r.URL.Path}})
		return
	}
	request := Request{Body: body}
	var parsed object
	if err := json.Unmarshal(body, &parsed); err != nil {
		writeJSON(w, http.StatusBadRequest, object{"error": object{"type": "invalid_request_error", "message": err.Error()}})
		return
	}
	dialect.read(r, parsed, &request)
	turn, n := m.next(request)
	if turn.Seen != nil {
		close(turn.Seen)
	}
	if turn.Hold != nil {
		select {
		case <-turn.Hold:
		case <-r.Context().Done():
			return
		}
	}
	if turn.Status > 0 {
		if turn.RetryAfter != "" {
			w.Header().Set("Retry-After", turn.RetryAfter)
		}
		writeJSON(w, turn.Status, dialect.failure(turn))
		return
	}
	a := answer{n: n, Turn: resolve(turn, &request), model: request.Model, tokensIn: len(body) / bytesPerToken}
	if turn.Status == 0 {
		dialect.answer(w, streams(r, parsed), a)
		return
	}
	whole := httptest.NewRecorder()
	dialect.answer(whole, streams(r, parsed), a)
	w.Header().Set("Content-Type", whole.Header().Get("Content-Type"))
	stream{w}.write(half(whole.Body.String()))
	if turn.Status == Hang {
		<-r.Context().Done()
	}
	panic(http.ErrAbortHandler)
}

// half is the first half of an answer, up to the end of an event where it has events.
func half(whole string) string {
	middle := len(whole) / 2
	if end := strings.Index(whole[middle:], "\n\n"); end >= 0 {
		middle += end + len("\n\n")
	}
	return whole[:middle]
}

// next takes the turn that answers a request. The conversation's own questions
// come before the script is asked.
func (m *Model) next(r Request) (Turn, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers++
	m.asked = append(m.asked, r)
	if len(r.Tools) == 0 {
		return Turn{Say: "A bead"}, m.answers
	}
	for i, turn := range m.script {
		if turn.API != "" && turn.API != r.API || !r.Has(turn.Has...) || slices.ContainsFunc(turn.Lacks, func(s string) bool { return r.Has(s) }) {
			continue
		}
		if turn.Always {
			turn.Seen = nil
		} else {
			m.script = slices.Delete(m.script, i, i+1)
		}
		return turn, m.answers
	}
	return Turn{Say: "There is nothing left to do."}, m.answers
}

// resolve gives shell calls the name and form that the client has for them.
func resolve(turn Turn, r *Request) Turn {
	calls := slices.Clone(turn.Calls)
	for i, call := range calls {
		if call.Shell == "" {
			continue
		}
		for _, tool := range shellTools() {
			if slices.Contains(r.Tools, tool.name) {
				calls[i] = tool.call(call.Shell)
				calls[i].Tool = tool.name
				break
			}
		}
	}
	turn.Calls = calls
	return turn
}

type shellTool struct {
	name string
	call func(line string) Call
}

// shellTools are how the clients call their way to run a command.
func shellTools() []shellTool {
	arguments := func(name string) func(string) Call {
		return func(line string) Call { return Call{Input: object{name: line, "description": "run it"}} }
	}
	return []shellTool{
		{"Bash", arguments("command")}, {"bash", arguments("command")}, {"run_shell_command", arguments("command")},
		{"exec_command", func(line string) Call { return Call{Input: object{"cmd": line}} }},
		{"shell", func(line string) Call { return Call{Input: object{"command": []string{"sh", "-c", line}}} }},
		// Codex with its newest models: the tool takes JavaScript that calls others.
		{"exec", func(line string) Call {
			return Call{Raw: "const r = await tools.exec_command(" + encode(object{"cmd": line}) + "); text(r.output);"}
		}},
	}
}
