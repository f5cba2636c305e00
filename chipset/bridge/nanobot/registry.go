package nanobot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/bridge"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/wording"
)

// card is an agent's entry in _registry.json.
type card struct {
	AgentID      string   `json:"agent_id"`
	Description  string   `json:"description"`
	Capabilities []string `json:"capabilities"`
	Status       string   `json:"status"`
	AllowFrom    []string `json:"allow_from"`
	MaxTasks     int      `json:"max_concurrent_tasks"`
	CurrentTasks []string `json:"current_tasks"`
	RegisteredAt string   `json:"registered_at"`
	Heartbeat    string   `json:"last_heartbeat"`
}

// heartbeat is how often an entry is renewed; the other system takes an agent
// whose heartbeat is minutes old for offline.
const heartbeat = 30 * time.Second

// defaultTasks is what an agent without a limit of its own is announced with,
// because the other system knows no "any number".
const defaultTasks = 3

func (n *Mailboxes) registryFile() string { return filepath.Join(n.Root, "_registry.json") }

func (n *Mailboxes) registry() (map[string]json.RawMessage, error) {
	file := n.registryFile()
	data, err := bridge.ReadFile(file, maxMessage)
	if err != nil {
		return nil, err
	}
	entries := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &entries); err != nil {
		return nil, fmt.Errorf("%s: no registry, and is left as it is", file)
	}
	return entries, nil
}

// registryTries bounds how often an entry is written that others wrote over:
// the other system replaces the file without a lock.
const registryTries = 5

// announce puts an agent of the rig into the registry, or renews it, and keeps
// everybody else's entry byte for byte.
func (n *Mailboxes) announce(c card, now time.Time) error {
	for range registryTries {
		entries, err := n.registry()
		if err != nil {
			return err
		}
		var there card
		if old, known := entries[c.AgentID]; known {
			if err := json.Unmarshal(old, &there); err != nil {
				return fmt.Errorf("_registry.json: the entry of %s is not an agent, and is left as it is", c.AgentID)
			}
			c.RegisteredAt = there.RegisteredAt
		}
		last, err := time.Parse(time.RFC3339, there.Heartbeat)
		if err == nil && now.Sub(last) < heartbeat && !last.After(now) && sameCard(there, c) {
			return nil
		}
		c.Heartbeat = now.UTC().Format(time.RFC3339)
		if c.RegisteredAt == "" {
			c.RegisteredAt = c.Heartbeat
		}
		if entries[c.AgentID], err = json.Marshal(c); err != nil {
			return err
		}
		data, err := json.MarshalIndent(entries, "", "  ")
		if err != nil {
			return err
		}
		if err := state.ReplaceOutside(n.registryFile(), append(data, '\n')); err != nil {
			return err
		}
	}
	return fmt.Errorf("_registry.json: another program writes over the entry of %s", c.AgentID)
}

func sameCard(a, b card) bool {
	return a.Description == b.Description && a.Status == b.Status && a.MaxTasks == b.MaxTasks &&
		slices.Equal(a.Capabilities, b.Capabilities) && slices.Equal(a.CurrentTasks, b.CurrentTasks) && slices.Equal(a.AllowFrom, b.AllowFrom)
}

// Introduce implements bridge.System: it announces the rig's agents, and takes over what the
// registry says of the foreign ones.
func (n *Mailboxes) Introduce(ctx context.Context, b *bridge.Bridge) error {
	var failed []error
	for _, p := range b.Ours {
		a, err := b.Rig.Agents.Get(string(p.Agent))
		if err != nil {
			if !errors.Is(err, state.ErrNotFound) {
				failed = append(failed, err)
			}
			continue // the person needs no card
		}
		c := cardOf(b, p, &a)
		if c.CurrentTasks, err = currentTasks(b, p.Agent); err != nil {
			failed = append(failed, err)
			continue
		}
		failed = append(failed, n.announce(c, b.Rig.Clock.Now().Time))
	}
	entries, err := n.registry()
	if err != nil {
		return errors.Join(append(failed, err)...)
	}
	for _, p := range b.Theirs {
		var theirs card
		if raw, known := entries[p.Foreign]; !known || json.Unmarshal(raw, &theirs) != nil {
			continue
		}
		failed = append(failed, learn(ctx, b, p.Agent, theirs))
	}
	return errors.Join(failed...)
}

// currentTasks are the foreign ids of what an agent has accepted and not finished.
func currentTasks(b *bridge.Bridge, id state.AgentID) ([]string, error) {
	tasks, err := mail.TasksFor(b.Rig.Mailbox(id), b.Rig.Mailbox)
	current := []string{}
	for i := range tasks {
		if t := &tasks[i]; t.State == mail.TaskAccepted || t.State == mail.TaskWorking {
			current = append(current, string(t.ID))
		}
	}
	return current, err
}

// cardOf describes an agent of the rig.
func cardOf(b *bridge.Bridge, p bridge.Pair, a *agent.Agent) card {
	c := card{AgentID: p.Foreign, Description: a.Description, Capabilities: append([]string{}, a.Capabilities...), Status: "idle",
		AllowFrom: []string{"*"}, MaxTasks: a.MaxTasks}
	if a.Status == agent.Active {
		c.Status = "busy"
	}
	if c.MaxTasks == 0 {
		c.MaxTasks = defaultTasks
	}
	if len(a.AllowFrom) > 0 {
		c.AllowFrom = nil
		for _, from := range a.AllowFrom {
			c.AllowFrom = append(c.AllowFrom, b.ForeignName(state.AgentID(from)))
		}
	}
	return c
}

// learn writes what a foreign card says into the card of the agent that stands
// for it, as far as it fits there.
func learn(ctx context.Context, b *bridge.Bridge, id state.AgentID, c card) error {
	description := wording.Subject(c.Description, bridge.MaxSubject, "")
	var words []string
	for _, w := range c.Capabilities {
		if w = wording.Subject(w, bridge.MaxSubject, ""); w != "" && len(w) <= agent.MaxWord && len(words) < agent.MaxWords {
			words = append(words, w)
		}
	}
	known, err := b.Rig.Agents.Get(string(id))
	if err != nil || known.Description == description && slices.Equal(known.Capabilities, words) {
		return err
	}
	_, err = (&actor.Actor{Rig: b.Rig, ID: id}).SetCard(ctx, id, actor.Card{Description: &description, Capabilities: &words})
	return err
}
