package claudeteam

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/bridge/bridgetest"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
)

const foreignConfig = `{"name": "session-0a1b2c3d", "createdAt": 1, "leadAgentId": "team-lead@session-0a1b2c3d", "future": {"b": 1, "a": 2},
  "members": [{"agentId": "team-lead@session-0a1b2c3d", "name": "team-lead", "tmuxPaneId": "leader", "new": [2, 1]}]}`

// TestTeamMembers: the rig's agents become members once, and everything else stays as it was.
func TestTeamMembers(t *testing.T) {
	r := rigtest.New(t, "")
	team, _ := openTeam(t, "session-0a1b2c3d")
	file := filepath.Join(team.Dir, "config.json")
	b := bridgetest.New(t, r, team)
	for _, round := range []string{"at first", "after the client wrote over them"} {
		bridgetest.Write(t, file, foreignConfig)
		rigtest.Must(t, team.Introduce(t.Context(), b))
		once := bridgetest.Read(t, file)
		if plain := strings.Join(strings.Fields(once), ""); !strings.Contains(plain, `"future":{"b":1,"a":2}`) || !strings.Contains(plain, `"new":[2,1]`) {
			t.Errorf("%s: an unknown field was changed: %s", round, once)
		}
		var config struct {
			CreatedAt int `json:"createdAt"`
			Members   []struct{ AgentID, Name, TmuxPaneID string }
		}
		rigtest.Must(t, json.Unmarshal([]byte(once), &config))
		if len(config.Members) != 2 || config.Members[0].TmuxPaneID != "leader" || config.Members[1].Name != "lead" || config.Members[1].AgentID != "lead@session-0a1b2c3d" || config.CreatedAt != 1 {
			t.Errorf("%s: %+v", round, config)
		}
		rigtest.Must(t, team.Introduce(t.Context(), b))
		if again := bridgetest.Read(t, file); again != once {
			t.Errorf("%s: written again: %s", round, again)
		}
	}
}

// TestTeamOfAnotherVersion: what is no configuration of a team is reported, left alone, and holds no mail back.
func TestTeamOfAnotherVersion(t *testing.T) {
	for _, text := range []string{"", "[]", `{"name": "x"}`, `{"members": 3}`} {
		r := rigtest.New(t, "")
		team, inbox := openTeam(t, "session-0a1b2c3d")
		file := filepath.Join(team.Dir, "config.json")
		bridgetest.Write(t, file, text)
		bridgetest.Write(t, inbox("lead"), `[{"from": "researcher", "text": "found three", "timestamp": "2026-04-01T10:30:00.000Z", "read": false}]`)
		n, err := bridgetest.New(t, r, team).Carry(t.Context())
		if err == nil || !strings.Contains(err.Error(), "config.json: it is not the configuration of a team") || n.In != 1 || bridgetest.Read(t, file) != text {
			t.Errorf("%q: %+v, %v, now %q", text, n, err, bridgetest.Read(t, file))
		}
	}
}

// TestTeamBegunJustNow: a team has no inboxes before its first message.
func TestTeamBegunJustNow(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenTeam(dir); err == nil || !strings.Contains(err.Error(), "no team") {
		t.Errorf("an empty folder: %v", err)
	}
	bridgetest.Write(t, filepath.Join(dir, "config.json"), foreignConfig)
	team, err := OpenTeam(dir)
	rigtest.Must(t, err)
	_, err = bridgetest.New(t, rigtest.New(t, ""), team).Carry(t.Context())
	rigtest.Must(t, err)
}
