package agentcli

import (
	"fmt"
	"slices"
	"strings"
)

// gemini is Google's Gemini CLI.
type gemini struct{}

func (gemini) Preset() Preset {
	return Preset{
		Name:    "gemini",
		Command: []string{"gemini", "--output-format", "stream-json", "--skip-trust"},
		Prompt:  PromptStdin,
		Timeout: DefaultWorkerTimeout,
		Permissions: map[string][]string{
			PermissionAsk:  {"--approval-mode", "default"},
			PermissionEdit: {"--approval-mode", "auto_edit"},
			PermissionFull: {"--approval-mode", "yolo"},
		},
	}
}

func (gemini) About() About {
	return About{Title: "Gemini CLI", Tried: "0.61.0", Stream: true, Resume: true, Hooks: true, MCP: true,
		ExitCode: "the HTTP status of an API error modulo 256, which looks like death by a signal"}
}

// Equip hands settings over as the system's defaults, the lowest of its layers:
// what the person has set stays in force.
func (gemini) Equip(argv []string, kit Kit) Equipped {
	argv = slices.Clone(argv)
	switch {
	case kit.Resume != "":
		argv = append(argv, "--resume", kit.Resume)
	case kit.Session != "":
		argv = append(argv, "--session-id", kit.Session)
	}
	e := Equipped{Argv: argv}
	parts := map[string]any{}
	if kit.Hooks {
		events := []onHook{{"SessionStart", ""}, {"BeforeAgent", ""}, {"AfterTool", ""}, {"AfterAgent", ""}, {"SessionEnd", ""}}
		if kit.Plan {
			events = append(events, onHook{"BeforeTool", ""})
		}
		parts["hooks"] = hookTable(kit, "gemini", 1000, events)
		e.Env = []string{hooksHandedOver}
	}
	if kit.MCP {
		parts["mcpServers"] = mcpServers(kit, map[string]any{"trust": true})
	}
	if len(parts) > 0 {
		const name = "gemini.json"
		e.Files = map[string]string{name: settings(parts)}
		e.Env = append(e.Env, "GEMINI_CLI_SYSTEM_DEFAULTS_PATH="+kit.Files+name)
	}
	return e
}

func (gemini) Reader() Reader { return &geminiReader{} }

type geminiReader struct {
	transcript
	result *geminiLine
	// speaking is true while the parts of one answer come.
	speaking bool
	// toldToGoOn counts how often in a row hooks kept the agent from ending.
	toldToGoOn          int
	beforeIn, beforeOut int64
}

type geminiLine struct {
	Type    string `json:"type"`
	Session string `json:"session_id"`
	Role    string `json:"role"`
	Content string `json:"content"`
	Tool    string `json:"tool_name"`
	Status  string `json:"status"`
	// Message is that of a warning.
	Message string `json:"message"`
	Error   struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	Stats struct {
		In  int64 `json:"input_tokens"`
		Out int64 `json:"output_tokens"`
	} `json:"stats"`
}

func (r *geminiReader) Line(line []byte) {
	var l geminiLine
	if !r.decode(line, &l) {
		return
	}
	answer := l.Type == "tool_use" || l.Type == "message" && l.Role == "assistant"
	if answer && !r.speaking {
		r.figures.Turns++
	}
	r.speaking = answer
	switch l.Type {
	case "init":
		r.named(l.Session)
	case "message":
		if answer {
			r.say(l.Content)
		}
	case "error":
		if strings.HasPrefix(l.Message, "Agent execution blocked") {
			r.toldToGoOn++
		}
	case "tool_use":
		r.toldToGoOn = 0
		r.tool(l.Tool)
	case "result":
		r.result = &l
		r.figures.TokensIn, r.figures.TokensOut = r.beforeIn+l.Stats.In, r.beforeOut+l.Stats.Out
	}
}

func (r *geminiReader) Resumed() {
	r.result, r.noise, r.speaking, r.toldToGoOn = nil, nil, false, 0
	r.beforeIn, r.beforeOut = r.figures.TokensIn, r.figures.TokensOut
}

// Exit codes of its own, below those that are an HTTP status.
const (
	geminiTurnLimit   = 53
	geminiFirstStatus = 400 - 256
	geminiLastStatus  = 511 - 256
)

func (r *geminiReader) End(code int) End {
	end := r.judge(code)
	end.Said = r.lastWords()
	return end
}

func (r *geminiReader) judge(code int) End {
	message := ""
	if r.result != nil {
		message = r.result.Error.Message
	}
	failed := r.result != nil && r.result.Status != "success"
	switch {
	case code == geminiTurnLimit:
		return End{Verdict: Unfinished, Reason: "it reached its limit of turns"}
	case failed && code >= geminiFirstStatus && code <= geminiLastStatus:
		return apiError(code+256, message)
	case failed:
		return End{Verdict: Unfinished, Reason: fmt.Sprintf("it ended with an error (%s): %s", clip(r.result.Error.Type), clip(message))}
	case code != 0:
		return End{}
	case r.result == nil && r.session != "":
		return End{Verdict: Unfinished, Reason: "it ended without a result"}
	case r.result == nil:
		return End{}
	case r.toldToGoOn >= toldToGoOn:
		return End{Verdict: Unfinished, Reason: "it was told again and again to go on, and ended all the same"}
	}
	return End{Verdict: Finished}
}
