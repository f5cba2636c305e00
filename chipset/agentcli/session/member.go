package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
)

// maxMembers bounds how many sessions of one client are members of a rig at once.
const maxMembers = 100

// Member returns the agent of a session of a person's own client, and registers it if it is new. Each running
// session has a name of its own: that of the client, with a number while another session has it. programs are
// the ancestors of the session's hook, the nearest first.
func Member(ctx context.Context, r *rig.Rig, client, session string, programs []process.Program) (state.AgentID, error) {
	h := Hooks{Rig: r}
	h.in.Session = session
	known := func() state.AgentID {
		if m := h.recall(""); !h.over(&m) {
			return m.Agent
		}
		return ""
	}
	if id := known(); id != "" {
		return actor.Crew(ctx, r, client, string(id))
	}
	lock, err := r.Tree.Lock(ctx, state.LockRecord, "client-members")
	if err != nil {
		return "", err
	}
	defer lock.Unlock()
	if id := known(); id != "" { // hooks of one event run side by side
		return actor.Crew(ctx, r, client, string(id))
	}
	taken, err := members(r)
	if err != nil {
		return "", err
	}
	for n := 1; n <= maxMembers; n++ {
		name := client
		if n > 1 {
			name = fmt.Sprintf("%s-%d", client, n)
		}
		id, err := actor.Crew(ctx, r, client, name)
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(taken, func(m memory) bool { return m.Agent == id }) {
			continue
		}
		h.Agent = id
		return id, h.change(ctx, id, func(m *memory) bool {
			if len(programs) > 0 {
				m.Program = programs[0]
			}
			return true
		})
	}
	return "", state.Conflictf("crew "+client, "%d sessions of it run already", maxMembers)
}

// members lists the memories of the sessions that may still run.
func members(r *rig.Rig) ([]memory, error) {
	sessions, err := r.Tree.List(clientsDir)
	if err != nil {
		return nil, err
	}
	var all []memory
	for _, session := range sessions {
		h := Hooks{Rig: r}
		h.in.Session = session.Name()
		if m := h.recall(""); m.Agent != "" && !h.over(&m) {
			all = append(all, m)
		}
	}
	return all, nil
}

// Around returns the member whose session of a client runs a process with these ancestors, "" if there is none. Of
// several sessions in one program it is the one that was active last.
func Around(r *rig.Rig, client string, programs []process.Program) (state.AgentID, error) {
	all, err := members(r)
	if err != nil {
		return "", err
	}
	slices.SortFunc(all, func(a, b memory) int { return b.Noted.Compare(a.Noted.Time) })
	for _, m := range all {
		name := string(m.Agent)
		if (name == client || strings.HasPrefix(name, client+"-")) && m.Program.PID != 0 && slices.Contains(programs, m.Program) {
			return m.Agent, nil
		}
	}
	return "", nil
}
