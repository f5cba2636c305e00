package view

import (
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/chipset/view/screen"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

// TestProgressIsShown: what the client of a worker says, beside the bead and in its story.
func TestProgressIsShown(t *testing.T) {
	f := busy(t)
	rigtest.Must(t, (&agentcli.Progress{Session: "ses-1", Client: "claude", Resumes: 1,
		Figures: agentcli.Figures{Turns: 3, Tools: 4, TokensIn: 12000, CostUSD: 0.5, Tool: "Bash\x1b[31m"}}).Write(f.Tree))
	s, err := GetStatus(t.Context(), f.Rig)
	rigtest.Must(t, err)
	var out strings.Builder
	rigtest.Must(t, s.WriteText(&out, screen.Options{}))
	if want := "(1h 0m, progress 1h 0m ago; 3 turns, 4 tool calls, 12.0k tokens, $0.50, resumed once)"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
	story, err := Why(t.Context(), f.Rig, "gt-work1")
	rigtest.Must(t, err)
	out.Reset()
	rigtest.Must(t, story.WriteText(&out, screen.Options{}))
	if want := "so far    claude: 3 turns, 4 tool calls"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("an escape sequence reaches the terminal")
	}
}
