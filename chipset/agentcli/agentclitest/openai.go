package agentclitest

import (
	"encoding/json"
	"net/http"
)

func failOpenAI(turn Turn) object {
	return object{"error": object{"type": "server_error", "code": nil, "message": turn.Say}}
}

// encode writes the arguments of a call as the text that these interfaces want.
func encode(input map[string]any) string {
	data, err := json.Marshal(input)
	if err != nil {
		return "{}" // of what a test wrote down, which always encodes
	}
	return string(data)
}

func readResponses(_ *http.Request, body object, r *Request) {
	r.API = "responses"
	r.Model, _ = body["model"].(string)
	r.Tools = names(body["tools"])
	if items, ok := body["input"].([]any); ok {
		for _, item := range items { // where newer models are told of their tools
			if item, ok := item.(object); ok && item["type"] == "additional_tools" {
				r.Tools = append(r.Tools, names(item["tools"])...)
			}
		}
	}
	if text, ok := body["instructions"].(string); ok {
		r.Text = text + "\n"
	}
	conversation(body["input"], func(item object) bool {
		return item["role"] == "assistant" || item["type"] == "function_call" || item["type"] == "custom_tool_call" || item["type"] == "reasoning"
	}, r)
}

func answerResponses(w http.ResponseWriter, streamed bool, a answer) {
	var output []object
	if a.Say != "" || len(a.Calls) == 0 {
		output = append(output, object{"type": "message", "id": a.id("msg", 0), "role": "assistant", "status": "completed",
			"content": []object{{"type": "output_text", "text": a.Say, "annotations": []any{}}}})
	}
	for i, call := range a.Calls {
		if call.Raw != "" {
			output = append(output, object{"type": "custom_tool_call", "id": a.id("ctc", i), "call_id": a.id("call", i), "name": call.Tool,
				"input": call.Raw, "status": "completed"})
			continue
		}
		output = append(output, object{"type": "function_call", "id": a.id("fc", i), "call_id": a.id("call", i), "name": call.Tool,
			"arguments": encode(call.Input), "status": "completed"})
	}
	response := object{"id": a.id("resp", 0), "object": "response", "status": "completed", "model": a.model, "output": output,
		"usage": object{"input_tokens": a.tokensIn, "input_tokens_details": object{"cached_tokens": 0}, "output_tokens": tokensOut,
			"output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": a.tokensIn + tokensOut}}
	if !streamed {
		writeJSON(w, http.StatusOK, response)
		return
	}
	s := newStream(w)
	s.send("response.created", object{"type": "response.created", "response": object{"id": response["id"], "object": "response", "status": "in_progress", "output": []any{}}})
	for i, item := range output {
		s.send("response.output_item.added", object{"type": "response.output_item.added", "output_index": i, "item": item})
		s.send("response.output_item.done", object{"type": "response.output_item.done", "output_index": i, "item": item})
	}
	s.send("response.completed", object{"type": "response.completed", "response": response})
}

func readChat(_ *http.Request, body object, r *Request) {
	r.API = "chat"
	r.Model, _ = body["model"].(string)
	r.Tools = names(body["tools"])
	conversation(body["messages"], byRole("assistant"), r)
}

func answerChat(w http.ResponseWriter, streamed bool, a answer) {
	reason := "stop"
	var calls []object
	for i, call := range a.Calls {
		reason = "tool_calls"
		calls = append(calls, object{"index": i, "id": a.id("call", i), "type": "function",
			"function": object{"name": call.Tool, "arguments": encode(call.Input)}})
	}
	message := object{"role": "assistant", "content": a.Say}
	if len(calls) > 0 {
		message["tool_calls"] = calls
	}
	usage := object{"prompt_tokens": a.tokensIn, "completion_tokens": tokensOut, "total_tokens": a.tokensIn + tokensOut}
	if !streamed {
		writeJSON(w, http.StatusOK, object{"id": a.id("chat", 0), "object": "chat.completion", "model": a.model, "usage": usage,
			"choices": []object{{"index": 0, "message": message, "finish_reason": reason}}})
		return
	}
	s := newStream(w)
	chunk := func(delta object, finish any) object {
		return object{"id": a.id("chat", 0), "object": "chat.completion.chunk", "created": a.n, "model": a.model,
			"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}}}
	}
	s.send("", chunk(message, nil))
	s.send("", chunk(object{}, reason))
	s.send("", object{"id": a.id("chat", 0), "object": "chat.completion.chunk", "created": a.n, "model": a.model, "choices": []any{}, "usage": usage})
	s.write("data: [DONE]\n\n")
}
