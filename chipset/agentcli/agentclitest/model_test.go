package agentclitest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

func ask(t *testing.T, m *Model, path, body string) (int, string) {
	t.Helper()
	resp, err := http.Post(m.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestDialects: the same script in the words of each interface, streamed and not.
func TestDialects(t *testing.T) {
	tests := []struct {
		api, path, body string
		want            []string
	}{
		{"messages", "/v1/messages", `{"model":"m","stream":true,"system":"rules","tools":[{"name":"Bash"}],"messages":[{"role":"user","content":"do it"}]}`,
			[]string{"event: message_start", `"name":"Bash"`, `\"command\":\"ls\"`, `"stop_reason":"tool_use"`}},
		{"messages", "/v1/messages", `{"model":"m","tools":[{"name":"Bash"}],"messages":[{"role":"user","content":[{"type":"text","text":"do it"}]}]}`,
			[]string{`"type":"tool_use"`, `"command":"ls"`}},
		{"responses", "/v1/responses", `{"model":"m","stream":true,"tools":[{"type":"function","name":"exec_command"}],"input":[{"role":"user","content":[{"type":"input_text","text":"do it"}]}]}`,
			[]string{"event: response.completed", `"type":"function_call"`, `\"cmd\":\"ls\"`}},
		{"responses", "/v1/responses", `{"model":"m","input":[{"type":"additional_tools","tools":[{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"}]}]},{"role":"user","content":"do it"}]}`,
			[]string{`"type":"custom_tool_call"`, `tools.exec_command({\"cmd\":\"ls\"})`}},
		{"chat", "/v1/chat/completions", `{"model":"m","stream":true,"tools":[{"type":"function","function":{"name":"bash"}}],"messages":[{"role":"user","content":"do it"}]}`,
			[]string{`"finish_reason":"tool_calls"`, `"name":"bash"`, "data: [DONE]"}},
		{"chat", "/v1/chat/completions", `{"model":"m","tools":[{"type":"function","function":{"name":"bash"}}],"messages":[{"role":"user","content":"do it"}]}`,
			[]string{`"object":"chat.completion"`, `"name":"bash"`}},
		{"gemini", "/v1beta/models/m:streamGenerateContent?alt=sse", `{"tools":[{"functionDeclarations":[{"name":"run_shell_command"}]}],"contents":[{"role":"user","parts":[{"text":"do it"}]}]}`,
			[]string{"data: ", `"functionCall"`, `"name":"run_shell_command"`}},
		{"gemini", "/v1beta/models/m:generateContent", `{"tools":[{"functionDeclarations":[{"name":"run_shell_command"}]}],"contents":[{"role":"user","parts":[{"text":"do it"}]}]}`,
			[]string{`"functionCall"`}},
	}
	for _, tt := range tests {
		m := StartModel(t, Turn{Has: []string{"do it"}, Say: "I do.", Calls: []Call{Shell("ls")}})
		status, text := ask(t, m, tt.path, tt.body)
		for _, want := range append(tt.want, "I do.") {
			if status != http.StatusOK || !strings.Contains(text, want) {
				t.Errorf("%s %s: %d, no %q in\n%s", tt.path, tt.body, status, want, text)
			}
		}
		asked := m.Requests()
		if len(asked) != 1 || asked[0].API != tt.api || asked[0].Model != "m" || !strings.Contains(asked[0].Last, "do it") {
			t.Errorf("%s: recorded %+v", tt.path, asked)
		}
	}
}

func TestScript(t *testing.T) {
	seen := make(chan struct{})
	m := StartModel(t, Turn{Has: []string{"second"}, Say: "TWO"}, Turn{Lacks: []string{"second"}, Say: "ONE", Seen: seen},
		Turn{Has: []string{"wrong"}, Status: 529, Say: "overloaded", Always: true})
	say := func(text string) (int, string) {
		return ask(t, m, "/v1/messages", `{"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":"first"},{"role":"assistant","content":"yes"},{"role":"user","content":"`+text+`"}]}`)
	}
	if _, text := say("hello"); !strings.Contains(text, "ONE") {
		t.Error(text)
	}
	<-seen
	if _, text := say("second"); !strings.Contains(text, "TWO") {
		t.Error(text)
	}
	for range 2 {
		if status, text := say("wrong"); status != 529 || !strings.Contains(text, "overloaded_error") {
			t.Errorf("%d: %s", status, text)
		}
	}
	if _, text := say("anything"); !strings.Contains(text, "nothing left") {
		t.Errorf("no turn is left: %s", text)
	}
	if last := m.Requests()[4].Last; strings.TrimSpace(last) != "anything" {
		t.Errorf("new was %q", last)
	}
	m.Play(Turn{Say: "ANEW"})
	if _, text := say("again"); !strings.Contains(text, "ANEW") {
		t.Error(text)
	}
	// A client's own questions, which offer no tools, use nothing up.
	if _, text := ask(t, m, "/v1/messages", `{"messages":[{"role":"user","content":"a title, please"}]}`); len(m.Requests()) != 6 {
		t.Errorf("%d requests, %s", len(m.Requests()), text)
	}
	for path, want := range map[string]int{"/v1/messages/count_tokens": 200, "/v1beta/models/m:countTokens": 200, "/elsewhere": 404} {
		if status, text := ask(t, m, path, `{}`); status != want {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	m.Play(Turn{Status: 429, RetryAfter: "7"})
	resp, err := http.Post(m.URL+"/v1/messages", "application/json", strings.NewReader(`{"tools":[{"name":"Bash"}],"messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.Header.Get("Retry-After"); got != "7" {
		t.Errorf("to try again after %q", got)
	}
	_ = resp.Body.Close()
	if status, _ := ask(t, m, "/v1/messages", `{`); status != http.StatusBadRequest {
		t.Errorf("nonsense: %d", status)
	}
}

// TestBrokenOff: half of an answer is sent, and then the end of the connection, or nothing.
func TestBrokenOff(t *testing.T) {
	m := StartModel(t, Turn{API: "chat", Say: "NEVER"}, Turn{API: "messages", Status: Hang, Say: "HALF", Always: true})
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL+"/v1/messages", strings.NewReader(`{"stream":true,"tools":[{"name":"Bash"}],"messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	begun := make([]byte, len("event: message_start"))
	if _, err := io.ReadFull(resp.Body, begun); err != nil || string(begun) != "event: message_start" {
		t.Errorf("it begins with %q, %v", begun, err)
	}
	cancel()
	if rest, err := io.ReadAll(resp.Body); err == nil || strings.Contains(string(rest), "message_stop") {
		t.Errorf("a whole answer ends with %s", rest)
	}
}

// TestOutage: an answer can break off, and connections can be refused for a while.
func TestOutage(t *testing.T) {
	m := StartModel(t, Turn{Status: Cut, Always: true})
	try := func() error {
		resp, err := http.Post(m.URL+"/v1/messages", "application/json", strings.NewReader(`{"stream":true,"tools":[{"name":"Bash"}],"messages":[]}`))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
		return err
	}
	if err := try(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a whole answer: %v", err)
	}
	m.Disconnect()
	if err := try(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connected: %v", err)
	}
	m.Play(Turn{Say: "BACK"})
	m.Reconnect(t)
	if err := try(); err != nil {
		t.Error(err)
	}
}
