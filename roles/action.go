package roles

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
)

// Action is one thing to do: one of this package's, or of the role's own.
type Action interface{ IsAction() }

// The actions that roles share.
type (
	// Send sends mail of the role. Its ID makes a repetition after a crash the same
	// message. From is filled in, and what the message quotes of others is made fit
	// for a subject and for the rig's limit.
	Send struct{ Message mail.Message }
	// Nudge puts a nudge of the role into a slot. From and Timestamp are filled in.
	Nudge struct {
		To    state.AgentID
		Nudge nudge.Nudge
	}
	// MarkRead retires a message. Note says why nothing else was done, or is empty.
	MarkRead struct {
		Entry mail.Entry
		Note  string
	}
	// MarkSeen retires a nudge. Note says what became of it, or is empty.
	MarkSeen struct {
		Nudge nudge.Nudge
		Note  string
	}
	// Finish means that the process is to end, after the first tick in which nothing
	// fails.
	Finish struct{}
)

func (Send) IsAction()     {}
func (Nudge) IsAction()    {}
func (MarkRead) IsAction() {}
func (MarkSeen) IsAction() {}
func (Finish) IsAction()   {}

// Group is what one cause (a mail, a nudge, a fact) asks for: its effects in
// their order, then what retires the cause. Nothing in a group is done after
// something in it has failed.
type Group []Action

// Decision is what one tick of a role comes to. S is the role's state.
type Decision[S any] struct {
	// Groups stand alone: one that fails keeps no other from being carried out.
	Groups []Group
	// Work comes last. It is the group that Next stands on.
	Work Group
	// Next is the role's next state. It counts once all of Work, which may be
	// empty, is carried out; until then the same facts lead to it again.
	Next S
	// Again asks for another decision at once, on new facts, when Next counts.
	Again bool
}

// Actions are all actions of the decision, in their order.
func (d *Decision[S]) Actions() []Action { return slices.Concat(slices.Concat(d.Groups...), d.Work) }

// Answer is the nudge_response to a nudge, about what ref names.
func Answer(n *nudge.Nudge, message string, ref *nudge.Ref) Nudge {
	asked := n.Timestamp
	return Nudge{To: n.From, Nudge: nudge.Nudge{Type: nudge.Response, Message: message, InReplyTo: &asked, Ref: ref}}
}

// Approval is the metadata of a response that says yes.
func Approval() json.RawMessage { return json.RawMessage(`{"approved":true}`) }

// AnswerShutdown is the shutdown_response of a role that ends, its end, and what
// retires the request. A request that was read, but not obeyed, would be lost. Where it
// asks for no reply, the log alone says that the role has ended.
func AnswerShutdown(self state.AgentID, request mail.Entry, body string) Group {
	var g Group
	if !mail.AskOf(&request.Message).NoReply {
		g = Group{Send{mail.Message{To: request.From, Type: mail.ShutdownResponse, Metadata: Approval(), Subject: string(self) + " ends", Body: body,
			ID: "shutdown:" + string(request.Name), InReplyTo: string(request.Name), Ref: request.Ref}}}
	}
	return append(g, Finish{}, MarkRead{Entry: request})
}

// Backoff is how long to wait before the next try after a number of failures in a
// row: first after one, then twice as long after each further one, most at most.
func Backoff(first, most time.Duration, failures int) time.Duration {
	for ; failures > 1 && first < most; failures-- {
		first *= 2
	}
	return min(first, most)
}
