package execute

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/team"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// depthRecord remembers over a restart that the present crossing was told of.
const depthRecord = state.RunDir + "/queue-depth.json"

func (r *Refinery) noticeName(at state.Time) mail.Name { return mail.NameAt(at, r.ID) }

func refOf(q *mergequeue.Request) *mail.Ref {
	return &mail.Ref{BeadID: q.BeadID, AssignmentID: q.AssignmentID}
}

// notify tells mayor and witness of a request's end. The mayor's mail has the
// name that the request fixed; where somebody else's message stands there, the
// next nanosecond is fixed first.
func (r *Refinery) notify(ctx context.Context, id state.MergeID) error {
	q, err := r.Rig.Queue.Get(string(id))
	if err != nil || q.Notified || q.NoticeName == "" {
		return err
	}
	m := r.notice(&q)
	for {
		err := r.Rig.SendAs(ctx, mail.Name(q.NoticeName), m)
		if !errors.Is(err, state.ErrExists) {
			if err := r.deliverable(m.To, err); err != nil {
				return err
			}
			break
		}
		next := r.noticeName(state.At(mail.Name(q.NoticeName).Time().Add(1)))
		if q, err = r.Rig.Queue.Update(ctx, string(id), func(u *mergequeue.Request) error {
			u.NoticeName = string(next)
			return nil
		}); err != nil {
			return err
		}
	}
	if q.Status != mergequeue.Merged {
		note := m
		note.To, note.Type, note.Priority = r.Rig.Witness(), mail.Coordination, mail.Low
		_, err := r.Rig.Send(ctx, note)
		if err := r.deliverable(note.To, err); err != nil {
			return err
		}
	}
	_, err = r.Rig.Queue.Update(ctx, string(id), func(u *mergequeue.Request) error {
		if u.NoticeName != q.NoticeName {
			return state.ErrUnchanged // it came to another end meanwhile
		}
		u.Notified = true
		return nil
	})
	return err
}

// deliverable takes mail to somebody who is not there for sent: it must not
// stop the queue.
func (r *Refinery) deliverable(to state.AgentID, err error) error {
	if errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrConflict) {
		r.Rig.Emit(event.Event{Type: "warning", Agent: r.ID, To: string(to), Text: "mail could not be delivered: " + err.Error()})
		return nil
	}
	return err
}

func (r *Refinery) notice(q *mergequeue.Request) mail.Message {
	m := mail.Message{From: r.ID, To: r.Rig.Mayor(), Type: mail.MergeNotification, Ref: refOf(q),
		ID: fmt.Sprintf("%s:%s:%d", q.ID, mergequeue.Conflicted, q.Attempts)}
	if q.Status == mergequeue.Merged {
		m.ID = fmt.Sprintf("%s:%s", q.ID, mergequeue.Merged)
		m.Subject = fmt.Sprintf("%s merged: %s is at %s", q.BeadID, q.TargetBranch, git.Hash(q.MergedSHA).Short())
		m.Body = fmt.Sprintf("%s of %s landed on %s as %s.\n", q.ID, q.AgentID, q.TargetBranch, q.MergedSHA)
		return m
	}
	m.Priority = mail.Urgent
	m.Subject = fmt.Sprintf("%s conflicted: %s: %s", q.BeadID, q.Failure, oneLine(q.Reason))
	m.Body = fmt.Sprintf("%s of %s (branch %s) did not land on %s: %s.\n\n%s\n", q.ID, q.AgentID, q.SourceBranch, q.TargetBranch, q.Failure, q.Reason)
	if log := fmt.Sprintf("test-%s-%d.log", q.ID, q.Attempts); q.Failure == mergequeue.FailTests {
		m.Body += fmt.Sprintf("\nThe whole output: %s\n", r.Rig.Tree.Abs(state.LogDir.Join(log)))
	}
	return m
}

// oneLine makes any text fit for a subject.
func oneLine(s string) string {
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, refinery.FirstLine(s)))
}

func (r *Refinery) tellHuman(ctx context.Context, a refinery.TellHuman) error {
	m := mail.Message{From: r.ID, To: state.Human, Type: mail.Coordination, Priority: mail.Urgent,
		Subject: oneLine(a.Subject), Body: clipText(a.Body, 4*maxReason), ID: clipText(a.ID, 150)}
	if q, err := r.Rig.Queue.Get(string(a.Request)); err == nil {
		m.Ref = refOf(&q)
	}
	_, err := r.Rig.Send(ctx, m)
	if err == nil {
		r.Say("%s", m.Subject)
	}
	return err
}

// depthCrossing is the content of depthRecord.
type depthCrossing struct {
	Newest  state.MergeID `json:"newest"`
	Waiting int           `json:"waiting"`
}

func (r *Refinery) warnedOfDepth() bool {
	ok, err := r.Rig.Tree.Exists(depthRecord)
	return err == nil && ok
}

func (r *Refinery) warnDepth(ctx context.Context, a refinery.WarnDepth) error {
	limit := r.Rig.Def.Merge.MaxWaiting
	_, err := r.Rig.Send(ctx, mail.Message{From: r.ID, To: r.Rig.Mayor(), Type: mail.Coordination, ID: "queue-depth:" + string(a.Newest),
		Subject: fmt.Sprintf("The merge queue is deep: %d requests wait", a.Waiting),
		Body: fmt.Sprintf("More than %d requests wait (merge.max_waiting). They land one at a time, in order; this is told once until the queue has shrunk.\n",
			limit)})
	if err := r.deliverable(r.Rig.Mayor(), err); err != nil {
		return err
	}
	data, err := state.Encode(depthCrossing{Newest: a.Newest, Waiting: a.Waiting})
	if err != nil {
		return err
	}
	return r.Rig.Tree.Replace(depthRecord, data)
}

func (r *Refinery) respond(ctx context.Context, a refinery.Respond) error {
	n := nudge.Nudge{From: r.ID, Type: nudge.Response, Message: clipText(a.Message, nudge.MaxMessage-8), InReplyTo: &a.Nudge.Timestamp, Ref: a.Nudge.Ref}
	_, err := r.Rig.Slot(a.Nudge.From).Send(ctx, n, r.Now())
	if err == nil {
		r.Rig.Emit(event.Event{Type: "nudge.sent", Agent: r.ID, From: string(r.ID), To: string(a.Nudge.From), Text: string(n.Type) + ": " + n.Message})
	}
	return err
}

func (r *Refinery) answerShutdown(ctx context.Context, e *mail.Entry) error {
	_, err := r.Rig.Send(ctx, mail.Message{From: r.ID, To: e.From, Type: mail.ShutdownResponse, Metadata: team.Approval(), Ref: e.Ref, InReplyTo: string(e.Name),
		ID: clipText(string(mail.ShutdownResponse)+":"+string(e.Name), 190), Subject: string(r.ID) + " ends",
		Body: "The request at hand is done; what waits, waits for the next process.\n"})
	return r.deliverable(e.From, err)
}
