package agentclitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

type object = map[string]any

// bytesPerToken is a rough exchange rate; nothing depends on it.
const bytesPerToken = 4

// tokensOut is what every answer claims to have cost.
const tokensOut = 7

// answer is what a dialect puts into its own form.
type answer struct {
	Turn
	// n numbers the answers, for IDs.
	n        int
	model    string
	tokensIn int
}

func (a *answer) id(kind string, i int) string { return fmt.Sprintf("%s_%04d_%d", kind, a.n, i) }

// dialect is one interface of a model.
type dialect struct {
	read    func(*http.Request, object, *Request)
	failure func(Turn) object
	answer  func(http.ResponseWriter, bool, answer)
}

// dialectOf tells an interface by its path, nil for none.
func dialectOf(path string) *dialect {
	switch {
	case strings.HasSuffix(path, "/messages"):
		return &dialect{readMessages, failMessages, answerMessages}
	case strings.HasSuffix(path, "/responses"):
		return &dialect{readResponses, failOpenAI, answerResponses}
	case strings.HasSuffix(path, "/chat/completions"):
		return &dialect{readChat, failOpenAI, answerChat}
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":streamGenerateContent"):
		return &dialect{readGemini, failGemini, answerGemini}
	}
	return nil
}

func streams(r *http.Request, body object) bool {
	return body["stream"] == true || strings.HasSuffix(r.URL.Path, ":streamGenerateContent")
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone wants no answer
}

// stream writes server-sent events.
type stream struct{ w http.ResponseWriter }

func newStream(w http.ResponseWriter) stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	return stream{w}
}

// send writes one event; name is "" for those without.
func (s stream) send(name string, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		return // of maps and strings, which always encode
	}
	if name != "" {
		s.write("event: " + name + "\n")
	}
	s.write("data: " + string(data) + "\n\n")
}

// write passes text on at once. A client that has gone wants no answer.
func (s stream) write(text string) {
	_, _ = io.WriteString(s.w, text)
	if flusher, ok := s.w.(http.Flusher); ok {
		flusher.Flush()
	}
}

// texts collects every string below v that stands under a key for text.
func texts(v any, into *strings.Builder) {
	switch v := v.(type) {
	case string:
		into.WriteString(v + "\n")
	case []any:
		for _, item := range v {
			texts(item, into)
		}
	case object:
		for _, key := range []string{"text", "content", "output", "parts", "response", "result", "error", "functionResponse", "arguments", "input", "args", "functionCall"} {
			if inner, ok := v[key]; ok {
				texts(inner, into)
			}
		}
		for _, key := range []string{"command", "cmd", "llmContent"} {
			if inner, ok := v[key]; ok {
				texts(inner, into)
			}
		}
	}
}

// conversation fills in Text and Last from a list of messages.
func conversation(messages any, spoke func(object) bool, r *Request) {
	var all, last strings.Builder
	list, _ := messages.([]any)
	if text, ok := messages.(string); ok {
		list = []any{object{"content": text}}
	}
	for _, item := range list {
		message, _ := item.(object)
		if spoke(message) {
			last.Reset()
		} else {
			texts(message, &last)
		}
		texts(message, &all)
	}
	r.Text += all.String()
	r.Last = last.String()
}

func byRole(role string) func(object) bool {
	return func(message object) bool { return message["role"] == role }
}

// names collects the names of the tools offered.
func names(tools any) []string {
	list, _ := tools.([]any)
	var found []string
	for _, item := range list {
		tool, _ := item.(object)
		if inner, ok := tool["function"].(object); ok {
			tool = inner
		}
		group := false
		for _, key := range []string{"functionDeclarations", "tools"} {
			if inner, ok := tool[key]; ok {
				group, found = true, append(found, names(inner)...)
			}
		}
		if group {
			continue
		}
		if name, ok := tool["name"].(string); ok {
			found = append(found, name)
		}
	}
	return found
}
