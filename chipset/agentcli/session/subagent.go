package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/prompt"
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// subagent is a helper that an agent spawned: first pending, when the tool that
// spawns it is called and its name is known, then claimed, when it starts and
// its client's id for it is known. The hand-over is one rename, so that of many
// that start at once each gets a name of its own.
type subagent struct {
	Name string `json:"name,omitempty"`
	Type string `json:"type,omitempty"`
	// Identity is who it is in the rig, once claimed.
	Identity state.AgentID `json:"identity,omitempty"`
	// Ready were the beads that could be begun when it started.
	Ready []state.BeadID `json:"ready,omitempty"`
}

func (h *Hooks) pendingDir() state.Path { return h.sessionDir().Join("pending") }
func (h *Hooks) claimedDir() state.Path { return h.sessionDir().Join("claimed") }
func (h *Hooks) restedDir() state.Path  { return h.sessionDir().Join("rested") }

func (h *Hooks) claimedPath(clientID string) state.Path {
	return h.claimedDir().Join(key(clientID) + ".json")
}

func (h *Hooks) readSubagent(p state.Path) (subagent, error) {
	var s subagent
	data, err := h.Rig.Tree.Read(p, state.MaxFile)
	if err != nil {
		return s, err
	}
	return s, state.Decode(string(p), data, &s)
}

// spawning keeps the name of a subagent until it starts.
func (h *Hooks) spawning(tool *agentcli.Tool) error {
	data, err := state.Encode(subagent{Name: quote.Cut(tool.Spawned, maxName), Type: quote.Cut(tool.SpawnedType, maxName)})
	if err != nil {
		return err
	}
	name := strings.ReplaceAll(h.Rig.Clock.Now().String(), ":", "-") + "-" + state.Random(6)
	return h.Rig.Tree.WriteNew(h.pendingDir().Join(name+".json"), data)
}

// maxName bounds the names that clients give, in bytes.
const maxName = 64

// claim takes the pending name that belongs to the subagent that starts: the
// oldest of its type. One that was at rest and is spoken to again is who it was.
// One that nobody announced has its type alone.
func (h *Hooks) claim() (subagent, error) {
	if s, err := h.readSubagent(h.restedDir().Join(key(h.in.AgentID) + ".json")); err == nil {
		taken, err := h.running()
		if slices.Contains(taken, s.Identity) {
			s.Identity = "" // another one has come under its name
		}
		return s, err
	}
	entries, err := h.Rig.Tree.List(h.pendingDir())
	if err != nil {
		return subagent{}, err
	}
	for _, e := range entries {
		p := h.pendingDir().Join(e.Name())
		s, err := h.readSubagent(p)
		if err != nil || !s.fits(h.in.AgentType) {
			continue
		}
		switch err := h.Rig.Tree.Move(p, h.claimedPath(h.in.AgentID)); {
		case err == nil:
			return s, nil
		case !errors.Is(err, state.ErrNotFound): // another one was faster
			return s, err
		}
	}
	return subagent{Type: quote.Cut(h.in.AgentType, maxName)}, nil
}

func (s *subagent) fits(kind string) bool {
	return s.Type == kind || s.Type == "" || kind == "" || s.Name == kind
}

// subagentStart gives a subagent its identity and everything it needs to begin.
// One that comes back under its name is who it was before.
func (h *Hooks) subagentStart(ctx context.Context) (agentcli.Answer, error) {
	if h.in.AgentID == "" {
		return agentcli.Answer{}, nil
	}
	lock, err := h.Rig.Tree.Lock(ctx, state.LockRecord, "clients-of-"+string(h.Agent))
	if err != nil {
		return agentcli.Answer{}, err
	}
	defer lock.Unlock()
	s, err := h.readSubagent(h.claimedPath(h.in.AgentID))
	if err != nil {
		if s, err = h.claim(); err != nil {
			return agentcli.Answer{}, err
		}
	}
	if s.Identity == "" {
		if s.Identity, err = h.freeIdentity(&s); err != nil {
			return agentcli.Answer{}, err
		}
	}
	if s.Ready, err = h.ready(); err != nil {
		return agentcli.Answer{}, err
	}
	reopened, err := h.register(ctx, s.Identity)
	if err != nil {
		return agentcli.Answer{}, err
	}
	data, err := state.Encode(s)
	if err != nil {
		return agentcli.Answer{}, err
	}
	if err := h.Rig.Tree.Replace(h.claimedPath(h.in.AgentID), data); err != nil {
		return agentcli.Answer{}, err
	}
	return h.introduce(ctx, s.Identity, reopened)
}

// register makes the identity known, and reports whether it was there before.
func (h *Hooks) register(ctx context.Context, id state.AgentID) (reopened bool, _ error) {
	_, err := h.Rig.Agents.Get(string(id))
	return err == nil, actor.Adopt(ctx, h.Rig, id, h.Agent)
}

// introduce tells a subagent who it is.
func (h *Hooks) introduce(ctx context.Context, id state.AgentID, reopened bool) (agentcli.Answer, error) {
	b, err := prompt.Prime(ctx, h.Rig, id)
	if err != nil {
		return agentcli.Answer{}, err
	}
	var p quote.Builder
	p.Addf("\n%s spawned you. Speak as yourself with `chipset --as %s …`: mail send, mail inbox, hook show, handoff write.\n", h.Agent, id)
	if reopened {
		p.Add("You were here before under this name: your mail, hook and hand-offs are still yours.\n")
	}
	text := b.Within(h.limit(h.event)*2/3-len(p.Text())) + p.Text()
	h.used = len(text)
	mail, err := h.give(ctx, id, true)
	return agentcli.Answer{Context: text + mail}, err
}

// subagentStop keeps a subagent going whose hook holds work, or ends it: its
// identity rests, and its parent is told what has become free meanwhile.
func (h *Hooks) subagentStop(ctx context.Context) (agentcli.Answer, error) {
	s, err := h.readSubagent(h.claimedPath(h.in.AgentID))
	if errors.Is(err, state.ErrNotFound) || h.in.AgentID == "" {
		return agentcli.Answer{}, nil
	}
	if err != nil {
		return agentcli.Answer{}, err
	}
	if a, err := h.stop(ctx, s.Identity); err != nil || a.GoOn != "" {
		return a, err
	}
	if err := h.rest(ctx, &s, key(h.in.AgentID)+".json"); err != nil {
		return agentcli.Answer{}, err
	}
	now, err := h.ready()
	if err != nil {
		return agentcli.Answer{}, err
	}
	var free []string
	for _, id := range now {
		if !slices.Contains(s.Ready, id) {
			free = append(free, string(id))
		}
	}
	if len(free) == 0 {
		return agentcli.Answer{}, nil
	}
	notice := quote.Sprintf("While %s worked these beads became free to begin: %s.", s.Identity, strings.Join(free, ", "))
	return agentcli.Answer{}, h.change(ctx, h.Agent, func(m *memory) bool { m.Notices = append(m.Notices, notice); return true })
}

// rest ends a subagent that has the file of this name, and keeps who it was: its
// agent may speak to it again, under the same id of the client.
func (h *Hooks) rest(ctx context.Context, s *subagent, file string) error {
	err := actor.Rest(ctx, h.Rig, s.Identity)
	if err = errors.Join(err, h.Rig.Tree.Remove(h.memoryPath(s.Identity))); err != nil {
		return err
	}
	data, err := state.Encode(s)
	if err != nil {
		return err
	}
	if err := h.Rig.Tree.Replace(h.restedDir().Join(file), data); err != nil {
		return err
	}
	return h.Rig.Tree.Remove(h.claimedDir().Join(file))
}

// endSubagents ends those that did not live to tell.
func (h *Hooks) endSubagents(ctx context.Context) error {
	entries, err := h.Rig.Tree.List(h.claimedDir())
	for _, e := range entries {
		if s, readErr := h.readSubagent(h.claimedDir().Join(e.Name())); readErr == nil && s.Identity != "" {
			err = errors.Join(err, h.rest(ctx, &s, e.Name()))
		}
	}
	return err
}

// identity is who a subagent of a name is: below the agent that spawned it, so
// that no name makes it somebody else.
func (h *Hooks) identity(name string) state.AgentID {
	slug := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, name), "-._")
	if slug == "" {
		slug = "subagent"
	}
	id := string(h.Agent) + "." + slug
	if len(id) > 60 { // room for a number
		id = id[:44] + "-" + key(id + "/")[1:16]
	}
	return state.AgentID(id)
}

// freeIdentity is the identity of a subagent's name, or a numbered one while
// another of that name runs.
func (h *Hooks) freeIdentity(s *subagent) (state.AgentID, error) {
	name := s.Name
	if name == "" {
		name = s.Type
	}
	taken, err := h.running()
	if err != nil {
		return "", err
	}
	id := h.identity(name)
	for n := 2; slices.Contains(taken, id); n++ {
		id = state.AgentID(fmt.Sprintf("%s-%d", h.identity(name), n))
	}
	return state.ParseAgentID(string(id))
}

// running are the identities of subagents of all sessions that have not ended.
func (h *Hooks) running() ([]state.AgentID, error) {
	sessions, err := h.Rig.Tree.List(clientsDir)
	if err != nil {
		return nil, err
	}
	var ids []state.AgentID
	for _, session := range sessions {
		dir := clientsDir.Join(session.Name(), "claimed")
		entries, err := h.Rig.Tree.List(dir)
		if err != nil {
			continue // no folder of ours
		}
		for _, e := range entries {
			if s, err := h.readSubagent(dir.Join(e.Name())); err == nil && s.Identity != "" {
				ids = append(ids, s.Identity)
			}
		}
	}
	return ids, nil
}

// maxReady bounds how many beads are compared.
const maxReady = 500

// ready are the beads that could be begun now.
func (h *Hooks) ready() ([]state.BeadID, error) {
	all, _, err := h.Rig.Beads.All()
	if err != nil {
		return nil, err
	}
	byID := bead.Index(all)
	var ids []state.BeadID
	for i := range all {
		if all[i].Status == bead.Open && len(bead.Blockers(&all[i], byID)) == 0 && len(ids) < maxReady {
			ids = append(ids, all[i].ID)
		}
	}
	return ids, nil
}
