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

// memory is what one session was shown. It lies in run/: without it the agent
// is shown its unread mail again.
type memory struct {
	// Agent is whose session it is, in the memory of a session's own agent.
	Agent state.AgentID `json:"agent,omitempty"`
	// Program is the client that runs the session, in the memory of one that a person has open. Zero is not known.
	Program process.Program `json:"program,omitzero"`
	// Noted is when this was last written.
	Noted state.Time `json:"noted"`
	// Shown are the unread messages that the agent was shown, Listed those of which it knows that they wait.
	Shown  []mail.Name `json:"shown,omitempty"`
	Listed []mail.Name `json:"listed,omitempty"`
	// Looked is the version of the mailbox whose unread messages are all shown, so
	// that nothing need be read to know that nothing is new.
	Looked state.Stamp `json:"looked"`
	// Unanswered is what the model was given last.
	Unanswered []unanswered `json:"unanswered,omitempty"`
	// Nudges is the newest nudge of each sender that the agent was shown.
	Nudges map[state.AgentID]state.Time `json:"nudges,omitempty"`
	// Waits is when the hook began to wait that may wake the session, zero while a turn runs. Woken is the news for which
	// it was woken last.
	Waits state.Time `json:"waits,omitzero"`
	Woken []string   `json:"woken,omitempty"`
	// Notices wait for the agent's next step.
	Notices []quote.Text `json:"notices,omitempty"`
	// KeptGoing counts the times in a row that the agent wanted to stop, and was
	// kept from it, without a tool call between them.
	KeptGoing int `json:"kept_going,omitempty"`
	// Last is the agent's last word, for a hand-off.
	Last string `json:"last,omitempty"`
}

// key makes a file's name of an id that a client chose: the id itself where it
// may be one, and a hash of it otherwise.
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

// recall reads what an agent was shown. What can't be read was not shown.
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

// news are the messages and nudges of an agent that a session was not shown.
type news struct {
	letters []mail.Entry
	nudges  []nudge.Nudge
	// looked is the version of the mailbox before it was read, same that it is
	// the one that was looked at before, and letters were not read again.
	looked state.Stamp
	same   bool
}

func (n *news) empty() bool { return len(n.letters) == 0 && len(n.nudges) == 0 }

// unreadSince is what the agent has not processed: of mail what is meant to be read by it, and not by its role
// process. It is without the messages of a mailbox that has the version looked still.
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
			// A decision is its role process's to retire, and still the agent's to know.
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

// nudges are those that the agent has not processed. Those to a worker are processed by its
// polecat at once; for the worker all count that were sent since it has its work.
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

// unshown leaves of n what m does not know.
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

// note records what of n was shown, and forgets what is unread no more.
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
