package definition

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	// MaxPolecats is the largest pool that needs no --force-count.
	MaxPolecats = 30
	// MaxForcedPolecats is the largest pool.
	MaxForcedPolecats = 1000

	maxCrew     = 100
	maxIDLength = 64

	// poolName always stands for a pool, even of a single polecat.
	poolName = "polecat-pool"
)

// Agent is one agent of the rig.
type Agent struct {
	ID     string
	Role   Role
	Skills []string
	// Line is that of its entry, 0 for the implied refinery.
	Line int
}

// Agents returns every agent of the rig in the order of the definition, pools
// expanded (polecat-alpha, polecat-bravo, …), the implied refinery last.
func (d *Definition) Agents() []Agent {
	agents := d.Topology.expand()
	if d.polecats > 0 {
		agents = resize(agents, d.polecats)
	}
	if !slices.ContainsFunc(agents, func(a Agent) bool { return a.Role == RoleRefinery }) {
		agents = append(agents, Agent{ID: string(RoleRefinery), Role: RoleRefinery})
	}
	return agents
}

// AgentsOf returns the agents of one role.
func (d *Definition) AgentsOf(role Role) []Agent {
	return slices.DeleteFunc(d.Agents(), func(a Agent) bool { return a.Role != role })
}

// ErrPolecatCount is returned by WithPolecats for a number out of range.
var ErrPolecatCount = errors.New("polecat count out of range")

// WithPolecats returns the definition with n polecats: the first n that it names,
// or those and further ones in the order of the alphabet. More than 30 must be
// forced. Errors wrap ErrPolecatCount.
func (d *Definition) WithPolecats(n int, forced bool) (*Definition, error) {
	most := MaxPolecats
	if forced {
		most = MaxForcedPolecats
	}
	if n < 1 || n > most {
		return nil, fmt.Errorf("%w: %d is not between 1 and %d", ErrPolecatCount, n, most)
	}
	changed := *d
	changed.polecats = n
	return &changed, nil
}

func (e AgentEntry) pool() bool {
	return e.Role == RolePolecat && (e.Count > 1 || e.Name == poolName)
}

// expand returns the agents of all entries. The explicit names of entries are reserved
// before any pool is named, so that no pool collides with them.
func (t Topology) expand() []Agent {
	taken := map[string]bool{}
	for _, entry := range t.Entries {
		if !entry.pool() {
			taken[entry.Name] = true
		}
	}
	var agents []Agent
	place := 0
	for _, entry := range t.Entries {
		for i := range max(entry.Count, 1) {
			id := entry.Name
			switch {
			case entry.pool():
				id = nextPolecat(&place, taken)
			case entry.Count > 1:
				id += "-" + strconv.Itoa(i+1)
			}
			agents = append(agents, Agent{ID: id, Role: entry.Role, Skills: slices.Clone(entry.Skills), Line: entry.Line})
		}
	}
	return agents
}

// nextPolecat returns the next name of the alphabet that is not taken, and takes it.
func nextPolecat(place *int, taken map[string]bool) string {
	for {
		id := polecatName(*place)
		*place++
		if !taken[id] {
			taken[id] = true
			return id
		}
	}
}

func polecatName(place int) string {
	letters := strings.Fields("alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike" +
		" november oscar papa quebec romeo sierra tango uniform victor whiskey xray yankee zulu")
	if place < len(letters) {
		return "polecat-" + letters[place]
	}
	return "polecat-" + strconv.Itoa(place+1)
}

// resize keeps the first n polecats, or adds more after the last one, with its skills.
func resize(agents []Agent, n int) []Agent {
	var resized []Agent
	taken := map[string]bool{}
	last, polecats := -1, 0
	for _, agent := range agents {
		taken[agent.ID] = true
		if agent.Role == RolePolecat {
			if polecats == n {
				continue
			}
			polecats++
			last = len(resized)
		}
		resized = append(resized, agent)
	}
	var added []Agent
	for place := 0; last >= 0 && polecats < n; polecats++ {
		added = append(added, Agent{
			ID: nextPolecat(&place, taken), Role: RolePolecat, Skills: slices.Clone(resized[last].Skills), Line: resized[last].Line,
		})
	}
	return slices.Insert(resized, last+1, added...)
}

// checkAgents checks the agents as a whole. The place is the whole document.
func (p place) checkAgents(def *Definition) {
	var declared []string
	for _, skill := range def.Skills.All() {
		declared = append(declared, skill.Name)
	}
	seen := names{"agent", map[string]int{}}
	for i, entry := range def.Topology.Entries {
		at := p.find("agents", "agents", i)
		if !entry.pool() {
			seen.add(at.find("name"), entry.Name)
		}
		if entry.Role != "" && entry.Name != string(entry.Role) && isRole(entry.Name) {
			at.find("name").fail("", "%s is the name of a role, and this agent is a %s", quote(entry.Name), entry.Role)
		}
		for j, skill := range entry.Skills {
			if p.get("skills") != nil && skill != "" && !slices.Contains(declared, skill) {
				at.find("skills", j).fail(suggest(skill, declared), "skill %s is not declared in skills", quote(skill))
			}
		}
	}
	p.checkRoles(def)
	p.checkPolecats(def)
	if p.r.problems.Err() == nil {
		p.checkIDs(def)
	}
}

func isRole(name string) bool {
	return slices.Contains([]Role{RoleMayor, RoleWitness, RoleRefinery, RolePolecat, RoleCrew}, Role(name))
}

// checkRoles reports roles with too few agents, or too many, at the first entry that
// exceeds the limit.
func (p place) checkRoles(def *Definition) {
	rules := []struct {
		role        Role
		least, most int
		want        string
	}{
		{RoleMayor, 1, 1, "exactly 1 mayor"},
		{RoleWitness, 1, 1, "exactly 1 witness"},
		{RoleRefinery, 0, 1, "at most 1 refinery"},
		{RolePolecat, 1, MaxForcedPolecats, "1 polecat or more"},
		{RoleCrew, 0, maxCrew, fmt.Sprintf("at most %d crew", maxCrew)},
	}
	for _, rule := range rules {
		switch found, over := def.Topology.count(rule.role, rule.most); {
		case over >= 0:
			p.find("agents", "agents", over).fail("", "the topology requires %s, found %d", rule.want, found)
		case found < rule.least:
			p.find("agents").fail("", "the topology requires %s, found none", rule.want)
		}
	}
}

// count returns the number of agents of a role, and the first entry that makes it
// more than the most, or -1.
func (t Topology) count(role Role, most int) (found, over int) {
	over = -1
	for i, entry := range t.Entries {
		if entry.Role != role {
			continue
		}
		if found += entry.Count; found > most && over < 0 {
			over = i
		}
	}
	return found, over
}

// checkPolecats reports a pool that is probably larger than intended.
func (p place) checkPolecats(def *Definition) {
	if found, over := def.Topology.count(RolePolecat, MaxPolecats); over >= 0 && !p.r.opts.ForceCount {
		p.find("agents", "agents", over, "count").fail("--force-count lifts the limit", "at most %d polecats, found %d", MaxPolecats, found)
	}
}

// checkIDs reports agents whose IDs are the same once counts are expanded.
func (p place) checkIDs(def *Definition) {
	lines := map[string]int{}
	for _, agent := range def.Agents() {
		other, again := lines[agent.ID]
		lines[agent.ID] = agent.Line
		if again || len(agent.ID) > maxIDLength {
			i := slices.IndexFunc(def.Topology.Entries, func(e AgentEntry) bool { return e.Line == agent.Line })
			p.find("agents", "agents", max(i, 0)).fail("", "its count makes the agent ID %s, which line %d has too or is too long", quote(agent.ID), other)
			return
		}
	}
}
