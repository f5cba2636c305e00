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

// subagent is a helper that an agent spawns. Its identity is chosen at the call that spawns it, and its prompt
// says it. It is pending under the ID of that call, claimed under the client's ID of the subagent once the
// client has told which call that was, and rested when it has ended.
type subagent struct {
	// Identity is who it is in the rig.
	Identity state.AgentID `json:"identity"`
	// Given is the mail and nudges in its prompt; they are logged once it has started.
	Given *unanswered `json:"given,omitempty"`
	// Ready were the beads that could be begun when it started.
	Ready []state.BeadID `json:"ready,omitempty"`
}

func (h *Hooks) pendingDir() state.Path { return h.sessionDir().Join("pending") }
func (h *Hooks) claimedDir() state.Path { return h.sessionDir().Join("claimed") }
func (h *Hooks) restedDir() state.Path  { return h.sessionDir().Join("rested") }

func (h *Hooks) pendingPath(call string) state.Path { return h.pendingDir().Join(key(call) + ".json") }
func (h *Hooks) claimedPath(clientID string) state.Path {
	return h.claimedDir().Join(key(clientID) + ".json")
}

func (h *Hooks) readSubagent(p state.Path) (subagent, error) {
	var s subagent
	err := h.Rig.Tree.ReadJSON(p, &s)
	return s, err
}

// lockSubagents keeps two hooks from choosing identities at once.
func (h *Hooks) lockSubagents(ctx context.Context) (*state.Lock, error) {
	return h.Rig.Tree.Lock(ctx, state.LockRecord, "clients-of-"+string(h.Agent))
}

// spawning chooses the identity of the subagent that is being spawned, and puts it into its prompt.
func (h *Hooks) spawning(ctx context.Context) (agentcli.Answer, error) {
	tool := &h.in.Tool
	if h.Prepend == nil || tool.ID == "" || h.Prepend(h.in, "x") == "" {
		return agentcli.Answer{}, nil // it is settled when it starts
	}
	lock, err := h.lockSubagents(ctx)
	if err != nil {
		return agentcli.Answer{}, err
	}
	defer lock.Unlock()
	name := tool.Spawned
	if name == "" {
		name = tool.SpawnedType
	}
	s, text, err := h.introduce(ctx, h.identity(name))
	if err != nil {
		return agentcli.Answer{}, err
	}
	if last := len(h.given) - 1; last >= 0 { // it is logged when the subagent has started
		s.Given = &unanswered{Mail: h.given[last].mail.Whole, Nudges: h.given[last].nudges, How: h.how()}
		h.given = h.given[:last]
	}
	if err := h.Rig.Tree.ReplaceJSON(h.pendingPath(tool.ID), &s); err != nil {
		return agentcli.Answer{}, err
	}
	return agentcli.Answer{Input: h.Prepend(h.in, string(text)+"\n")}, nil
}

// settled returns the identity of the subagent of this event, "" while that is not certain.
func (h *Hooks) settled(ctx context.Context) (state.AgentID, error) {
	if s, err := h.readSubagent(h.claimedPath(h.in.AgentID)); err == nil {
		return s.Identity, nil
	}
	if h.SpawnedBy == nil || h.event == agentcli.SubagentStart {
		return "", nil
	}
	call := h.SpawnedBy(h.in)
	if call == "" {
		return "", nil
	}
	return h.claim(ctx, call, h.in.AgentID)
}

// claim ties the subagent that a call has spawned to the client's ID of it. It returns "" if the
// call is not pending.
func (h *Hooks) claim(ctx context.Context, call, clientID string) (state.AgentID, error) {
	lock, err := h.lockSubagents(ctx)
	if err != nil {
		return "", err
	}
	defer lock.Unlock()
	if s, err := h.readSubagent(h.claimedPath(clientID)); err == nil {
		return s.Identity, nil // another hook was faster
	}
	s, err := h.readSubagent(h.pendingPath(call))
	if errors.Is(err, state.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if g := s.Given; g != nil {
		h.given = append(h.given, given{who: s.Identity, how: g.How, fitted: fitted{mail: prompt.Fitted{Whole: g.Mail}, nudges: g.Nudges}})
		s.Given = nil
	}
	if s.Ready, err = h.ready(); err != nil {
		return "", err
	}
	if err := h.Rig.Tree.ReplaceJSON(h.claimedPath(clientID), &s); err != nil {
		return "", err
	}
	return s.Identity, h.Rig.Tree.Remove(h.pendingPath(call))
}

// subagentStart introduces a subagent whose prompt did not: a rested one that its agent speaks to again keeps its
// identity, one without a pending call is named after its type. While calls are pending, its first step tells
// which of them it is.
func (h *Hooks) subagentStart(ctx context.Context) (agentcli.Answer, error) {
	if h.in.AgentID == "" {
		return agentcli.Answer{}, nil
	}
	lock, err := h.lockSubagents(ctx)
	if err != nil {
		return agentcli.Answer{}, err
	}
	defer lock.Unlock()
	if there, err := h.Rig.Tree.Exists(h.claimedPath(h.in.AgentID)); there || err != nil {
		return agentcli.Answer{}, err
	}
	id := h.identity(h.in.AgentType)
	before, err := h.readSubagent(h.restedDir().Join(key(h.in.AgentID) + ".json"))
	if err == nil {
		id = before.Identity
	} else {
		pending, err := h.Rig.Tree.List(h.pendingDir())
		if len(pending) > 0 || err != nil {
			return agentcli.Answer{}, err
		}
	}
	s, text, err := h.introduce(ctx, id)
	if err != nil {
		return agentcli.Answer{}, err
	}
	if s.Ready, err = h.ready(); err != nil {
		return agentcli.Answer{}, err
	}
	return agentcli.Answer{Context: text}, h.Rig.Tree.ReplaceJSON(h.claimedPath(h.in.AgentID), &s)
}

// register registers an identity, and reports whether it existed before.
func (h *Hooks) register(ctx context.Context, id state.AgentID) (reopened bool, _ error) {
	_, err := h.Rig.Agents.Get(string(id))
	return err == nil, actor.Adopt(ctx, h.Rig, id, h.Agent)
}

// introduce registers a subagent as id, with a number if another one of that name runs, and returns the text
// that it begins with. The caller holds the lock.
func (h *Hooks) introduce(ctx context.Context, id state.AgentID) (subagent, quote.Text, error) {
	id, err := h.free(id)
	if err != nil {
		return subagent{}, "", err
	}
	reopened, err := h.register(ctx, id)
	if err != nil {
		return subagent{}, "", err
	}
	b, err := prompt.Prime(ctx, h.Rig, id)
	if err != nil {
		return subagent{}, "", err
	}
	var p quote.Builder
	p.Addf("\n%s spawned you. Speak as yourself with `chipset --as %s …`: mail send, mail inbox, hook show, handoff write.\n", h.Agent, id)
	if reopened {
		p.Add("You were here before under this name: your mail, hook and hand-offs are still yours.\n")
	}
	text := b.Within(h.limit(h.event)*2/3-len(p.Text())) + p.Text()
	h.used = len(text)
	fresh, err := h.give(ctx, id, true)
	return subagent{Identity: id}, text + fresh, err
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
	notice := quote.Sprintf("While %s worked, these beads became ready: %s.", s.Identity, strings.Join(free, ", "))
	return agentcli.Answer{}, h.change(ctx, h.Agent, func(m *memory) bool { m.Notices = append(m.Notices, notice); return true })
}

// rest ends a subagent that has the file of this name, and keeps who it was: its
// agent may speak to it again, under the same id of the client.
func (h *Hooks) rest(ctx context.Context, s *subagent, file string) error {
	err := actor.Rest(ctx, h.Rig, s.Identity)
	if err = errors.Join(err, h.Rig.Tree.Remove(h.memoryPath(s.Identity))); err != nil {
		return err
	}
	if err := h.Rig.Tree.ReplaceJSON(h.restedDir().Join(file), s); err != nil {
		return err
	}
	return h.Rig.Tree.Remove(h.claimedDir().Join(file))
}

// endSubagents ends the subagents that were killed, and those that never started.
func (h *Hooks) endSubagents(ctx context.Context) error {
	entries, err := h.Rig.Tree.List(h.claimedDir())
	for _, e := range entries {
		if s, readErr := h.readSubagent(h.claimedDir().Join(e.Name())); readErr == nil && s.Identity != "" {
			err = errors.Join(err, h.rest(ctx, &s, e.Name()))
		}
	}
	pending, listErr := h.Rig.Tree.List(h.pendingDir())
	for _, e := range pending {
		if s, readErr := h.readSubagent(h.pendingDir().Join(e.Name())); readErr == nil && s.Identity != "" {
			err = errors.Join(err, actor.Rest(ctx, h.Rig, s.Identity), h.Rig.Tree.Remove(h.memoryPath(s.Identity)))
		}
	}
	return errors.Join(err, listErr, h.Rig.Tree.RemoveAll(h.pendingDir()))
}

// identity returns the identity of a subagent: a name below that of the agent that
// spawned it, so that it is never another agent's.
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

// free returns an identity, with a number while another subagent has it.
func (h *Hooks) free(wanted state.AgentID) (state.AgentID, error) {
	taken, err := h.running()
	if err != nil {
		return "", err
	}
	id := wanted
	for n := 2; slices.Contains(taken, id); n++ {
		id = state.AgentID(fmt.Sprintf("%s-%d", wanted, n))
	}
	return state.ParseAgentID(string(id))
}

// running lists the identities of the subagents of all sessions that have not ended.
func (h *Hooks) running() ([]state.AgentID, error) {
	sessions, err := h.Rig.Tree.List(clientsDir)
	if err != nil {
		return nil, err
	}
	var ids []state.AgentID
	for _, session := range sessions {
		for _, folder := range []string{"pending", "claimed"} {
			dir := clientsDir.Join(session.Name(), folder)
			entries, err := h.Rig.Tree.List(dir)
			if err != nil {
				continue // not a session's folder
			}
			for _, e := range entries {
				if s, err := h.readSubagent(dir.Join(e.Name())); err == nil && s.Identity != "" {
					ids = append(ids, s.Identity)
				}
			}
		}
	}
	return ids, nil
}

// maxReady bounds how many beads are compared.
const maxReady = 500

// ready lists the open beads that wait for nothing.
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
