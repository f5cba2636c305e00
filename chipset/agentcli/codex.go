package agentcli

import (
	"fmt"
	"slices"
	"strings"
)

// codex is OpenAI's Codex CLI.
type codex struct{}

func (codex) Preset() Preset {
	return Preset{
		Name:    "codex",
		Command: []string{"codex", "exec", "--json"},
		Prompt:  PromptStdin,
		Timeout: DefaultWorkerTimeout,
		Permissions: map[string][]string{
			PermissionAsk:  {"--sandbox", "read-only"},
			PermissionEdit: {"--sandbox", "workspace-write"},
			PermissionFull: {"--dangerously-bypass-approvals-and-sandbox"},
		},
	}
}

func (codex) About() About {
	return About{Title: "Codex", Tried: "0.169.0", Stream: true, Resume: true, Hooks: true, MCP: true,
		ExitCode: "0 although its sandbox kept it from committing: with edit, git's own files are read-only and the rig commits for it"}
}

// Equip hands over the rig's tools. Codex runs their server outside its sandbox,
// so an agent that may write nowhere but in its worktree can still report.
func (codex) Equip(argv []string, kit Kit) Equipped {
	// A login shell would put the system's own PATH in place of the worker's, and
	// the rig's commands would not be found.
	argv = append(slices.Clone(argv), "-c", "allow_login_shell=false")
	var env []string
	if kit.Hooks {
		env = []string{hooksHandedOver}
		// Hooks that nobody reviewed do not run, and nobody is there to do it. In a
		// linked worktree Codex reads no hooks of the repository's own.
		argv = append(argv, "--dangerously-bypass-hook-trust")
		events := []string{"SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"}
		if kit.Plan {
			events = append(events, "PreToolUse")
		}
		for _, event := range events {
			argv = append(argv, "-c", fmt.Sprintf("hooks.%s=[{hooks=[{type=\"command\",command=%s,timeout=%d}]}]", event,
				tomlText(hookCommand(kit, "codex", event)), hookTimeout))
		}
	}
	if kit.MCP {
		server := "mcp_servers." + serverName
		var args, identity []string
		for _, arg := range mcpArgs() {
			args = append(args, tomlText(arg))
		}
		for _, entry := range kit.Identity {
			name := variable(entry)
			identity = append(identity, name+"="+tomlText(strings.TrimPrefix(entry, name+"=")))
		}
		argv = append(argv, "-c", server+".command="+tomlText(kit.Chipset), "-c", server+".args=["+strings.Join(args, ",")+"]",
			"-c", server+".env={"+strings.Join(identity, ",")+"}", "-c", server+`.default_tools_approval_mode="approve"`)
	}
	if kit.Resume != "" {
		argv = append(argv, "resume", kit.Resume, "-")
	}
	return Equipped{Argv: argv, Env: env}
}

// tomlText writes a basic string of TOML.
func tomlText(s string) string {
	var text strings.Builder
	text.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			text.WriteRune('\\')
			text.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&text, "\\u%04X", r)
		default:
			text.WriteRune(r)
		}
	}
	text.WriteByte('"')
	return text.String()
}

func (codex) Reader() Reader { return &codexReader{} }

type codexReader struct {
	transcript
	// completed is true once the turn is through; failure is why it is not.
	completed bool
	failure   string
}

type codexLine struct {
	Type   string `json:"type"`
	Thread string `json:"thread_id"`
	// Message is that of an error.
	Message string `json:"message"`
	Error   struct {
		Message string `json:"message"`
	} `json:"error"`
	Item struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Tool    string `json:"tool"`
		Message string `json:"message"`
	} `json:"item"`
	Usage struct {
		In  int64 `json:"input_tokens"`
		Out int64 `json:"output_tokens"`
	} `json:"usage"`
}

func (r *codexReader) Line(line []byte) {
	var l codexLine
	if !r.decode(line, &l) {
		return
	}
	switch l.Type {
	case "thread.started":
		r.named(l.Thread)
	case "turn.started":
		r.completed = false
	case "item.completed":
		r.item(&l)
	case "error":
		r.failure = clip(l.Message)
	case "turn.failed":
		r.completed, r.failure = false, clip(l.Error.Message)
	case "turn.completed":
		r.completed, r.failure = true, ""
		// The totals of the whole thread, earlier runs included.
		r.figures.TokensIn, r.figures.TokensOut = l.Usage.In, l.Usage.Out
	}
}

func (r *codexReader) item(l *codexLine) {
	switch l.Item.Type {
	case "agent_message":
		r.figures.Turns++
		r.say(l.Item.Text)
	case "command_execution":
		r.tool("shell")
	case "file_change":
		r.tool("apply_patch")
	case "mcp_tool_call":
		r.tool(l.Item.Tool)
	case "web_search":
		r.tool("web_search")
	}
}

func (r *codexReader) Resumed() { r.completed, r.failure, r.noise = false, "", nil }

func (r *codexReader) End(code int) End {
	end := End{Said: r.lastWords()}
	switch {
	case r.failure != "" && !r.completed:
		// The message is all there is, and whether another try helps is not in it.
		end.Verdict, end.Reason = Unfinished, "its turn failed: "+r.failure
	case code != 0:
	case r.completed:
		end.Verdict = Finished
	case r.session != "":
		end.Verdict, end.Reason = Unfinished, "it ended in the middle of its turn"
	}
	return end
}
