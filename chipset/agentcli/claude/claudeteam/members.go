package claudeteam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/bridge"
)

// maxConfig bounds a team's config.json, in bytes.
const maxConfig = 1 << 20

// member is what config.json says of a member. Claude Code refuses a message to a name that no member
// has, and starts, ends and waits for those of its own alone: one without a pane that is not active
// is an address and nothing more. Seen in Claude Code 2.1.329.
type member struct {
	AgentID string `json:"agentId"`
	Name    string `json:"name"`
	// JoinedAt is in milliseconds since 1970.
	JoinedAt      int64    `json:"joinedAt"`
	TmuxPaneID    string   `json:"tmuxPaneId"`
	Cwd           string   `json:"cwd"`
	Subscriptions []string `json:"subscriptions"`
	IsActive      bool     `json:"isActive"`
}

// Introduce implements bridge.System: the agents of the rig become members of the team, so that
// SendMessage of its other members reaches them. It does so again when the client has written
// over them. A team without config.json has no members to add to.
func (c *Team) Introduce(ctx context.Context, b *bridge.Bridge) error {
	if _, missing, err := c.missing(b); err != nil || len(missing) == 0 {
		return err
	}
	return rewrite(ctx, c.configFile(), func() (any, error) {
		config, missing, err := c.missing(b)
		if err != nil || len(missing) == 0 {
			return nil, err
		}
		members := config.Members
		for _, name := range missing {
			added, err := json.Marshal(member{AgentID: name + "@" + config.Name, Name: name, JoinedAt: b.Rig.Clock.Now().UnixMilli(),
				Cwd: b.Rig.Dir, Subscriptions: []string{}})
			if err != nil {
				return nil, err
			}
			members = append(members, added)
		}
		return withFields(config.whole, map[string]any{"members": members})
	})
}

func (c *Team) configFile() string { return filepath.Join(c.Dir, "config.json") }

// config is what is read of config.json; whole is all of it.
type config struct {
	Name    string            `json:"name"`
	Members []json.RawMessage `json:"members"`
	whole   json.RawMessage
}

// missing returns the foreign names of the rig's agents that no member of the team has.
func (c *Team) missing(b *bridge.Bridge) (config, []string, error) {
	var read config
	data, err := bridge.ReadFile(c.configFile(), maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return read, nil, nil
	}
	if err != nil {
		return read, nil, err
	}
	if err := json.Unmarshal(data, &read); err != nil || read.Members == nil {
		return read, nil, fmt.Errorf("%s: it is not the configuration of a team, and is left as it is (another version of the program?)", c.configFile())
	}
	read.whole = data
	var names []string
	for _, p := range b.Ours {
		if !slices.ContainsFunc(read.Members, func(raw json.RawMessage) bool {
			var m member
			return json.Unmarshal(raw, &m) == nil && m.Name == p.Foreign
		}) {
			names = append(names, p.Foreign)
		}
	}
	return read, names, nil
}
