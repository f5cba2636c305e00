package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/need"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/permission"
	"github.com/gastown-chipset/chipset/state/wording"
)

// NeedKind is the kind of decision that a need asks for.
type NeedKind string

// Kinds of needs, in the order of lists.
const (
	// NeedPermission: an agent asks for a permission; ends with approve or deny.
	NeedPermission NeedKind = "permission"
	// NeedPlan: a worker changes nothing before its plan is decided; ends with approve or deny.
	NeedPlan NeedKind = "plan"
	// NeedQuestion: an agent asked by mail and waits; ends with an answer.
	NeedQuestion NeedKind = "question"
	// NeedLanding: a merge request stands still and is not to blame, or may not be
	// reworked; ends when its cause is removed, or with queue retry or drop.
	NeedLanding NeedKind = "landing"
	// NeedProtected: a merge request changes protected files; ends with approve or deny.
	NeedProtected NeedKind = "protected"
	// NeedPause: something that workers need is not there; ends by itself when it is, or
	// with resume.
	NeedPause NeedKind = "pause"
	// NeedHost: a worker or a test wanted to connect to a host that the rig does not allow; ends with approve or deny.
	NeedHost NeedKind = "host"
	// NeedBlocked: a bead waits for a person; ends with reopen, an answer or work cancel.
	NeedBlocked NeedKind = "blocked"
	// NeedDamage: records can't be read, and nothing happens to them; ends with their repair.
	NeedDamage NeedKind = "damage"
	// NeedIncident: a critical incident stands open; ends when the witness resolves it.
	NeedIncident NeedKind = "incident"
)

// needOrder is the order of lists: first those that hold up a worker or the queue.
func needOrder() []NeedKind {
	return []NeedKind{NeedPermission, NeedPlan, NeedQuestion, NeedProtected, NeedLanding, NeedPause, NeedHost, NeedBlocked, NeedDamage, NeedIncident}
}

// Need is a decision that only the person can make.
type Need struct {
	// Number names the need for commands; 0 where it could not be given one.
	Number int      `json:"number,omitempty"`
	Key    need.Key `json:"key"`
	Kind   NeedKind `json:"kind"`
	// What is the decision, and Why the reason for it, each on one line.
	What string `json:"what"`
	Why  string `json:"why,omitempty"`
	// AgentID is the agent that waits for the answer, or "".
	AgentID state.AgentID `json:"agent_id,omitempty"`
	// Since is when the cause appeared, zero if unknown.
	Since        state.Time         `json:"since"`
	BeadID       state.BeadID       `json:"bead_id,omitempty"`
	AssignmentID state.AssignmentID `json:"assignment_id,omitempty"`
	// Name is the message that asks.
	Name    mail.Name     `json:"name,omitempty"`
	MergeID state.MergeID `json:"merge_id,omitempty"`
	// Permission is the rule that waits for a decision.
	Permission string `json:"permission_id,omitempty"`
	// Change names the content of a change of protected files.
	Change string `json:"change,omitempty"`
	// Scope is what is paused.
	Scope pause.Scope `json:"scope,omitempty"`
	// Behind are the beads that wait for this one, directly or behind others, and
	// those whose merge requests wait behind it.
	Behind []state.BeadID `json:"behind"`
	// Commands are those that answer it.
	Commands []string `json:"commands"`
}

// Needs returns everything that waits for the person, in the order of lists, with
// numbers. If a source can't be read, it returns the other needs and an error.
func Needs(ctx context.Context, r *rig.Rig) ([]Need, error) {
	m, err := glance(ctx, r)
	if err != nil {
		return nil, err
	}
	m.ask()
	return m.needs(ctx)
}

func (m *Model) needs(ctx context.Context) ([]Need, error) {
	b := needBuilder{Model: m, needs: []Need{}}
	err := errors.Join(b.questions(), b.blocked())
	b.landings()
	b.pauses()
	b.hosts()
	b.damage()
	b.incidents()
	b.behind()
	slices.SortStableFunc(b.needs, func(x, y Need) int { return x.Since.Compare(y.Since.Time) })
	var numbered []need.Numbered
	for i := range b.needs {
		numbered = append(numbered, need.Numbered{Key: b.needs[i].Key, What: b.needs[i].What})
	}
	// A tree that can't be written has needs without new numbers.
	numbers, numberErr := need.NewStore(m.r.Tree).Assign(ctx, numbered)
	for i := range b.needs {
		b.needs[i].Number = numbers[b.needs[i].Key]
		b.needs[i].addCommands()
	}
	order := needOrder()
	slices.SortStableFunc(b.needs, func(x, y Need) int {
		return cmp.Or(slices.Index(order, x.Kind)-slices.Index(order, y.Kind), x.Number-y.Number)
	})
	return b.needs, errors.Join(err, numberErr)
}

// NeedDirs returns the folders whose changes create and end needs.
func NeedDirs(r *rig.Rig) []state.Path {
	return []state.Path{bead.Dir, hook.Dir, mergequeue.Dir, incident.Dir, r.Mailbox(state.Human).Dir(), actor.AwaitedDir, permission.Dir}
}

// needBuilder collects needs from what a model knows.
type needBuilder struct {
	*Model
	needs []Need
}

func (b *needBuilder) add(n Need, key ...string) {
	n.Key = need.Key(strings.Join(append([]string{string(n.Kind)}, key...), ":"))
	n.What, n.Why = wording.Clip(wording.FirstLine(n.What), maxNeed), wording.Clip(wording.FirstLine(n.Why), maxNeed)
	n.Behind, n.Commands = []state.BeadID{}, []string{}
	b.needs = append(b.needs, n)
}

// maxNeed bounds one text of a need, in bytes.
const maxNeed = 300

func (b *needBuilder) questions() error {
	for i := range b.Model.questions {
		q := &b.Model.questions[i]
		n := Need{Kind: NeedQuestion, What: fmt.Sprintf("%s asks: %s", q.Asker, q.What()), AgentID: q.Asker, Since: q.Request.Timestamp, Name: q.Name}
		_, n.Why, _ = strings.Cut(strings.TrimSpace(q.Request.Body), "\n")
		switch q.Request.Type {
		case mail.PermissionRequest:
			n.Kind, n.What = NeedPermission, fmt.Sprintf("%s asks for %s", q.Asker, q.What())
		case mail.PlanRequest:
			n.Kind, n.What = NeedPlan, fmt.Sprintf("%s asks you to approve its plan: %s", q.Asker, q.What())
		}
		if h := b.hooks.rows[string(q.Asker)]; h != nil && h.WorkItem != nil {
			n.BeadID, n.AssignmentID = h.WorkItem.BeadID, h.WorkItem.AssignmentID
		}
		b.add(n, string(q.Asker), string(q.Name))
	}
	return b.questionErr
}

func (b *needBuilder) blocked() error {
	var failed error
	for _, id := range slices.Sorted(maps.Keys(b.work.blocked)) {
		full := b.work.beads[id]
		if b.outline { // it has no assignment, which is part of the cause
			read, err := b.r.Beads.GetCached(string(id))
			if err != nil || read.Status != bead.Blocked {
				if !errors.Is(err, state.ErrNotFound) {
					failed = errors.Join(failed, err)
				}
				continue
			}
			full = &read
		}
		b.add(Need{Kind: NeedBlocked, What: string(full.ID) + " " + full.Title, Why: full.CloseReason, Since: full.UpdatedAt, BeadID: full.ID, AssignmentID: full.AssignmentID},
			string(full.ID), string(full.AssignmentID))
	}
	return failed
}

// landings finds the merge requests that can't land until somebody acts.
func (b *needBuilder) landings() {
	block := b.r.Def != nil && b.r.Def.Merge.OnConflict == definition.OnConflictBlock
	live := b.queue()
	for i := range live {
		q := &live[i]
		if q.IsHeld() && b.isDone(q) {
			b.add(Need{Kind: NeedProtected, What: fmt.Sprintf("%s changes %s", q.BeadID, q.Held.Summary()), Why: q.Held.Stat, Since: q.UpdatedAt,
				BeadID: q.BeadID, AssignmentID: q.AssignmentID, MergeID: q.ID, Change: q.Held.Change}, string(q.ID), q.Held.Change)
			continue
		}
		why := q.Waiting
		if q.Status == mergequeue.Conflicted {
			why = string(q.Failure) + ": " + q.Reason
		}
		if why == "" || q.Status == mergequeue.Conflicted && !(block && b.isDone(q)) { // else the mayor has it reworked
			continue
		}
		b.add(Need{Kind: NeedLanding, What: fmt.Sprintf("%s can't land", q.BeadID), Why: why, Since: q.UpdatedAt, BeadID: q.BeadID,
			AssignmentID: q.AssignmentID, MergeID: q.ID}, string(q.ID))
	}
}

// pauses finds what is paused. The rig tries again by itself, but the person may be able
// to fix the cause sooner.
func (b *needBuilder) pauses() {
	all := b.Model.pauses.sorted()
	for i := range all {
		if p := &all[i]; p.Status == pause.Paused {
			b.add(Need{Kind: NeedPause, What: p.Head(), Why: p.Reason, Since: p.Since, Scope: p.Scope}, string(p.Scope), p.Since.String())
			if p.Mend != "" {
				b.needs[len(b.needs)-1].Commands = []string{p.Mend}
			}
		}
	}
}

// hosts finds the hosts to which workers and tests were not allowed to connect. Their work goes on without.
func (b *needBuilder) hosts() {
	all := b.rules.sorted()
	for i := range all {
		if host, is := all[i].Host(); is && all[i].Decision == permission.Asked {
			b.add(Need{Kind: NeedHost, What: fmt.Sprintf("%s wanted to connect to %s", all[i].Reason, host), Why: "network.allow in chipset.yaml does not list it",
				Since: all[i].CreatedAt, Permission: all[i].ID}, all[i].ID)
		}
	}
}

// isDone reports whether a request's bead still waits for it.
func (b *needBuilder) isDone(q *mergequeue.Request) bool {
	known := b.work.beads[q.BeadID]
	return known != nil && known.Status == bead.Done
}

// damage finds records that can't be read: nothing happens to them until somebody acts.
// They are one need, because one command repairs them all.
func (b *needBuilder) damage() {
	var found []*state.Corruption
	for _, err := range b.unreadable {
		var c *state.Corruption
		if errors.As(err, &c) {
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		return
	}
	what := "can't read " + found[0].Path
	if more := len(found) - 1; more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	b.add(Need{Kind: NeedDamage, What: what, Why: found[0].Reason}, "records")
}

// incidents finds the critical incidents, except those that another need is about.
func (b *needBuilder) incidents() {
	known := map[state.BeadID]bool{}
	landing := false
	for i := range b.needs {
		known[b.needs[i].BeadID] = true
		landing = landing || b.needs[i].Kind == NeedLanding
	}
	all := b.Model.incidents.sorted()
	for i := range all {
		found := &all[i]
		if !found.Open() || found.Severity != incident.Critical || found.BeadID != "" && known[found.BeadID] || landing && found.Kind == incident.QueueBlocked {
			continue
		}
		b.add(Need{Kind: NeedIncident, What: strings.TrimSpace(fmt.Sprintf("%s: %s %s", found.AgentID, strings.ReplaceAll(string(found.Kind), "_", " "), found.BeadID)),
			Why: found.Detail, Since: found.OpenedAt, BeadID: found.BeadID, AssignmentID: found.AssignmentID}, string(found.ID))
	}
}

// behind finds what waits behind the beads of the needs.
func (b *needBuilder) behind() {
	for i := range b.needs {
		n := &b.needs[i]
		found := map[state.BeadID]bool{}
		next := []state.BeadID{n.BeadID}
		if n.Kind == NeedLanding {
			for _, other := range b.queuedBehind(n.MergeID) {
				found[other] = true
				next = append(next, other)
			}
		}
		for len(next) > 0 && n.BeadID != "" {
			id := next[0]
			next = next[1:]
			for _, other := range b.work.blocks[id] {
				if b.work.beads[other].Status == bead.Open && !found[other] && other != n.BeadID {
					found[other] = true
					next = append(next, other)
				}
			}
		}
		n.Behind = slices.AppendSeq(n.Behind, maps.Keys(found))
		slices.Sort(n.Behind)
	}
}

// queuedBehind returns the beads whose merge requests wait behind one.
func (b *needBuilder) queuedBehind(id state.MergeID) []state.BeadID {
	var behind []state.BeadID
	seen := false
	for _, q := range b.queue() {
		if seen && q.Status == mergequeue.Pending {
			behind = append(behind, q.BeadID)
		}
		seen = seen || q.ID == id
	}
	return behind
}

// Handle is how commands name the need: its number, or else what it is about.
func (n *Need) Handle() string {
	switch {
	case n.Number > 0:
		return fmt.Sprint(n.Number)
	case n.Name != "":
		return string(n.Name)
	case n.Permission != "":
		return n.Permission
	}
	return string(n.BeadID)
}

func (n *Need) addCommands() {
	h := n.Handle()
	switch n.Kind {
	case NeedPermission, NeedHost:
		n.Commands = []string{"chipset approve " + h, "chipset deny " + h + " --reason TEXT"}
	case NeedPlan:
		n.Commands = []string{"chipset approve " + h, "chipset deny " + h + " --reason TEXT", "chipset mail peek " + string(n.Name)}
	case NeedQuestion:
		n.Commands = []string{"chipset answer " + h + " TEXT", "chipset mail peek " + string(n.Name)}
	case NeedProtected:
		n.Commands = []string{"chipset queue diff " + string(n.MergeID), "chipset approve " + h, "chipset deny " + h + " --reason TEXT"}
	case NeedLanding:
		n.Commands = []string{"chipset queue retry " + string(n.MergeID), "chipset queue drop " + string(n.MergeID) + " --reason TEXT"}
	case NeedPause:
		n.Commands = append(n.Commands, "chipset resume "+string(n.Scope))
	case NeedBlocked:
		n.Commands = []string{"chipset reopen " + h, "chipset answer " + h + " TEXT", "chipset work cancel " + string(n.BeadID)}
	case NeedDamage:
		n.Commands = []string{"chipset doctor --fix"}
	case NeedIncident:
		n.Commands = []string{"chipset status --health", "chipset doctor"}
		if n.BeadID != "" {
			n.Commands = []string{"chipset why " + string(n.BeadID), "chipset unsling " + string(n.BeadID)}
		}
	}
}
