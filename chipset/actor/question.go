package actor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Question is something that an agent has asked the person or the mayor and needs
// answered to continue: a plan, a permission, or mail whose answer it waited for. The
// mail is the only record of it.
type Question struct {
	// Name and Request are the agent's message, or the one with which the mayor passed it on.
	Name    mail.Name
	Request mail.Message
	Asker   state.AgentID
	// Reply is nil while nobody has replied. It decides the question only if
	// mail.AnswerOf says so.
	Reply *mail.Entry
	// Awaited is true once a command of the asker has waited for the answer.
	Awaited bool
}

// Answered reports whether there is a reply.
func (q *Question) Answered() bool { return q.Reply != nil }

// What returns the question on one line: the rule of a permission, the first line of a
// plan, the subject of mail.
func (q *Question) What() string {
	switch q.Request.Type {
	case mail.PermissionRequest:
		if rule := mail.AskOf(&q.Request).Rule; rule != "" {
			return rule
		}
	case mail.PlanRequest:
		if line := wording.FirstLine(q.Request.Body); line != "" {
			return line
		}
	}
	return q.Request.Subject
}

// Questions returns what an agent has asked about the work on its hook, oldest first.
// It reads only mail between the agent, the mayor and the person since the work was
// assigned.
func Questions(r *rig.Rig, who state.AgentID, item *hook.WorkItem) ([]Question, error) {
	q := inquiry{Rig: r, items: map[state.AgentID]*hook.WorkItem{who: item}}
	for _, reader := range []state.AgentID{state.Human, r.Mayor()} {
		if err := since(r.Mailbox(reader), item.AssignedAt, []state.AgentID{who, r.Mayor()}, q.note); err != nil {
			return nil, err
		}
	}
	return q.asked, q.findReplies()
}

// OpenQuestions returns the unanswered questions of an agent about the work on its
// active hook, oldest first. There are none once the attempt is over.
func OpenQuestions(r *rig.Rig, who state.AgentID, item *hook.WorkItem) ([]Question, error) {
	if attemptOver(r, item.AssignmentID) {
		return nil, nil
	}
	asked, err := Questions(r, who, item)
	return Unanswered(asked), err
}

// AwaitedAnswers returns the open questions of an agent whose worker has ended its turn
// and will continue with the answer. There are none while the worker runs.
func AwaitedAnswers(r *rig.Rig, h *hook.Hook) ([]Question, error) {
	if h.Status != hook.Active || h.WorkItem == nil || h.WorkItem.Session == "" {
		return nil, nil
	}
	exit, found, err := r.WorkerExit(h.WorkItem.Session)
	if err != nil && !errors.Is(err, process.ErrBadRecord) {
		return nil, err
	}
	if found && !exit.Done {
		return nil, nil
	}
	return OpenQuestions(r, h.AgentID, h.WorkItem)
}

// AllOpenQuestions is OpenQuestions for all hooks of a rig, together with the plan and
// permission requests of agents without work, which stay open until they are answered
// or archived.
func AllOpenQuestions(r *rig.Rig, hooks map[state.AgentID]*hook.Hook) ([]Question, error) {
	q := inquiry{Rig: r, items: map[state.AgentID]*hook.WorkItem{}, loose: true}
	from := r.Clock.Now()
	for id, h := range hooks {
		if h.Status != hook.Active || h.WorkItem == nil {
			continue
		}
		q.items[id] = h.WorkItem
		if h.WorkItem.AssignedAt.Before(from.Time) {
			from = h.WorkItem.AssignedAt
		}
	}
	archived, err := r.Mailbox(state.Human).Select(true, func(at state.Time, _ state.AgentID) bool { return !at.Before(from.Add(-clockSlack)) })
	if err != nil {
		return nil, err
	}
	person, _, err := r.Mailbox(state.Human).List()
	if err != nil {
		return nil, err
	}
	// The mayor has passed on or answered whatever it has read.
	mayor, _, err := r.Mailbox(r.Mayor()).Unread()
	if err != nil {
		return nil, err
	}
	for _, found := range [][]mail.Entry{archived, person, mayor} {
		for i := range found {
			q.note(&found[i])
		}
	}
	err = q.findReplies()
	open := slices.DeleteFunc(Unanswered(q.asked), func(o Question) bool {
		item := q.items[o.Asker]
		return item != nil && o.about(item) && attemptOver(r, item.AssignmentID)
	})
	return open, err
}

// inquiry collects questions.
type inquiry struct {
	*rig.Rig
	// items are what the agents work on.
	items map[state.AgentID]*hook.WorkItem
	// loose is true if questions about no work count, too.
	loose bool
	asked []Question
	known map[mail.Name]bool
	// awaited caches what the agents waited for.
	awaited map[state.AgentID]awaited
}

// note adds a message if it is a question.
func (q *inquiry) note(e *mail.Entry) {
	isRequest := e.Type == mail.PlanRequest || e.Type == mail.PermissionRequest
	if !isRequest && (e.Type != mail.Coordination || e.To != state.Human || e.From == q.Mayor()) {
		return
	}
	asked := Question{Request: e.Message}
	asked.Asker, asked.Name = Asker(q.Rig, e)
	item := q.items[asked.Asker]
	var work state.AssignmentID
	if item != nil {
		work = item.AssignmentID
	}
	asked.Awaited = q.awaitedBy(asked.Asker).holds(work, asked.Name)
	switch {
	case q.known[asked.Name]:
		return
	case item != nil && asked.about(item) && (isRequest || asked.Awaited):
	case q.loose && !e.Archived && asked.Asker != state.Human && (e.Ref == nil || e.Ref.AssignmentID == "") && (isRequest || asked.Awaited):
	default:
		return
	}
	if q.known == nil {
		q.known = map[mail.Name]bool{}
	}
	q.known[asked.Name] = true
	q.asked = append(q.asked, asked)
}

func (q *Question) about(item *hook.WorkItem) bool {
	return q.Awaited || q.Request.Ref != nil && q.Request.Ref.AssignmentID == item.AssignmentID
}

func (q *inquiry) awaitedBy(id state.AgentID) awaited {
	known, found := q.awaited[id]
	if !found {
		known = readAwaited(q.Tree, id)
		if q.awaited == nil {
			q.awaited = map[state.AgentID]awaited{}
		}
		q.awaited[id] = known
	}
	return known
}

// findReplies finds the replies in the askers' mailboxes, and sorts the questions by
// time.
func (q *inquiry) findReplies() error {
	slices.SortStableFunc(q.asked, func(a, b Question) int { return a.Request.Timestamp.Compare(b.Request.Timestamp.Time) })
	looked := map[state.AgentID]bool{}
	for i := range q.asked {
		who, from := q.asked[i].Asker, q.asked[i].Request.Timestamp
		if looked[who] {
			continue
		}
		looked[who] = true
		if item := q.items[who]; item != nil && item.AssignedAt.Before(from.Time) {
			from = item.AssignedAt
		}
		err := since(q.Mailbox(who), from, []state.AgentID{state.Human, q.Mayor()}, func(e *mail.Entry) {
			for k := range q.asked {
				o := &q.asked[k]
				if o.Asker == who && o.Reply == nil && (e.InReplyTo == string(o.Name) || e.Thread == string(o.Name)) {
					o.Reply = e
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// attemptOver reports whether an attempt has a retire record.
func attemptOver(r *rig.Rig, a state.AssignmentID) bool {
	_, err := r.Retire.Get(string(a))
	return err == nil
}

// clockSlack is how far a clock may have been set back while work was on a hook.
// Older mail is not opened; newer mail counts by its reference, not by its time.
const clockSlack = 24 * time.Hour

// since calls each for the mail of some senders from about an instant on, including archived mail.
func since(box *mail.Mailbox, from state.Time, senders []state.AgentID, each func(*mail.Entry)) error {
	wanted := func(at state.Time, sender state.AgentID) bool {
		return slices.Contains(senders, sender) && !at.Before(from.Add(-clockSlack))
	}
	for _, archived := range []bool{true, false} { // oldest first
		found, err := box.Select(archived, wanted)
		if err != nil {
			return err
		}
		for i := range found {
			each(&found[i])
		}
	}
	return nil
}

// Unanswered returns the questions without a reply.
func Unanswered(asked []Question) []Question {
	return slices.DeleteFunc(slices.Clone(asked), func(q Question) bool { return q.Answered() })
}

// Asker returns the agent that waits for the answer to a request, and the name of its
// message: the sender, or, if the mayor has passed the request on, the agent that asked
// the mayor.
func Asker(r *rig.Rig, e *mail.Entry) (state.AgentID, mail.Name) {
	if e.From != r.Mayor() || e.Thread == "" || e.Thread != e.InReplyTo {
		return e.From, e.Name
	}
	name, err := mail.ParseName(e.Thread)
	if err != nil {
		return e.From, e.Name
	}
	first, err := r.Mailbox(r.Mayor()).Get(name)
	if err != nil || first.Type != e.Type {
		return e.From, e.Name
	}
	return first.From, name
}

// Decision is an answer to a request.
type Decision struct {
	Approved bool
	Reason   string
	// Remember keeps the decision about a permission for every agent that asks for the
	// same again, or with OnlyAgent only for the one that asked now.
	Remember, OnlyAgent bool
}

// Decide answers a request in the actor's mailbox. The person may also answer one in
// the mailbox of the mayor, who may not have passed it on yet. Plans are decided by the
// mayor or the person, permissions by the person, shutdowns by the agent that was asked.
// The answer goes to the agent that asked, even if the mayor has passed the request on.
// Errors: ErrInvalid, state.ErrConflict.
func (a *Actor) Decide(ctx context.Context, e *mail.Entry, d Decision) (mail.Name, error) {
	what := "message " + string(e.Name)
	if err := a.mayDecide(e); err != nil {
		return "", err
	}
	if d.Remember && e.Type != mail.PermissionRequest {
		return "", Invalidf("%s does not ask for a permission, so there is nothing to remember", what)
	}
	if !d.Approved && strings.TrimSpace(d.Reason) == "" && e.Type != mail.PermissionRequest {
		return "", Invalidf("a reason is required to send it back")
	}
	to, asked := Asker(a.Rig, e)
	answer := mail.Answer{Approved: &d.Approved, Reason: d.Reason}
	if d.Remember {
		rule, err := a.remember(ctx, mail.AskOf(&e.Message).Rule, to, d)
		if err != nil {
			return "", err
		}
		answer.Remembered = rule.ID
	}
	meta, err := json.Marshal(answer)
	if err != nil {
		return "", err
	}
	word := "approved"
	if !d.Approved {
		word = "denied"
	}
	// With this id a repeated answer is not delivered twice: a decision is made once.
	n, err := a.SendMail(ctx, mail.Message{Type: responseTo(e.Type), Priority: mail.Urgent, Subject: word + ": " + e.Subject, Body: d.Reason,
		Thread: string(asked), InReplyTo: string(asked), Ref: e.Ref, Metadata: meta, ID: "decision:" + word + ":" + string(asked)}, string(to))
	if err != nil {
		return n, err
	}
	return n, a.retireRequest(ctx, e, asked)
}

// retireRequest marks an answered request as read, and the mail with which the mayor
// passed it on, so that nobody is asked again.
func (a *Actor) retireRequest(ctx context.Context, e *mail.Entry, asked mail.Name) error {
	for _, owner := range slices.Compact([]state.AgentID{e.To, state.Human, a.Mayor()}) {
		unread, _, err := a.Mailbox(owner).Unread()
		if err != nil {
			return err
		}
		for i := range unread {
			u := &unread[i]
			if u.Name != e.Name && u.Name != asked && (u.Type != e.Type || u.Thread != string(asked)) {
				continue
			}
			if err := a.Mailbox(owner).MarkRead(ctx, u.Name); err != nil {
				return fmt.Errorf("the answer is sent, but %s is not marked as read: %w", u.Name, err)
			}
		}
	}
	return nil
}

// mayDecide returns an ErrConflict unless the actor may answer a request.
func (a *Actor) mayDecide(e *mail.Entry) error {
	what := "message " + string(e.Name)
	if e.To != a.ID && a.ID != state.Human {
		return state.Conflictf(what, "it asks %s, and you speak as %s", e.To, a.ID)
	}
	switch e.Type {
	case mail.PlanRequest:
		return a.Authority("approving a plan")
	case mail.PermissionRequest:
		if a.ID != state.Human {
			return state.Conflictf("permission", "only the person may grant one, and you speak as %s", a.ID)
		}
		return nil
	case mail.ShutdownRequest:
		who, err := a.Agents.Get(string(a.ID))
		if err == nil && who.Role != agent.Crew {
			return state.Conflictf(what, "only the process of %s may answer it", a.ID)
		}
		return err
	default:
		return Invalidf("%s is a %s and asks for no decision", what, e.Type)
	}
}

// WaitDecision waits for the answer to a request of the actor, and marks it as read.
// Mail that only looks like an answer is ignored. Errors: ErrTimeout.
func (a *Actor) WaitDecision(ctx context.Context, asked mail.Name, timeout time.Duration) (mail.Answer, error) {
	var answer mail.Answer
	_, err := a.waitReply(ctx, asked, timeout, func(e *mail.Entry) (decides bool) {
		answer, decides = mail.AnswerOf(&e.Message, a.Mayor())
		return decides
	})
	return answer, err
}

// WaitAnswer waits for the reply of the person or the mayor to a question of the actor,
// and marks it as read. Errors: ErrTimeout.
func (a *Actor) WaitAnswer(ctx context.Context, asked mail.Name, timeout time.Duration) (mail.Entry, error) {
	return a.waitReply(ctx, asked, timeout, func(e *mail.Entry) bool { return e.From == state.Human || e.From == a.Mayor() })
}

func (a *Actor) waitReply(ctx context.Context, asked mail.Name, timeout time.Duration, answers func(*mail.Entry) bool) (mail.Entry, error) {
	var found mail.Entry
	if err := a.setAwaited(ctx, asked, true); err != nil {
		return found, err
	}
	box := a.Mailbox(a.ID)
	err := Wait(ctx, a.Rig, "decision", timeout, func() (bool, error) {
		all, _, err := box.List()
		if err != nil {
			return false, err
		}
		for i := range all {
			if e := &all[i]; (e.InReplyTo == string(asked) || e.Thread == string(asked)) && answers(e) {
				found = *e
				return true, nil
			}
		}
		return false, nil
	}, box.Dir())
	if err != nil || found.Read {
		return found, err
	}
	return found, box.MarkRead(ctx, found.Name)
}

// Ask mails a question to the person, whose answer is mail in its thread. If the actor
// has already asked the same about the same work, it returns the name of that message.
// Errors: ErrInvalid.
func (a *Actor) Ask(ctx context.Context, question string) (mail.Name, error) {
	subject := wording.Clip(wording.FirstLine(question), maxQuestion)
	if subject == "" {
		return "", Invalidf("the question is empty")
	}
	p, err := a.Present()
	if err != nil {
		return "", err
	}
	name, err := a.askedBefore(func(m *mail.Message) bool { return m.Type == mail.Coordination && m.Body == question })
	if err != nil || name != "" {
		return name, err
	}
	name, err = a.SendMail(ctx, mail.Message{Type: mail.Coordination, Priority: mail.Urgent, Subject: subject, Body: question, Ref: p.ref()}, string(state.Human))
	if err != nil {
		return "", err
	}
	return name, a.setAwaited(ctx, name, true)
}

// maxQuestion bounds the part of a question that is its subject, in bytes.
const maxQuestion = 200

// askedBefore returns the name of the last equal question about the actor's work, or
// "". A worker that starts over repeats its questions.
func (a *Actor) askedBefore(same func(*mail.Message) bool) (mail.Name, error) {
	h, err := a.Hooks.Get(string(a.ID))
	if err != nil || h.Status != hook.Active || h.WorkItem == nil {
		return "", nil //nolint:nilerr // without work there are no earlier questions about it
	}
	asked, err := Questions(a.Rig, a.ID, h.WorkItem)
	if err != nil {
		return "", err
	}
	for i := len(asked) - 1; i >= 0; i-- {
		if same(&asked[i].Request) {
			return asked[i].Name, nil
		}
	}
	return "", nil
}
