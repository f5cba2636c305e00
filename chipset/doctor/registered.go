package doctor

import (
	"context"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

// registered checks that the agents of the definition and the person are registered.
func (c *relations) registered(context.Context) error {
	c.named(state.Human, agent.Human)
	if c.r.Def == nil {
		return nil
	}
	for _, a := range c.r.Def.Agents() {
		if id, err := state.ParseAgentID(a.ID); err == nil {
			c.named(id, agent.Role(a.Role))
		}
	}
	c.strangers()
	return nil
}

// strangers reports agents whose record names another rig. Crew may come from anywhere.
func (c *relations) strangers() {
	own := c.r.Def.Rig.Name
	for _, a := range c.Agents {
		if a.Rig == own || a.Role == agent.Crew || a.Status == agent.Retired {
			continue
		}
		f := c.add("agent-rig", c.r.Agents.Path(string(a.ID)), Warning, "", "its record names the rig %q, but this one is %q", a.Rig, own)
		isNamed := slices.ContainsFunc(c.r.Def.Agents(), func(d definition.Agent) bool { return d.ID == string(a.ID) })
		if id := a.ID; isNamed || id == state.Human {
			f.repair = func(ctx context.Context) error { return c.r.RegisterNamed(ctx, id) }
		}
	}
}

func (c *relations) named(id state.AgentID, role agent.Role) {
	p := c.r.Agents.Path(string(id))
	switch a := c.Agent(id); {
	case a != nil && a.Role != role:
		c.add("agent-role", p, Warning, "", "it is a %s, but in chipset.yaml a %s", a.Role, role)
		return
	case a != nil || !c.absent(p):
		return // one that can't be read is another finding
	}
	f := c.add("agent-missing", p, Warning, "chipset up registers it; so does chipset doctor --fix", "%s is not registered", id)
	if c.r.Def != nil {
		f.repair = func(ctx context.Context) error {
			// Its hook, if it had one, may have had work and a gen.
			if c.absent(c.r.Hooks.Path(string(id))) {
				if err := rebuildHook(ctx, c.r, id); err != nil {
					return err
				}
			}
			return c.r.RegisterNamed(ctx, id)
		}
	}
}
