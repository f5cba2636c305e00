package agentcli

import (
	"encoding/json"
	"slices"
	"strings"
)

// opencode is the client of that name.
type opencode struct{}

func (opencode) Preset() Preset {
	return Preset{
		Name:    "opencode",
		Command: []string{"opencode", "run", "--format", "json"},
		Prompt:  PromptStdin,
		Timeout: DefaultWorkerTimeout,
		// Between its own configuration and everything it has no flag: edit is a
		// configuration that Equip hands over.
		Permissions: map[string][]string{
			PermissionAsk:  nil,
			PermissionEdit: nil,
			PermissionFull: {"--auto"},
		},
	}
}

func (opencode) About() About {
	return About{Title: "opencode", Tried: "1.18.33", Stream: true, Cost: true, Resume: true, MCP: true,
		ExitCode: "0 after a refused tool; permissions that its configuration does not set are granted"}
}

func (opencode) Equip(argv []string, kit Kit) Equipped {
	argv = slices.Clone(argv)
	if kit.Resume != "" {
		argv = append(argv, "--session", kit.Resume)
	}
	config := map[string]any{}
	if kit.Plan {
		// It has no hooks that could ask; once the plan is approved and it is continued, it may more.
		config["permission"] = map[string]any{"edit": "deny", "external_directory": "deny", "bash": map[string]string{"*": "deny", "chipset *": "allow"}}
	} else if kit.Permission == PermissionEdit {
		// The last rule that matches counts, and they are sorted when written.
		bash := map[string]string{"*": "deny", "chipset *": "allow", "git add *": "allow", "git commit *": "allow", "git status*": "allow"}
		for _, line := range commandsGranted(kit.Granted) {
			if !strings.ContainsAny(line, "*?") && line > "*" { // as a pattern of its it would say something else
				bash[line] = "allow"
			}
		}
		config["permission"] = map[string]any{"edit": "allow", "webfetch": "deny", "external_directory": "deny", "bash": bash}
	}
	if kit.MCP {
		config["mcp"] = map[string]any{serverName: map[string]any{"type": "local", "enabled": true, "environment": identityOf(kit),
			"command": append([]string{kit.Chipset}, mcpArgs()...)}}
	}
	e := Equipped{Argv: argv}
	if text, err := json.Marshal(config); err == nil && len(config) > 0 {
		e.Env = []string{"OPENCODE_CONFIG_CONTENT=" + string(text)}
	}
	return e
}

func (opencode) Reader() Reader { return &opencodeReader{} }

type opencodeReader struct {
	transcript
	// finish is how the last step ended; failure is the line of an error.
	finish  string
	failure *opencodeLine
	refused []string
}

type opencodeLine struct {
	Type    string `json:"type"`
	Session string `json:"sessionID"`
	Part    struct {
		Text   string  `json:"text"`
		Tool   string  `json:"tool"`
		Reason string  `json:"reason"`
		Cost   float64 `json:"cost"`
		Tokens struct {
			In    int64 `json:"input"`
			Out   int64 `json:"output"`
			Cache struct {
				Read  int64 `json:"read"`
				Write int64 `json:"write"`
			} `json:"cache"`
		} `json:"tokens"`
		State struct {
			Status string `json:"status"`
			Error  string `json:"error"`
		} `json:"state"`
	} `json:"part"`
	Error struct {
		Name string `json:"name"`
		Data struct {
			Message string `json:"message"`
			Status  int    `json:"statusCode"`
		} `json:"data"`
	} `json:"error"`
}

func (r *opencodeReader) Line(line []byte) {
	var l opencodeLine
	if !r.decode(line, &l) {
		return
	}
	r.named(l.Session)
	switch l.Type {
	case "step_start":
		r.figures.Turns++
		r.finish, r.failure = "", nil
	case "text":
		r.say(l.Part.Text)
	case "tool_use":
		r.tool(l.Part.Tool)
		if l.Part.State.Status == "error" && refusal(l.Part.State.Error) {
			r.refused = append(r.refused, clip(l.Part.Tool))
		}
	case "step_finish":
		r.finish = l.Part.Reason
		r.figures.TokensIn += l.Part.Tokens.In + l.Part.Tokens.Cache.Read + l.Part.Tokens.Cache.Write
		r.figures.TokensOut += l.Part.Tokens.Out
		r.figures.CostUSD += l.Part.Cost
	case "error":
		r.failure = &l
	}
}

// refusal tells a tool that was not permitted from one that failed. The client
// says it in words alone.
func refusal(message string) bool {
	return strings.Contains(message, "rejected permission") || strings.Contains(message, "rule which prevents you")
}

func (r *opencodeReader) Resumed() { r.finish, r.failure, r.refused, r.noise = "", nil, nil, nil }

func (r *opencodeReader) End(code int) End {
	end := r.judge(code)
	end.Said = r.lastWords()
	return end
}

func (r *opencodeReader) judge(code int) End {
	switch {
	case r.failure != nil && r.failure.Error.Name == "APIError":
		return apiError(r.failure.Error.Data.Status, r.failure.Error.Data.Message)
	case r.failure != nil:
		return End{Verdict: Unfinished, Reason: "it ended with an error: " + clip(r.failure.Error.Name+" "+r.failure.Error.Data.Message)}
	case code != 0 || r.session == "":
		return End{}
	case len(r.refused) > 0:
		return refused(r.refused)
	case r.finish != "stop":
		return End{Verdict: Unfinished, Reason: strings.TrimSpace("it ended in the middle of its turn " + clip(r.finish))}
	}
	return End{Verdict: Finished}
}
