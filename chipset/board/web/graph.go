package web

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/chipset/view/screen"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
)

// node is a bead, or a whole convoy, in a graph.
type node struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Word  string `json:"word"`
	Class string `json:"class"`
	Link  string `json:"link"`
}

// graph is the graph that the page's script lays out.
type graph struct {
	Nodes []node      `json:"nodes"`
	Edges [][2]string `json:"edges"`
	// Hidden is the number of nodes that are left out.
	Hidden int `json:"hidden"`
}

// graphLimit is the most nodes of a graph: more would be unreadable.
const graphLimit = 600

// convoyData is the data of a convoy's page.
type convoyData struct {
	Convoy convoy.Convoy
	Landed int
	Items  []*view.WorkItem
	// Missing are its beads that don't exist.
	Missing []state.BeadID
}

func (s *Server) convoyOf(v *view.View, name string) (*convoyData, error) {
	c, err := s.Rig.Convoys.Get(name)
	if err != nil {
		return nil, err
	}
	d := &convoyData{Convoy: c}
	for _, id := range c.BeadIDs {
		item := v.Work.Find(id)
		if item == nil {
			d.Missing = append(d.Missing, id)
			continue
		}
		if item.Bead.Status.Landed() {
			d.Landed++
		}
		d.Items = append(d.Items, item)
	}
	sortWork(d.Items, v.At)
	return d, nil
}

func (p *pages) convoy(w http.ResponseWriter, r *http.Request) {
	v := p.look(r)
	d, err := p.s.convoyOf(v, r.PathValue("id"))
	if err != nil {
		p.fail(w, err)
		return
	}
	p.show(w, "convoy", page{Title: d.Convoy.Name, Here: "work", View: v, Data: d})
}

func (p *pages) graph(w http.ResponseWriter, r *http.Request) {
	p.show(w, "graph", page{Title: "Graph", Here: "graph", View: p.look(r)})
}

// convoyGraph sends the graph of a convoy's beads.
func (s *Server) convoyGraph(w http.ResponseWriter, r *http.Request) {
	v, _ := s.live.look(r.Context())
	d, err := s.convoyOf(v, r.PathValue("id"))
	if err != nil {
		s.pages.fail(w, err)
		return
	}
	g := newGrapher(s.guard.folder(), v)
	for _, item := range d.Items {
		g.add(item)
	}
	writeGraph(w, g.graph())
}

// wholeGraph sends the graph of all beads. Each convoy is one node; of the other beads, the
// unfinished ones come first.
func (s *Server) wholeGraph(w http.ResponseWriter, r *http.Request) {
	v, _ := s.live.look(r.Context())
	g := newGrapher(s.guard.folder(), v)
	convoys, _, err := s.Rig.Convoys.All()
	if err != nil {
		s.pages.fail(w, err)
		return
	}
	for i := range convoys {
		g.collapse(&convoys[i])
	}
	items := slices.Clone(v.Work)
	sortWork(items, v.At)
	for _, item := range items {
		if !item.Bead.Status.Finished() {
			g.add(item)
		}
	}
	for _, item := range items {
		if item.Bead.Status.Finished() && (len(item.Blocks) > 0 || len(item.Bead.BlockedBy) > 0) {
			g.add(item)
		}
	}
	writeGraph(w, g.graph())
}

// grapher builds a graph.
type grapher struct {
	base  string
	view  *view.View
	nodes []node
	// in is the node of each bead.
	in     map[state.BeadID]string
	hidden int
}

func newGrapher(base string, v *view.View) *grapher {
	return &grapher{base: base, view: v, in: map[state.BeadID]string{}}
}

func (g *grapher) add(item *view.WorkItem) {
	b := item.Bead
	if _, known := g.in[b.ID]; known {
		return
	}
	if len(g.nodes) >= graphLimit {
		g.hidden++
		return
	}
	m := standing(item, g.view.At)
	g.in[b.ID] = string(b.ID)
	g.nodes = append(g.nodes, node{string(b.ID), screen.Clean(b.Title), m.Word, m.Class, g.base + "/bead/" + string(b.ID)})
}

// collapse adds a convoy as one node.
func (g *grapher) collapse(c *convoy.Convoy) {
	if len(g.nodes) >= graphLimit {
		g.hidden++
		return
	}
	landed, class := 0, "idle"
	for _, id := range c.BeadIDs {
		g.in[id] = string(c.ID)
		item := g.view.Work.Find(id)
		switch {
		case item == nil:
		case item.Bead.Status.Landed():
			landed++
		case item.Bead.Status == bead.Blocked || item.Bead.Status == bead.Failed:
			class = "bad"
		case item.Bead.Status != bead.Open && class == "idle":
			class = "busy"
		}
	}
	if landed == len(c.BeadIDs) {
		class = "good"
	}
	g.nodes = append(g.nodes, node{string(c.ID), screen.Clean(c.Name), fraction(landed, len(c.BeadIDs)) + " landed", class, g.base + "/convoy/" + string(c.ID)})
}

// graph adds the edges between the nodes.
func (g *grapher) graph() graph {
	all := graph{Nodes: g.nodes, Edges: [][2]string{}, Hidden: g.hidden}
	seen := map[[2]string]bool{}
	for _, item := range g.view.Work {
		to, shown := g.in[item.Bead.ID]
		if !shown {
			continue
		}
		for _, dep := range item.Bead.BlockedBy {
			edge := [2]string{g.in[dep], to}
			if edge[0] != "" && edge[0] != to && !seen[edge] {
				seen[edge] = true
				all.Edges = append(all.Edges, edge)
			}
		}
	}
	return all
}

func writeGraph(w http.ResponseWriter, g graph) {
	data, err := json.Marshal(g)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // the browser is gone if it fails
}
