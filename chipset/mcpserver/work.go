package mcpserver

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/prompt"
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/wording"
)

type addArgs struct {
	Title       string   `json:"title" jsonschema:"one line"`
	Description string   `json:"description,omitempty" jsonschema:"what is to be done; whoever does it knows nothing else"`
	Acceptance  string   `json:"acceptance,omitempty" jsonschema:"when it is finished"`
	Priority    string   `json:"priority,omitempty" jsonschema:"P1 is first; P2 when left out"`
	BlockedBy   []string `json:"blocked_by,omitempty" jsonschema:"ids of beads that must land first"`
	Labels      []string `json:"labels,omitempty" jsonschema:"words to find it by"`
	AllowEmpty  bool     `json:"allow_empty,omitempty" jsonschema:"true: no change in the repository is a success"`
}

type listArgs struct {
	Status  string `json:"status,omitempty" jsonschema:"only beads of this status"`
	Label   string `json:"label,omitempty" jsonschema:"only beads with this label"`
	Ready   bool   `json:"ready,omitempty" jsonschema:"only what could be begun now, in its order"`
	Blocked bool   `json:"blocked,omitempty" jsonschema:"only what waits for a person or for other beads"`
	Limit   int    `json:"limit,omitempty" jsonschema:"at most so many; 50 when left out"`
}

type beadArgs struct {
	ID string `json:"id" jsonschema:"the id of the bead"`
}

type claimArgs struct {
	ID string `json:"id,omitempty" jsonschema:"the id of the bead; the next ready one when left out"`
}

type convoyCreateArgs struct {
	Name  string   `json:"name" jsonschema:"one line"`
	Beads []string `json:"beads" jsonschema:"ids of its beads"`
}

type convoyArgs struct {
	ID string `json:"id" jsonschema:"the id of the convoy"`
}

type limitArgs struct {
	Limit int `json:"limit,omitempty" jsonschema:"at most so many; 50 when left out"`
}

func (s *Server) addWorkTools() {
	priorities := []string{string(bead.P1), string(bead.P2), string(bead.P3)}
	statuses := wording.Strings(bead.Statuses())
	add(s, tool{name: "bead_add", title: "Add a bead", effect: adds, words: map[string][]string{"priority": priorities},
		description: "Add a work item to the rig; the mayor assigns it to a polecat when it is ready. Returns its id."}, addBead)
	add(s, tool{name: "bead_list", title: "List beads", effect: reads, words: map[string][]string{"status": statuses},
		description: "The rig's work items, oldest first, one line each."}, listBeads)
	add(s, tool{name: "bead_show", title: "Show a bead", effect: reads, description: "One work item with its description, acceptance and what it waits for."}, showBead)
	add(s, tool{name: "bead_claim", title: "Claim a bead", effect: settles,
		description: "Put a ready bead on your own empty hook. A person's own session always may. A polecat may only with dispatch.strategy auto_claim; otherwise the mayor assigns work."}, claimBead)
	add(s, tool{name: "convoy_create", title: "Make a convoy", effect: adds, description: "Group beads, to see how many of them have landed. Returns its id."}, createConvoy)
	add(s, tool{name: "convoy_list", title: "List convoys", effect: reads, description: "Groups of beads and how many of each have landed."}, listConvoys)
	add(s, tool{name: "convoy_show", title: "Show a convoy", effect: reads, description: "One convoy with its beads."}, showConvoy)
}

func addBead(ctx context.Context, me *actor.Actor, in addArgs) (quote.Text, error) {
	b := bead.Bead{Title: in.Title, Description: in.Description, Acceptance: in.Acceptance, Priority: bead.P2,
		Labels: actor.Words(in.Labels), AllowEmpty: in.AllowEmpty}
	if in.Priority != "" {
		b.Priority = bead.Priority(in.Priority)
	}
	var err error
	if b.BlockedBy, err = actor.BeadIDs(in.BlockedBy); err != nil {
		return "", err
	}
	if b, err = me.AddBead(ctx, b); err != nil {
		return "", err
	}
	return quote.Sprintf("%s", b.ID), nil
}

func listBeads(_ context.Context, me *actor.Actor, in listArgs) (quote.Text, error) {
	f := actor.BeadFilter{Ready: in.Ready, Blocked: in.Blocked}
	if in.Status != "" {
		f.Statuses = []bead.Status{bead.Status(in.Status)}
	}
	if in.Label != "" {
		f.Labels = []string{in.Label}
	}
	chosen, byID, _, err := actor.ListBeads(me.Rig, f)
	if err != nil {
		return "", err
	}
	var lines []quote.Text
	for i := range chosen {
		lines = append(lines, beadLine(&chosen[i], byID))
	}
	return listed(lines, limited(in.Limit, 50), "No such beads.", "a larger limit, or a narrower status or label"), nil
}

// beadLine is a bead on one line.
func beadLine(b *bead.Bead, byID map[state.BeadID]*bead.Bead) quote.Text {
	line := quote.Sprintf("%s %s %s: %s", b.ID, b.Priority, b.Status, quote.Line(b.Title, 160))
	if b.Assignee != "" && !b.Status.Finished() {
		line += quote.Sprintf(" [%s]", b.Assignee)
	}
	if waits := bead.Blockers(b, byID); len(waits) > 0 && !b.Status.Finished() {
		line += quote.Sprintf(" (waits for %s)", quote.Line(strings.Join(waits, ", "), 200))
	}
	return line
}

func showBead(_ context.Context, me *actor.Actor, in beadArgs) (quote.Text, error) {
	b, err := me.Beads.Get(in.ID)
	if err != nil {
		return "", err
	}
	_, byID, _, err := actor.ListBeads(me.Rig, actor.BeadFilter{Ready: true})
	if err != nil {
		return "", err
	}
	text := beadLine(&b, byID) + "\n"
	field := func(name, value string) {
		if value != "" {
			text += quote.Sprintf("%s: %s\n", name, quote.Line(value, 300))
		}
	}
	field("reason", b.CloseReason)
	field("branch", b.Branch)
	field("convoy", string(b.ConvoyID))
	field("labels", strings.Join(b.Labels, ", "))
	field("created by", string(b.CreatedBy))
	return text + "\n" + prompt.BeadText(&b), nil
}

// maxWhere bounds what is said of a worktree, in bytes.
const maxWhere = 5 << 10

func claimBead(ctx context.Context, me *actor.Actor, in claimArgs) (quote.Text, error) {
	var id state.BeadID
	if in.ID != "" {
		var err error
		if id, err = state.ParseBeadID(in.ID); err != nil {
			return "", err
		}
	}
	rec, err := me.Claim(ctx, id)
	if err != nil {
		return "", err
	}
	const patience = 10 * time.Second
	where, err := me.WhereToWork(ctx, patience)
	return quote.Sprintf("%s is on your hook (%s), branch %s. %s", rec.BeadID, rec.AssignmentID, rec.Branch, quote.Line(where, maxWhere)), err
}

func createConvoy(ctx context.Context, me *actor.Actor, in convoyCreateArgs) (quote.Text, error) {
	c, err := me.CreateConvoy(ctx, in.Name, in.Beads)
	if err != nil {
		return "", err
	}
	return quote.Sprintf("%s", c.ID), nil
}

func listConvoys(_ context.Context, me *actor.Actor, in limitArgs) (quote.Text, error) {
	all, _, err := me.Convoys.All()
	if err != nil {
		return "", err
	}
	beads, _, err := me.Beads.All()
	if err != nil {
		return "", err
	}
	slices.SortStableFunc(all, func(x, y convoy.Convoy) int { return y.CreatedAt.Compare(x.CreatedAt.Time) })
	byID := bead.Index(beads)
	var lines []quote.Text
	for i := range all {
		lines = append(lines, quote.Sprintf("%s %d/%d landed: %s", all[i].ID, all[i].Landed(byID), len(all[i].BeadIDs), quote.Line(all[i].Name, 160)))
	}
	return listed(lines, limited(in.Limit, 50), "No convoys.", "a larger limit"), nil
}

func showConvoy(_ context.Context, me *actor.Actor, in convoyArgs) (quote.Text, error) {
	c, err := me.Convoys.Get(in.ID)
	if err != nil {
		return "", err
	}
	beads, _, err := me.Beads.All()
	if err != nil {
		return "", err
	}
	byID := bead.Index(beads)
	lines := []quote.Text{quote.Sprintf("%s %d/%d landed: %s", c.ID, c.Landed(byID), len(c.BeadIDs), quote.Line(c.Name, 200))}
	for _, id := range c.BeadIDs {
		if b := byID[id]; b != nil {
			lines = append(lines, beadLine(b, byID))
		} else {
			lines = append(lines, quote.Sprintf("%s is missing", id))
		}
	}
	return listed(lines, 200, "", "bead_list and bead_show"), nil
}
