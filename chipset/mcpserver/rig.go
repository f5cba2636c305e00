package mcpserver

import (
	"context"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/chipset/view/screen"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/wording"
)

type queueArgs struct {
	All   bool `json:"all,omitempty" jsonschema:"true shows what has landed or was dropped as well"`
	Limit int  `json:"limit,omitempty" jsonschema:"at most so many; 50 when left out"`
}

func (s *Server) addRigTools() {
	add(s, tool{name: "queue_list", title: "List the merge queue", effect: reads,
		description: "Merge requests in the order they land, with what keeps one from landing."}, listQueue)
	add(s, tool{name: "status", title: "Show the rig", effect: reads,
		description: "The rig at a glance: who runs, what is on which hook, the queue, incidents, what waits for a person."}, status)
}

func listQueue(_ context.Context, me *actor.Actor, in queueArgs) (quote.Text, error) {
	all, _, err := me.Queue.Queue()
	if err != nil {
		return "", err
	}
	var lines []quote.Text
	for i := range all {
		q := &all[i]
		if !in.All && !q.Status.Live() {
			continue
		}
		line := quote.Sprintf("%d %s %s: %s by %s", q.Seq, q.ID, q.Status, q.BeadID, q.AgentID)
		if why := why(q); why != "" {
			line += quote.Sprintf(" (%s)", why)
		}
		lines = append(lines, line)
	}
	return listed(lines, limited(in.Limit, 50), "The merge queue is empty.", "a larger limit"), nil
}

// why is what keeps a request from landing, on one line.
func why(q *mergequeue.Request) string {
	text := q.Waiting
	if text == "" {
		text = wording.FirstLine(q.Reason)
	}
	if q.Failure != "" {
		text = strings.TrimSuffix(string(q.Failure)+": "+text, ": ")
	}
	return quote.Line(text, 200)
}

func status(ctx context.Context, me *actor.Actor, _ none) (quote.Text, error) {
	st, err := view.GetStatus(ctx, me.Rig)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := st.WriteText(&b, screen.Options{}); err != nil {
		return "", err
	}
	var lines []quote.Text
	for line := range strings.Lines(b.String()) {
		lines = append(lines, quote.Lines(strings.TrimRight(line, "\n")))
	}
	return listed(lines, 300, "", "bead_list, queue_list and convoy_list show parts of it"), nil
}
