package agentcli

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestCommandLines is the whole of what each client is run with.
func TestCommandLines(t *testing.T) {
	const file = "/rig/run/s1.prompt"
	kit := Kit{Chipset: "/opt/chipset", Identity: []string{"CHIPSET_AGENT=p\"1"}, Permission: PermissionEdit, Session: "uuid", Files: "/rig/run/s1."}
	tests := []struct {
		client         string
		begun, resumed []string
	}{
		{"claude", words("claude -p --output-format stream-json --verbose --permission-mode acceptEdits --session-id uuid --allowedTools=Bash(chipset:*),Bash(git_add:*),Bash(git_commit:*),Bash(git_status:*)"),
			words("claude -p --output-format stream-json --verbose --permission-mode acceptEdits --resume old --allowedTools=Bash(chipset:*),Bash(git_add:*),Bash(git_commit:*),Bash(git_status:*)")},
		{"codex", words("codex exec --json --sandbox workspace-write -c allow_login_shell=false"), words("codex exec --json --sandbox workspace-write -c allow_login_shell=false resume old -")},
		{"gemini", words("gemini --output-format stream-json --skip-trust --approval-mode auto_edit --session-id uuid"),
			words("gemini --output-format stream-json --skip-trust --approval-mode auto_edit --resume old")},
		{"opencode", words("opencode run --format json"), words("opencode run --format json --session old")},
		{"aider", words("aider --no-stream --no-pretty --no-check-update --message-file=" + file + " --yes-always --no-suggest-shell-commands"), nil},
		{"cursor", words("cursor-agent -p --output-format stream-json --trust P"), words("cursor-agent --resume=old -p --output-format stream-json --trust P")},
		{"amp", words("amp -x --stream-json"), words("amp threads continue old -x --stream-json")},
		{"goose", words("goose run --instructions " + file), nil},
		{"sh", words("sh -e " + file), nil},
	}
	if len(tests) != len(All()) {
		t.Errorf("%d clients, want %d", len(All()), len(tests))
	}
	for _, tt := range tests {
		c := Named(tt.client)
		run, err := Build(c.Preset(), PromptInput{Prompt: "P", Script: "S", File: file, Permission: PermissionEdit})
		if err != nil {
			t.Errorf("%s: %v", tt.client, err)
			continue
		}
		if diff := cmp.Diff(tt.begun, c.Equip(run.Argv, kit).Argv); diff != "" {
			t.Errorf("%s begins with %s", tt.client, diff)
		}
		if resumes := tt.resumed != nil; resumes != c.About().Resume {
			t.Errorf("%s resumes: %v, and says %v", tt.client, resumes, c.About().Resume)
		}
		again := kit
		again.Resume = "old"
		if got := c.Equip(run.Argv, again).Argv; tt.resumed != nil && !cmp.Equal(got, tt.resumed) {
			t.Errorf("%s resumes with %s", tt.client, cmp.Diff(tt.resumed, got))
		}
	}
}

// words splits a command line; _ stands for a blank within one.
func words(line string) []string {
	var words []string
	for _, word := range strings.Fields(line) {
		if strings.HasPrefix(word, "--allowedTools") {
			word = strings.ReplaceAll(word, "_", " ")
		}
		words = append(words, word)
	}
	return words
}

func TestPresetsAreSound(t *testing.T) {
	for _, preset := range Presets() {
		if preset.Timeout != time.Hour {
			t.Errorf("%s: time-out %v", preset.Name, preset.Timeout)
		}
		for _, permission := range []string{"", PermissionAsk, PermissionFull} {
			if _, err := Build(preset, PromptInput{Prompt: "P", File: "/p", Permission: permission}); err != nil {
				t.Errorf("%s with permission %q: %v", preset.Name, permission, err)
			}
		}
		if _, err := Build(preset, PromptInput{Prompt: "P", File: "/p", Permission: "everything"}); !errors.Is(err, ErrBadPreset) {
			t.Errorf("%s with an unknown permission: %v", preset.Name, err)
		}
	}
}

// TestHandedOverTools: each client is told of the server in its own way, and a
// quotation mark in a name breaks none of them.
func TestHandedOverTools(t *testing.T) {
	kit := Kit{Chipset: `/opt/a "b"/chipset`, Identity: []string{"CHIPSET_AGENT=polecat-alpha", "CHIPSET_DIR=/a=b"}, Files: "/rig/s1.", MCP: true}
	for _, name := range []string{"claude", "gemini"} {
		e := Named(name).Equip([]string{name}, kit)
		if len(e.Files) != 1 {
			t.Fatalf("%s: files %v", name, e.Files)
		}
		for file, text := range e.Files {
			var config struct {
				Servers map[string]struct {
					Command string
					Args    []string
					Env     map[string]string
				} `json:"mcpServers"`
			}
			if err := json.Unmarshal([]byte(text), &config); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			server := config.Servers["chipset"]
			if server.Command != kit.Chipset || !slices.Equal(server.Args, []string{"mcp"}) || server.Env["CHIPSET_DIR"] != "/a=b" {
				t.Errorf("%s: %+v", name, server)
			}
			if all := strings.Join(append(e.Argv, e.Env...), " "); !strings.Contains(all, kit.Files+file) {
				t.Errorf("%s is not told of %s: %s", name, file, all)
			}
		}
	}
	codex := Named("codex").Equip([]string{"codex"}, kit).Argv
	if !slices.Contains(codex, `mcp_servers.chipset.command="/opt/a \"b\"/chipset"`) {
		t.Errorf("codex: %q", codex)
	}
	opencode := Named("opencode").Equip([]string{"opencode"}, kit)
	if len(opencode.Env) != 1 || !strings.Contains(opencode.Env[0], `"command":["/opt/a \"b\"/chipset","mcp"]`) {
		t.Errorf("opencode: %q", opencode.Env)
	}
}

// TestGrantedCommands: opencode is told of what was approved, but of nothing that
// would be a pattern there.
func TestGrantedCommands(t *testing.T) {
	e := Named("opencode").Equip([]string{"opencode"}, Kit{Permission: PermissionEdit, Granted: []string{"Bash(npm publish)", "make all", "rm *"}})
	var config struct {
		Permission struct{ Bash map[string]string }
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(e.Env[0], "OPENCODE_CONFIG_CONTENT=")), &config); err != nil {
		t.Fatal(err)
	}
	bash := config.Permission.Bash
	if bash["*"] != "deny" || bash["npm publish"] != "allow" || bash["make all"] != "allow" || bash["rm *"] != "" {
		t.Errorf("%q", bash)
	}
}

// TestHandedOverHooks: the clients with hooks are told to ask this very binary, and
// a plugin of the person's is kept silent.
func TestHandedOverHooks(t *testing.T) {
	kit := Kit{Chipset: "/opt/it's/chipset", Files: "/rig/s1.", Hooks: true}
	for _, c := range All() {
		e := c.Equip([]string{"x"}, kit)
		all := strings.Join(e.Argv, " ")
		for _, text := range e.Files {
			all += text
		}
		name := c.Preset().Name
		if got := strings.Contains(all, "client-hook "+name); got != c.About().Hooks || got != slices.Contains(e.Env, "CHIPSET_WORKER_HOOKS=1") {
			t.Errorf("%s says it has hooks: %v; it is told %s, with %q", name, c.About().Hooks, all, e.Env)
		}
	}
	own := Named("claude").Equip([]string{"claude", "--settings", "mine.json"}, kit)
	if len(own.Files) != 0 || slices.Contains(own.Env, "CHIPSET_WORKER_HOOKS=1") {
		t.Errorf("somebody's own settings are overruled: %q", own.Argv)
	}
}

func TestOf(t *testing.T) {
	tests := []struct {
		preset Preset
		want   string
	}{
		{Preset{Name: "fast", Command: []string{"/opt/bin/claude", "-p"}}, "claude"},
		{Preset{Name: "mine", Command: []string{"cursor-agent"}}, "cursor"},
		{Preset{Name: "claude", Command: []string{"./wrapper"}}, "command"},
		{Preset{Name: "claude", Command: []string{"./wrapper"}, Client: "codex"}, "codex"},
		{Preset{Name: "quiet", Command: []string{"claude"}, Client: "command"}, "command"},
		{Preset{Name: "nothing"}, "command"},
	}
	for _, tt := range tests {
		if got := Of(tt.preset).Preset().Name; got != tt.want {
			t.Errorf("%+v is %s, want %s", tt.preset, got, tt.want)
		}
	}
}

func TestInherit(t *testing.T) {
	got := Inherit([]string{"PATH=/bin", "CLAUDECODE=1", "ANTHROPIC_API_KEY=secret", "GEMINI_CLI=1", "CLAUDE_CODE_MESSAGING_TOKEN=secret", "CLAUDE_CODE_MAX_RETRIES=2", "EMPTY"})
	if diff := cmp.Diff([]string{"PATH=/bin", "ANTHROPIC_API_KEY=secret", "CLAUDE_CODE_MAX_RETRIES=2", "EMPTY"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestFiguresInWords(t *testing.T) {
	for want, f := range map[string]Figures{
		"": {}, "1 turn": {Turns: 1}, "2 turns, 1 tool call, 12.3k tokens, $0.05": {Turns: 2, Tools: 1, TokensIn: 12000, TokensOut: 345, CostUSD: 0.05},
		"999 tokens": {TokensIn: 999}, "1.5M tokens": {TokensOut: 1_500_000},
	} {
		if got := f.String(); got != want {
			t.Errorf("%+v is %q, want %q", f, got, want)
		}
	}
}
