package execute

import (
	"context"
	"fmt"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/wording"
)

// depthRecord keeps over a restart that the present crossing was reported.
const depthRecord = state.RunDir + "/queue-depth.json"

// notify tells mayor and witness of a request's end. The mayor's mail has the
// name that the request fixed.
func (r *Refinery) notify(ctx context.Context, id state.MergeID) error {
	q, err := r.Rig.Queue.Get(string(id))
	if err != nil || q.Notified || q.NoticeName == "" {
		return err
	}
	m := r.notice(&q)
	fix := func(name mail.Name) error {
		q, err = r.Rig.Queue.Update(ctx, string(id), func(u *mergequeue.Request) error {
			u.NoticeName = string(name)
			return nil
		})
		return err
	}
	if err := r.sendAs(ctx, mail.Name(q.NoticeName), m, fix); err != nil {
		return err
	}
	if q.Status != mergequeue.Merged {
		m.To, m.Type, m.Priority = r.Rig.Witness(), mail.Coordination, mail.Low
		if err := r.send(ctx, m); err != nil {
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

func (r *Refinery) notice(q *mergequeue.Request) mail.Message {
	m := mail.Message{To: r.Rig.Mayor(), Type: mail.MergeNotification, Ref: &mail.Ref{BeadID: q.BeadID, AssignmentID: q.AssignmentID},
		ID: fmt.Sprintf("%s:%s:%d", q.ID, mergequeue.Conflicted, q.Attempts)}
	if q.Status == mergequeue.Merged {
		m.ID = fmt.Sprintf("%s:%s", q.ID, mergequeue.Merged)
		m.Subject = fmt.Sprintf("%s merged: %s", q.BeadID, q.Landed())
		m.Body = fmt.Sprintf("%s of %s landed on %s as %s.\n", q.ID, q.AgentID, q.TargetBranch, q.MergedSHA)
		if q.HeldBefore() {
			m.Body = fmt.Sprintf("Nothing of %s of %s was left to land: %s.\n", q.ID, q.AgentID, q.Landed())
		}
		return m
	}
	m.Priority = mail.Urgent
	m.Subject = fmt.Sprintf("%s did not land (%s): %s", q.BeadID, q.Failure, wording.Reason(q.Reason))
	m.Body = fmt.Sprintf("%s of %s (branch %s) did not land on %s: %s.\n\n%s\n", q.ID, q.AgentID, q.SourceBranch, q.TargetBranch, q.Failure, q.Reason)
	if log := fmt.Sprintf("test-%s-%d.log", q.ID, q.Attempts); q.Failure == mergequeue.FailTests {
		m.Body += fmt.Sprintf("\nThe whole output: %s\n", r.Rig.Tree.Abs(state.LogDir.Join(log)))
	}
	return m
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

func (r *Refinery) recordDepth(a refinery.RecordDepth) error {
	err := r.Rig.Tree.ReplaceJSON(depthRecord, depthCrossing{Newest: a.Newest, Waiting: a.Waiting})
	r.deep = r.deep || err == nil
	return err
}
