package opencode

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/state/fault"
)

// TestTestCommandPasses: with edit the command that tests what lands is allowed as it is.
func TestTestCommandPasses(t *testing.T) {
	client := Client()
	for permission, want := range map[string]bool{agentcli.PermissionAsk: false, agentcli.PermissionEdit: true} {
		env := strings.Join(client.Start(nil, agentcli.Kit{Permission: permission, Test: "make test"}).Env, "\n")
		if got := strings.Contains(env, `"make test":"allow"`); got != want {
			t.Errorf("%s: %s", permission, env)
		}
	}
}

func TestClient(t *testing.T) {
	agentclitest.Suite{
		Client:  Client(),
		Begun:   strings.Fields("opencode run --format json"),
		Resumed: strings.Fields("opencode run --format json --session old"),
		Recordings: []agentclitest.Recording{
			{Name: "finished", End: agentcli.End{Verdict: agentcli.Finished, Said: "Finished."},
				Figures: agentcli.Figures{Turns: 2, Tools: 1, TokensIn: 15450, TokensOut: 14, Tool: "bash"}},
			{Name: "refused", End: agentcli.End{Verdict: agentcli.Refused, Reason: "it was refused what it asked for: bash", Said: "Finished."},
				Figures: agentcli.Figures{Turns: 2, Tools: 1, TokensIn: 15504, TokensOut: 14, Tool: "bash"}},
			{Name: "asked", End: agentcli.End{Verdict: agentcli.Refused, Reason: "it was refused what it asked for: bash", Said: "I make a file."},
				Figures: agentcli.Figures{Turns: 1, Tools: 1, TokensIn: 7672, TokensOut: 7, Tool: "bash"}},
			{Name: "bad-key", Code: 1, End: agentcli.End{Verdict: agentcli.Broken, Reason: "the model's API does not accept the key (401)"}},
		},
		Faults: map[string]agentclitest.Fault{
			"400ctx":      {Kind: fault.ContextTooLong, Reason: "the session is too long for the model: Your input exceeds the context window of this model"},
			"401":         {Kind: fault.WrongKey, Reason: "the model's API does not accept the key (401)"},
			"429":         {Kind: fault.RateLimit, Reason: "the model's API limits the rate of requests (429): Rate limit reached for requests"},
			"429ra":       {Kind: fault.RateLimit, Reason: "the model's API limits the rate of requests (429): Rate limit reached for requests", Until: "2026-11-22T20:30:03Z"},
			"500":         {Kind: fault.ServerError, Reason: "the model's API fails (500): The server had an error"},
			"529":         {Kind: fault.Overloaded, Reason: "the model's API is overloaded (529): Overloaded"},
			"badflag":     {Kind: fault.FlagsRefused, Reason: "the client does not accept its command line: it prints its usage and ends"},
			"connrefused": {Kind: fault.Network, Reason: "the model's API can't be reached: Cannot connect to API: Unable to connect"},
			"nokey":       {},
			"usagelimit":  {Kind: fault.Credit, Reason: "the account has no credit left (429): You exceeded your current quota, please check your plan and billing details"},
		},
	}.Run(t)
}

// TestGrantedCommands: it is told what was approved, but nothing that would be a pattern to it.
func TestGrantedCommands(t *testing.T) {
	e := equip(nil, agentcli.Kit{Permission: agentcli.PermissionEdit, Granted: []string{"npm publish", "make all", "rm *"}})
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

// TestNotes: what only the plugin can tell: that a tool runs, and that the client tries again, until when.
func TestNotes(t *testing.T) {
	const session = `"sessionID":"ses_1"`
	at := agentclitest.Recorded()
	busy := `{"type":"chipset.status",` + session + `,"status":{"type":"busy"}}`
	retry := func(attempt int, message string, wait time.Duration) string {
		return fmt.Sprintf(`{"type":"chipset.status",%s,"status":{"type":"retry","attempt":%d,"message":%q,"next":%d}}`, session, attempt, message, at.Add(wait).UnixMilli())
	}
	const (
		begins = `{"type":"step_start",` + session + `,"part":{}}`
		tool   = `{"type":"chipset.tool",` + session + `,"part":{"callID":"c1","tool":"bash"}}`
		used   = `{"type":"tool_use",` + session + `,"part":{"callID":"c1","tool":"bash","state":{"status":"completed"}}}`
		ends   = `{"type":"step_finish",` + session + `,"part":{"reason":"stop"}}`
	)
	tests := []struct {
		name  string
		lines []string
		waits bool
		// trying is the fault that it tries to overcome, until when that lasts.
		trying fault.Kind
		until  string
	}{
		{"a request has no answer", []string{busy}, true, "", ""},
		{"an answer begins and does not end", []string{busy, begins}, true, "", ""},
		{"nobody says whether a tool runs", []string{begins}, false, "", ""},
		{"a tool runs", []string{busy, begins, tool}, false, "", ""},
		{"it has run", []string{busy, begins, tool, used}, true, "", ""},
		{"the turn is over", []string{busy, begins, ends}, false, "", ""},
		{"a limit", []string{busy, retry(1, "Rate limit reached", 15*time.Minute)}, true, fault.RateLimit, "2026-11-22T20:45:00Z"},
		{"a short wait is its own", []string{busy, retry(1, "Provider is overloaded", 2*time.Second), busy}, true, fault.Overloaded, ""},
		{"no connection", []string{busy, retry(1, "Cannot connect to API", 2*time.Second)}, true, fault.Network, ""},
		{"a failure", []string{busy, retry(1, "Trouble", 2*time.Second)}, true, fault.ServerError, ""},
		{"an answer begins", []string{busy, retry(1, "Trouble", 2*time.Second), begins}, true, "", ""},
		{"answers break off again and again", []string{busy, retry(5, "Trouble", 2*time.Second), begins}, true, fault.ServerError, ""},
		{"one did not", []string{busy, retry(5, "Trouble", 2*time.Second), begins, tool, used}, true, "", ""},
	}
	for _, tt := range tests {
		r := Client().Reader()
		for _, line := range tt.lines {
			r.Line([]byte(line))
		}
		end := r.End(143, at)
		until := ""
		if !end.Fault.Until.IsZero() {
			until = end.Fault.Until.UTC().Format(time.RFC3339)
		}
		if r.Waits() != tt.waits || r.Trying().Kind != tt.trying || end.Fault.Kind != tt.trying || until != tt.until || r.Session() != "ses_1" && len(tt.lines) > 0 {
			t.Errorf("%s: waits %v, tries %+v, ended %+v", tt.name, r.Waits(), r.Trying(), end)
		}
		r.Resumed()
		if end := r.End(143, at); !r.Trying().IsZero() || !end.Fault.IsZero() {
			t.Errorf("%s: resumed, and tries %+v, ended %+v", tt.name, r.Trying(), end)
		}
	}
}
