package agentclitest

import (
	"net/http"
	"strings"
)

func readGemini(req *http.Request, body object, r *Request) {
	r.API = "gemini"
	_, name, _ := strings.Cut(req.URL.Path, "/models/")
	r.Model, _, _ = strings.Cut(name, ":")
	r.Tools = names(body["tools"])
	var system strings.Builder
	texts(body["systemInstruction"], &system)
	r.Text = system.String()
	conversation(body["contents"], byRole("model"), r)
}

func failGemini(turn Turn) object {
	return object{"error": object{"code": turn.Status, "message": turn.Say, "status": http.StatusText(turn.Status)}}
}

func answerGemini(w http.ResponseWriter, streamed bool, a answer) {
	var parts []object
	if a.Say != "" || len(a.Calls) == 0 {
		parts = append(parts, object{"text": a.Say})
	}
	for i, call := range a.Calls {
		parts = append(parts, object{"functionCall": object{"id": a.id("call", i), "name": call.Tool, "args": call.Input}})
	}
	usage := object{"promptTokenCount": a.tokensIn, "candidatesTokenCount": tokensOut, "totalTokenCount": a.tokensIn + tokensOut}
	body := func(parts []object, finish any) object {
		return object{"candidates": []object{{"index": 0, "finishReason": finish, "content": object{"role": "model", "parts": parts}}},
			"usageMetadata": usage, "modelVersion": a.model, "responseId": a.id("resp", 0)}
	}
	if !streamed {
		writeJSON(w, http.StatusOK, body(parts, "STOP"))
		return
	}
	s := newStream(w)
	s.send("", body(parts[:1], nil))
	s.send("", body(parts[1:], "STOP"))
}
