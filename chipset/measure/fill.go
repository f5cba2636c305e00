// Package measure measures what a rig costs on a given disk, each figure together with a
// baseline from the same run. `chipset bench` prints the results; the benchmarks of this
// package measure what does not depend on the disk.
package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

// Size is the amount of records in a rig.
type Size struct {
	// Agents are polecats, idle, each with a hook and an empty mailbox.
	Agents int
	// Open and Landed are numbers of beads. Landed ones have a merge request and the record of an attempt.
	Open, Landed int
	// Blocked is the number of open beads that wait for a blocked one.
	Blocked int
	// Messages is the number of messages in the mailbox of To, the newest Unread of them unread;
	// Archived that in its archive.
	To                         state.AgentID
	Messages, Unread, Archived int
}

// waiting is the blocked bead that others wait for.
const waiting state.BeadID = "mb-first"

// began is the time of everything that Fill makes.
func began() time.Time { return time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC) }

// Fill puts the records of size into a tree.
func Fill(ctx context.Context, t *state.Tree, size Size) error {
	var f filler
	at := state.At(began())
	for i := range size.Agents {
		id := state.AgentID(fmt.Sprintf("polecat-%05d", i))
		f.add(agent.Dir.Join(string(id)+".json"), agent.Agent{ID: id, Role: agent.Polecat, Status: agent.Idle, Rig: "measured", CreatedAt: at, UpdatedAt: at})
		f.add(hook.Dir.Join(string(id)+".json"), hook.Hook{AgentID: id, Status: hook.Empty, LastActivity: at, Gen: 1})
	}
	for i := range size.Open + size.Landed {
		f.bead(i, i >= size.Open, at)
	}
	if size.Blocked > 0 {
		f.add(bead.Dir.Join(string(waiting)+".json"), bead.Bead{ID: waiting, Title: "What all wait for", Status: bead.Blocked, CloseReason: "waits for a person",
			Priority: bead.P2, CreatedAt: at, UpdatedAt: at, Gen: 1})
	}
	for i := range size.Blocked {
		id := state.BeadID(fmt.Sprintf("mb-%05d", i))
		f.add(bead.Dir.Join(string(id)+".json"), bead.Bead{ID: id, Title: fmt.Sprintf("Blocked bead %d", i), Status: bead.Open, Priority: bead.P2,
			BlockedBy: []state.BeadID{waiting}, CreatedAt: at, UpdatedAt: at, Gen: 1})
	}
	for i := range size.Messages + size.Archived {
		m := Message(size.To, i)
		m.Read = i < size.Messages+size.Archived-size.Unread
		dir := mail.Dir.Join(string(size.To))
		if i < size.Archived {
			dir = dir.Join("archive")
		}
		f.add(dir.Join(string(mail.NameAt(m.Timestamp, m.From))), m)
	}
	if f.err != nil {
		return f.err
	}
	for _, err := range t.WriteAll(f.news) {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Message returns the i-th message to a recipient, of about 500 bytes.
func Message(to state.AgentID, i int) mail.Message {
	return mail.Message{From: "measurer", To: to, Type: mail.Coordination, Subject: fmt.Sprintf("measured message %d", i), Priority: mail.Normal,
		Body:      "The quick brown fox jumps over the lazy dog, and the lazy dog, who has seen it before, does not look up from its bowl. " + "What was measured here is written down elsewhere; this text is only as long as messages of agents often are.",
		Timestamp: state.At(began().Add(time.Duration(i) * time.Millisecond))}
}

type filler struct {
	news []state.NewFile
	err  error
}

func (f *filler) add(p state.Path, v any) {
	data, err := state.Encode(v)
	if err != nil && f.err == nil {
		f.err = err
	}
	f.news = append(f.news, state.NewFile{Path: p, Data: data})
}

func (f *filler) bead(i int, landed bool, at state.Time) {
	id := state.BeadID(fmt.Sprintf("me-%05d", i))
	b := bead.Bead{ID: id, Title: fmt.Sprintf("Measured bead %d", i), Description: "What is to be done, in a few words, as a person would write it down for an agent.",
		Status: bead.Open, Priority: bead.P2, CreatedAt: at, UpdatedAt: at, Gen: 1}
	if landed {
		a := state.AssignmentID(fmt.Sprintf("as-%05d", i))
		branch := "polecat/" + string(id)
		hash := fmt.Sprintf("%040x", i+1)
		b.Status, b.AssignmentID, b.Assignee, b.Branch, b.ClosedAt, b.Gen = bead.Merged, a, "polecat-00000", branch, &at, 5
		f.add(mergequeue.Dir.Join("mr-"+string(id)+".json"), mergequeue.Request{ID: state.MergeID("mr-" + string(id)), Seq: int64(i + 1),
			BeadID: id, AssignmentID: a, AgentID: "polecat-00000", SourceBranch: branch, TargetBranch: "main", Head: hash, MergedSHA: hash,
			Status: mergequeue.Merged, SubmittedAt: at, UpdatedAt: at})
		f.add(retire.Dir.Join(string(a)+".json"), retire.Record{AssignmentID: a, AgentID: "polecat-00000", BeadID: id, Outcome: retire.Done,
			Branch: branch, Base: hash, Head: hash, Stage: retire.Released})
	}
	f.add(bead.Dir.Join(string(id)+".json"), b)
}
