package view

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/view/screen"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/incident"
)

func healthRig(t *testing.T, clock state.Clock) *rig.Rig {
	t.Helper()
	r, err := rig.Init(t.Context(), rig.InitOptions{Dir: gittest.Repo(t), Clock: clock,
		Template: definition.TemplateOptions{RigName: "sick", Worker: "sh", Polecats: 2, Test: "true"}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestHealth(t *testing.T) {
	now := time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC)
	r := healthRig(t, func() time.Time { return now })
	ctx := t.Context()
	h, err := Health(ctx, r)
	if err != nil || h.Totals.Agents != 5 || h.Totals.Idle != 5 || h.Watched || len(h.Stalled) != 0 {
		t.Fatalf("a healthy rig: %+v, %v", h, err)
	}
	var text strings.Builder
	if err := h.WriteText(&text, screen.Options{Width: 80}); err != nil || !strings.Contains(text.String(), "nothing is stalled") {
		t.Errorf("text %q, %v", text.String(), err)
	}
	for _, id := range []state.AgentID{"polecat-alpha", "polecat-bravo"} {
		as := state.AssignmentID("as-" + id)
		if _, err := r.Hooks.Set(ctx, id, hook.WorkItem{AssignmentID: as, BeadID: "si-abc12", Title: "a title\x1b[2J"}, state.At(now)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Hooks.Activate(ctx, id, as, "ses-1", state.At(now)); err != nil {
			t.Fatal(err)
		}
	}
	i := incident.Incident{ID: "in-1", AgentID: "polecat-alpha", AssignmentID: "as-polecat-alpha", BeadID: "si-abc12", Kind: incident.Stalled,
		Severity: incident.Alert, Nudges: 2, Answers: 1, OpenedAt: state.At(now)}
	gone := i
	resolved := state.At(now)
	gone.ID, gone.ResolvedAt = "in-2", &resolved
	for _, i := range []incident.Incident{i, gone} {
		if err := r.Incidents.Create(string(i.ID), i); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(7*time.Minute + 30*time.Second)
	lock, err := r.Claim(ctx, r.Witness(), "ses-w")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	if h, err = Health(ctx, r); err != nil {
		t.Fatal(err)
	}
	if !h.Watched || h.Totals.Alive != 1 || len(h.Incidents) != 1 || len(h.Stalled) != 2 {
		t.Fatalf("report %+v", h)
	}
	a, b := h.Stalled[0], h.Stalled[1]
	if a.Agent != "polecat-alpha" || a.Bead != "si-abc12" || a.Minutes != 7 || a.Nudges != 2 || a.Answers != 1 || a.Severity != incident.Alert {
		t.Errorf("alpha %+v", a)
	}
	if b.Severity != incident.None || len(b.Kinds) != 0 || b.Minutes != 7 {
		t.Errorf("bravo, which no witness has looked at: %+v", b)
	}
	data, err := json.Marshal(h)
	if err != nil || !strings.Contains(string(data), `"kinds":[]`) {
		t.Errorf("json %s, %v", data, err)
	}
	text.Reset()
	if err := h.WriteText(&text, screen.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"5 agents, 1 alive", "polecat-alpha  alert", "none for 7 minutes", "2 sent, 1 answered", "in-1"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "\x1b") {
		t.Errorf("an escape sequence in\n%q", text.String())
	}
}
