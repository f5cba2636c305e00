package actor

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

// awaited names the messages whose answers an agent waited for while it worked on an
// assignment: run/awaited/{agent}.json. Without the file they are ordinary requests
// and mail.
type awaited struct {
	Assignment state.AssignmentID `json:"assignment_id"`
	Messages   []mail.Name        `json:"messages"`
}

// maxAwaited bounds what is kept of one assignment.
const maxAwaited = 100

// AwaitedDir is the folder of these files.
const AwaitedDir = state.RunDir + "/awaited"

func awaitedPath(id state.AgentID) state.Path { return AwaitedDir.Join(string(id) + ".json") }

// readAwaited returns what an agent waited for, or nothing if the file can't be read.
func readAwaited(t *state.Tree, id state.AgentID) awaited {
	var a awaited
	data, err := t.Read(awaitedPath(id), state.MaxFile)
	if err != nil || json.Unmarshal(data, &a) != nil {
		return awaited{}
	}
	return a
}

func (a awaited) holds(assignment state.AssignmentID, name mail.Name) bool {
	return a.Assignment == assignment && slices.Contains(a.Messages, name)
}

// awaitReply turns the last mail that the actor has sent to the person about its work
// into a question, and returns its name. It returns "" if there is none, or if the
// actor waits for other mail.
func (a *Actor) awaitReply(ctx context.Context, f MailFilter) (mail.Name, error) {
	h, err := a.Hooks.Get(string(a.ID))
	if err != nil || h.Status != hook.Active || h.WorkItem == nil ||
		f.From != "" && f.From != state.Human || f.Type != "" && f.Type != mail.Coordination {
		return "", nil //nolint:nilerr // without a hook there is no work that could wait
	}
	var last mail.Name
	err = since(a.Mailbox(state.Human), h.WorkItem.AssignedAt, []state.AgentID{a.ID}, func(e *mail.Entry) {
		if e.Type == mail.Coordination && !e.Timestamp.Before(h.WorkItem.AssignedAt.Time) {
			last = e.Name
		}
	})
	if err != nil || last == "" {
		return "", err
	}
	return last, a.setAwaited(ctx, last, true)
}

// setAwaited records whether the actor waits for an answer to one of its messages.
func (a *Actor) setAwaited(ctx context.Context, name mail.Name, waits bool) error {
	p, err := a.Present()
	if err != nil {
		return err
	}
	lock, err := a.Tree.Lock(ctx, state.LockRecord, "awaited-"+string(a.ID))
	if err != nil {
		return err
	}
	defer lock.Unlock()
	known := readAwaited(a.Tree, a.ID)
	if known.Assignment != p.Assignment {
		known = awaited{Assignment: p.Assignment}
	}
	if slices.Contains(known.Messages, name) == waits {
		return nil
	}
	known.Messages = slices.DeleteFunc(known.Messages, func(n mail.Name) bool { return n == name })
	if waits {
		known.Messages = append(known.Messages, name)
		known.Messages = known.Messages[max(0, len(known.Messages)-maxAwaited):]
	}
	return a.Tree.ReplaceJSON(awaitedPath(a.ID), known)
}
