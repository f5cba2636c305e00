package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
)

// memory is what one session was shown. It is in run/: if it is lost, the agent is shown
// its unread mail again.
type memory struct {
	// Agent is the session's own agent; it is set in that agent's memory alone.
	Agent state.AgentID `json:"agent,omitempty"`
	// Program is the client process of a session that a person has open, zero if not known.
	Program process.Program `json:"program,omitzero"`
	// Noted is when this was last written.
	Noted state.Time `json:"noted"`
	// Shown are the unread messages that the agent was shown, Listed those of which it saw the subject.
	Shown  []mail.Name `json:"shown,omitempty"`
	Listed []mail.Name `json:"listed,omitempty"`
	// Looked is the version of the mailbox at which all unread messages were shown: while
	// it is the same nothing is read.
	Looked state.Stamp `json:"looked"`
	// Unanswered is what the model was given and may not have read yet.
	Unanswered []unanswered `json:"unanswered,omitempty"`
	// Nudges is the newest nudge of each sender that the agent was shown.
	Nudges map[state.AgentID]state.Time `json:"nudges,omitempty"`
	// Waits is when the hook that may wake the session began to wait, zero while a turn runs. Woken is the news that
	// last woke it.
	Waits state.Time `json:"waits,omitzero"`
	Woken []string   `json:"woken,omitempty"`
	// Notices wait for the agent's next step.
	Notices []quote.Text `json:"notices,omitempty"`
	// KeptGoing counts how often in a row, without a tool call between, the agent was kept
	// from stopping.
	KeptGoing int `json:"kept_going,omitempty"`
	// Last is the agent's last message, for a hand-off.
	Last string `json:"last,omitempty"`
}

// key returns a file name for an ID that a client chose: the ID itself if it is a valid
// name, and a hash of it otherwise.
func key(id string) string {
	if lower := strings.ToLower(id); state.CheckID(lower) == nil {
		return lower
	}
	sum := sha256.Sum256([]byte(id))
	return "x" + hex.EncodeToString(sum[:16])
}

const clientsDir = state.RunDir + "/clients"

func (h *Hooks) sessionDir() state.Path { return clientsDir.Join(key(h.in.Session)) }

func (h *Hooks) memoryPath(who state.AgentID) state.Path {
	if who == h.Agent {
		return h.sessionDir().Join("memory.json")
	}
	return h.sessionDir().Join("memory-" + string(who) + ".json")
}

// recall reads an agent's memory, empty if it can't be read.
func (h *Hooks) recall(who state.AgentID) memory {
	var m memory
	if h.Rig.Tree.ReadJSON(h.memoryPath(who), &m) != nil {
		return memory{}
	}
	return m
}

// change rewrites an agent's memory under the session's lock, because tools and
// so hooks run side by side. change reports whether it changed anything.
func (h *Hooks) change(ctx context.Context, who state.AgentID, change func(m *memory) bool) error {
	lock, err := h.Rig.Tree.Lock(ctx, state.LockRecord, "client-"+key(h.in.Session))
	if err != nil {
		return err
	}
	defer lock.Unlock()
	m := h.recall(who)
	if !change(&m) {
		return nil
	}
	if m.Noted = h.Rig.Clock.Now(); who == h.Agent {
		m.Agent = who
	}
	return h.Rig.Tree.ReplaceJSON(h.memoryPath(who), m)
}

// news are messages and nudges of an agent.
type news struct {
	letters []mail.Entry
	nudges  []nudge.Nudge
	// looked is the version of the mailbox before it was read. same: it has not changed
	// since the last look, and letters were not read again.
	looked state.Stamp
	same   bool
}

func (n *news) empty() bool { return len(n.letters) == 0 && len(n.nudges) == 0 }

// unreadSince returns the unread mail that is meant for the agent, not its role process, and its nudges. It does not
// read the mail of a mailbox whose version is still looked.
func (h *Hooks) unreadSince(who state.AgentID, looked state.Stamp) (news, error) {
	var n news
	var err error
	box := h.Rig.Mailbox(who)
	if n.looked, err = box.Stamp(); err != nil {
		return n, err
	}
	if n.same = looked != (state.Stamp{}) && n.looked == looked; !n.same {
		letters, _, err := box.Unread()
		if err != nil {
			return n, err
		}
		for i := range letters {
			// The role process retires a decision, but the agent must know it, too.
			if t := letters[i].Type; !t.RoleOnly() || t == mail.PlanResponse || t == mail.PermissionResponse {
				n.letters = append(n.letters, letters[i])
			}
		}
		mail.SortForProcessing(n.letters, h.Rig.Mayor())
	}
	n.nudges, err = h.nudges(who)
	if errors.Is(err, state.ErrNotFound) {
		err = nil
	}
	return n, err
}

// nudges returns the nudges that the agent has not seen. A polecat marks those to its worker as
// seen at once, so a worker gets all that were sent since its assignment.
func (h *Hooks) nudges(who state.AgentID) ([]nudge.Nudge, error) {
	slot := h.Rig.Slot(who)
	if h.Assignment == "" || who != h.Agent {
		fresh, _, err := slot.Unseen()
		return fresh, err
	}
	all, _, err := slot.All()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	current, err := h.Rig.Hooks.Get(string(who))
	if err != nil || current.Assignment() != h.Assignment {
		return nil, err
	}
	return slices.DeleteFunc(all, func(n nudge.Nudge) bool {
		if n.Ref != nil && n.Ref.AssignmentID != "" {
			return n.Ref.AssignmentID != h.Assignment
		}
		return n.Timestamp.Before(current.WorkItem.AssignedAt.Time)
	}), nil
}

// unshown returns the part of n that was not shown.
func (m *memory) unshown(n news) news {
	var left news
	for i := range n.letters {
		if !slices.Contains(m.Shown, n.letters[i].Name) {
			left.letters = append(left.letters, n.letters[i])
		}
	}
	for i := range n.nudges {
		if n.nudges[i].Timestamp.After(m.Nudges[n.nudges[i].From].Time) {
			left.nudges = append(left.nudges, n.nudges[i])
		}
	}
	return left
}

// note records what of n was shown, and forgets what is no longer unread.
func (m *memory) note(n news, f *fitted) {
	m.Notices = m.Notices[f.notices:]
	for i := range f.nudges {
		if m.Nudges == nil {
			m.Nudges = map[state.AgentID]state.Time{}
		}
		m.Nudges[f.nudges[i].From] = f.nudges[i].Timestamp
	}
	if n.same {
		return
	}
	var shown, listed []mail.Name
	for i := range n.letters {
		switch name := n.letters[i].Name; {
		case slices.Contains(m.Shown, name), slices.Contains(f.mail.Whole, name), slices.Contains(f.mail.Cut, name):
			shown = append(shown, name)
		case slices.Contains(m.Listed, name), slices.Contains(f.mail.Listed, name):
			listed = append(listed, name)
		}
	}
	m.Shown, m.Listed, m.Looked = shown, listed, state.Stamp{}
	if len(shown) == len(n.letters) {
		m.Looked = n.looked
	}
}
