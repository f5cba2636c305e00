package agentcli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// claude is Claude Code.
type claude struct{}

func (claude) Preset() Preset {
	return Preset{
		Name:    "claude",
		Command: []string{"claude", "-p", "--output-format", "stream-json", "--verbose"},
		Prompt:  PromptStdin,
		Timeout: DefaultWorkerTimeout,
		Permissions: map[string][]string{
			PermissionAsk:  nil,
			PermissionEdit: {"--permission-mode", "acceptEdits"},
			PermissionFull: {"--permission-mode", "bypassPermissions"},
		},
	}
}

func (claude) About() About {
	return About{Title: "Claude Code", Tried: "2.1.329", Stream: true, Cost: true, Resume: true, Hooks: true, MCP: true,
		ExitCode: "1 with subtype success for an API error; 0 after a refused tool, after SIGINT, and when it was told to go on too often"}
}

// Equip lets the agent use the rig's own commands without being asked: without
// them it could neither report nor ask for a person.
func (claude) Equip(argv []string, kit Kit) Equipped {
	argv = slices.Clone(argv)
	switch {
	case kit.Resume != "":
		argv = append(argv, "--resume", kit.Resume)
	case kit.Session != "":
		argv = append(argv, "--session-id", kit.Session)
	}
	allowed := []string{"Bash(chipset:*)"}
	if kit.Permission == PermissionEdit {
		allowed = append(allowed, "Bash(git add:*)", "Bash(git commit:*)", "Bash(git status:*)")
	}
	e := Equipped{Files: map[string]string{}}
	if kit.Hooks && !has(argv, "--settings") {
		const name = "settings.json"
		e.Files[name] = settings(map[string]any{"hooks": hookTable(kit, "claude", 1, claudeHooks(kit.Plan))})
		argv, e.Env = append(argv, "--settings="+kit.Files+name), []string{hooksHandedOver}
	}
	if kit.MCP {
		const name = "mcp.json"
		e.Files[name] = settings(map[string]any{"mcpServers": mcpServers(kit, nil)})
		argv = append(argv, "--mcp-config="+kit.Files+name)
		allowed = append(allowed, "mcp__"+serverName)
	}
	e.Argv = append(argv, "--allowedTools="+strings.Join(allowed, ","))
	return e
}

func claudeHooks(plan bool) []onHook {
	before := "EnterPlanMode|ExitPlanMode|Task|Agent"
	if plan {
		before = "" // it is asked about each tool, because any may change something
	}
	return []onHook{{"SessionStart", ""}, {"UserPromptSubmit", ""}, {"PreToolUse", before}, {"PermissionRequest", ""},
		{"PostToolUse", ""}, {"PostToolUseFailure", ""}, {"Stop", ""}, {"SubagentStart", ""}, {"SubagentStop", ""}, {"TeammateIdle", ""}, {"TaskCompleted", ""}, {"SessionEnd", ""}}
}

// has tells whether an option stands on a command line already, so that what its
// author decided is not overruled.
func has(argv []string, option string) bool {
	return slices.ContainsFunc(argv, func(arg string) bool { return arg == option || strings.HasPrefix(arg, option+"=") })
}

// mcpServers is how most clients are told of MCP servers; more are keys of the
// client's own.
func mcpServers(kit Kit, more map[string]any) map[string]any {
	server := map[string]any{"command": kit.Chipset, "args": mcpArgs(), "env": identityOf(kit)}
	for key, value := range more {
		server[key] = value
	}
	return map[string]any{serverName: server}
}

func identityOf(kit Kit) map[string]string {
	env := map[string]string{}
	for _, entry := range kit.Identity {
		name := variable(entry)
		env[name] = strings.TrimPrefix(entry, name+"=")
	}
	return env
}

func (claude) Reader() Reader { return &claudeReader{} }

type claudeReader struct {
	transcript
	// message is the last answer that was counted: it comes in several lines.
	message string
	result  *claudeLine
	// capped is true once the client overrode its hooks; toldToGoOn counts how
	// often in a row they kept the agent from ending.
	capped     bool
	toldToGoOn int
}

// claudeLine is the part that matters of any line of stream-json.
type claudeLine struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Key     string `json:"key"`
	Session string `json:"session_id"`
	// Parent is set inside a subagent.
	Parent  *string `json:"parent_tool_use_id"`
	Message struct {
		ID      string          `json:"id"`
		Content json.RawMessage `json:"content"`
		Usage   claudeUsage     `json:"usage"`
	} `json:"message"`

	IsError  bool     `json:"is_error"`
	Status   int      `json:"api_error_status"`
	Terminal string   `json:"terminal_reason"`
	Result   string   `json:"result"`
	Errors   []string `json:"errors"`
	Cost     float64  `json:"total_cost_usd"`
	Denials  []struct {
		Tool string `json:"tool_name"`
	} `json:"permission_denials"`
	Models map[string]struct {
		In      int64 `json:"inputTokens"`
		Out     int64 `json:"outputTokens"`
		Read    int64 `json:"cacheReadInputTokens"`
		Created int64 `json:"cacheCreationInputTokens"`
	} `json:"modelUsage"`
}

type claudeUsage struct {
	In      int64 `json:"input_tokens"`
	Out     int64 `json:"output_tokens"`
	Read    int64 `json:"cache_read_input_tokens"`
	Created int64 `json:"cache_creation_input_tokens"`
}

func (r *claudeReader) Line(line []byte) {
	var l claudeLine
	if !r.decode(line, &l) {
		return
	}
	switch {
	case l.Type == "system" && l.Subtype == "init":
		r.named(l.Session)
	case l.Type == "system" && l.Key == "stop-hook-block-cap":
		r.capped = true
	case l.Type == "user" && strings.HasPrefix(textOf(l.Message.Content), "Stop hook feedback:"):
		r.toldToGoOn++
	case l.Type == "assistant":
		r.assistant(&l)
	case l.Type == "result":
		r.end(&l)
	}
}

func (r *claudeReader) assistant(l *claudeLine) {
	if l.Message.ID != r.message {
		r.message = l.Message.ID
		r.figures.TokensIn += l.Message.Usage.In + l.Message.Usage.Read + l.Message.Usage.Created
		r.figures.TokensOut += l.Message.Usage.Out
		if l.Parent == nil {
			r.figures.Turns++
		}
	}
	var blocks []struct{ Type, Name, Text string }
	if json.Unmarshal(l.Message.Content, &blocks) != nil {
		return
	}
	for _, block := range blocks {
		switch block.Type {
		case "tool_use":
			r.toldToGoOn = 0
			r.tool(block.Name)
		case "text":
			r.say(block.Text)
		}
	}
}

// textOf is the text that a message begins with, "" for anything else.
func textOf(content json.RawMessage) string {
	var blocks []struct{ Type, Text string }
	if json.Unmarshal(content, &blocks) != nil || len(blocks) == 0 || blocks[0].Type != "text" {
		return ""
	}
	return blocks[0].Text
}

// end takes the totals, which are those of the whole session.
func (r *claudeReader) end(l *claudeLine) {
	r.result = l
	r.say(l.Result)
	var in, out int64
	for _, m := range l.Models {
		in += m.In + m.Read + m.Created
		out += m.Out
	}
	if in > 0 {
		r.figures.TokensIn, r.figures.TokensOut = in, out
	}
	r.figures.CostUSD = max(r.figures.CostUSD, l.Cost)
}

func (r *claudeReader) Resumed() { r.result, r.capped, r.toldToGoOn, r.noise = nil, false, 0, nil }

func (r *claudeReader) End(code int) End {
	end := r.judge(code)
	end.Said = r.lastWords()
	return end
}

func (r *claudeReader) judge(code int) End {
	l := r.result
	switch {
	case l == nil && code == 0 && r.session != "":
		return End{Verdict: Unfinished, Reason: "it ended without a result, as after an interrupt"}
	case l == nil:
		return End{}
	case l.IsError && (l.Status != 0 || l.Terminal == "api_error"):
		return apiError(l.Status, l.Result)
	case l.IsError && l.Subtype == "error_max_turns":
		return End{Verdict: Unfinished, Reason: "it reached its limit of turns"}
	case l.IsError:
		return End{Verdict: Unfinished, Reason: strings.TrimSpace("it ended with an error: " + clip(l.Subtype+" "+l.Result+strings.Join(l.Errors, "; ")))}
	case len(l.Denials) > 0:
		var tools []string
		for _, d := range l.Denials {
			tools = append(tools, clip(d.Tool))
		}
		return refused(tools)
	case r.capped || r.toldToGoOn >= toldToGoOn:
		return End{Verdict: Unfinished, Reason: "it was told again and again to go on, and ended all the same"}
	case code != 0:
		return End{}
	}
	return End{Verdict: Finished}
}

// refused names the tools that were asked for in vain.
func refused(tools []string) End {
	slices.Sort(tools)
	return End{Verdict: Refused, Reason: fmt.Sprintf("it was refused what it asked for: %s", strings.Join(slices.Compact(tools), ", "))}
}
