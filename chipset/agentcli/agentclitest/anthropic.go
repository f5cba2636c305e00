package agentclitest

import (
	"encoding/json"
	"net/http"
	"strings"
)

func readMessages(_ *http.Request, body object, r *Request) {
	r.API = "messages"
	r.Model, _ = body["model"].(string)
	r.Tools = names(body["tools"])
	var system strings.Builder
	texts(body["system"], &system)
	r.Text = system.String()
	conversation(body["messages"], byRole("assistant"), r)
}

func failMessages(turn Turn) object {
	kind := "api_error"
	switch turn.Status {
	case http.StatusBadRequest:
		kind = "invalid_request_error"
	case http.StatusUnauthorized:
		kind = "authentication_error"
	case http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case 529:
		kind = "overloaded_error"
	}
	return object{"type": "error", "error": object{"type": kind, "message": turn.Say}}
}

func answerMessages(w http.ResponseWriter, streamed bool, a answer) {
	var content []object
	if a.Say != "" || len(a.Calls) == 0 {
		content = append(content, object{"type": "text", "text": a.Say})
	}
	for i, call := range a.Calls {
		content = append(content, object{"type": "tool_use", "id": a.id("toolu", i), "name": call.Tool, "input": call.Input})
	}
	reason := "end_turn"
	if len(a.Calls) > 0 {
		reason = "tool_use"
	}
	message := object{"id": a.id("msg", 0), "type": "message", "role": "assistant", "model": a.model, "content": content,
		"stop_reason": reason, "stop_sequence": nil, "usage": object{"input_tokens": a.tokensIn, "output_tokens": tokensOut}}
	if !streamed {
		writeJSON(w, http.StatusOK, message)
		return
	}
	s := newStream(w)
	message["content"], message["stop_reason"] = []object{}, nil
	s.send("message_start", object{"type": "message_start", "message": message})
	for i, block := range content {
		sendBlock(s, i, block)
	}
	s.send("message_delta", object{"type": "message_delta", "delta": object{"stop_reason": reason, "stop_sequence": nil},
		"usage": object{"output_tokens": tokensOut}})
	s.send("message_stop", object{"type": "message_stop"})
}

func sendBlock(s stream, i int, block object) {
	start, delta := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": block["text"]}
	if block["type"] == "tool_use" {
		input, err := json.Marshal(block["input"])
		if err != nil {
			return // of what a test wrote down, which always encodes
		}
		start = object{"type": "tool_use", "id": block["id"], "name": block["name"], "input": object{}}
		delta = object{"type": "input_json_delta", "partial_json": string(input)}
	}
	s.send("content_block_start", object{"type": "content_block_start", "index": i, "content_block": start})
	s.send("content_block_delta", object{"type": "content_block_delta", "index": i, "delta": delta})
	s.send("content_block_stop", object{"type": "content_block_stop", "index": i})
}
