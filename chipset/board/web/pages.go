package web

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/board/act"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/chipset/view/screen"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
)

//go:embed templates
var templateFiles embed.FS

// pages writes the pages.
type pages struct {
	s         *Server
	templates map[string]*template.Template
}

func newPages(s *Server) (*pages, error) {
	p := &pages{s: s, templates: map[string]*template.Template{}}
	version, err := staticVersion()
	if err != nil {
		return nil, err
	}
	layout, err := template.New("layout.html").Funcs(p.funcs(version)).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html")
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"board", "work", "bead", "agent", "mail", "message", "convoy", "graph", "figures", "done"} {
		t, err := layout.Clone()
		if err == nil {
			t, err = t.ParseFS(templateFiles, "templates/"+name+".html")
		}
		if err != nil {
			return nil, err
		}
		p.templates[name] = t
	}
	return p, nil
}

// page is the data of every template.
type page struct {
	Base, CSRF, Title, Here string
	View                    *view.View
	// Pace is the least time between two refreshes, in milliseconds; 0 is usualPace.
	Pace int
	// Data is the data of the page itself.
	Data any
}

const (
	usualPace = 50
	// beadPace is for a bead's page, which reads all records.
	beadPace = 1000
)

// Unread counts the mail of the person.
func (p *page) Unread() int { return len(p.View.Mail) }

// show writes a page.
func (p *pages) show(w http.ResponseWriter, name string, pg page) {
	var out bytes.Buffer
	pg.Base, pg.CSRF, pg.Pace = p.s.guard.folder(), p.s.guard.csrf(), cmp.Or(pg.Pace, usualPace)
	if err := p.templates[name].ExecuteTemplate(&out, "layout.html", &pg); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(out.Bytes()) // the browser is gone if it fails
}

// fail writes an error page.
func (p *pages) fail(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	if errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrBadID) {
		code = http.StatusNotFound
	}
	w.WriteHeader(code)
	p.show(w, "done", page{Title: "Not shown", View: p.s.live.view(), Data: doneData{Failed: true, Text: err.Error()}})
}

// look returns the present view. Errors are among its warnings.
func (p *pages) look(r *http.Request) *view.View {
	v, _ := p.s.live.look(r.Context())
	return v
}

func (l *live) view() *view.View {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.model.View()
}

// boardData is what the board shows in addition to the view.
type boardData struct {
	Work   []*view.WorkItem
	Hidden int
	Landed []event.Event
}

// workShown is how many beads the board lists.
const workShown = 100

func (p *pages) board(w http.ResponseWriter, r *http.Request) {
	v := p.look(r)
	d := boardData{}
	for _, item := range v.Work {
		if !item.Bead.Status.Finished() {
			d.Work = append(d.Work, item)
		}
	}
	sortWork(d.Work, v.At)
	if len(d.Work) > workShown {
		d.Hidden, d.Work = len(d.Work)-workShown, d.Work[:workShown]
	}
	const landedShown = 8
	for i := len(v.Story) - 1; i >= 0 && len(d.Landed) < landedShown; i-- {
		if e := v.Story[i]; e.Type == "bead.merged" || e.Type == "bead.closed" {
			d.Landed = append(d.Landed, e)
		}
	}
	p.show(w, "board", page{Title: "Board", Here: "board", View: v, Data: &d})
}

// rank sorts beads by how near they are to their end.
func rank(item *view.WorkItem, now state.Time) int {
	switch s := item.Bead.Status; {
	case s == bead.InProgress || s == bead.Hooked:
		return 0
	case s == bead.Done:
		return 1
	case s == bead.Blocked || s == bead.Failed:
		return 2
	case item.Ready(now):
		return 3
	case !s.Finished():
		return 4
	}
	return 5
}

func sortWork(items []*view.WorkItem, now state.Time) {
	slices.SortStableFunc(items, func(a, b *view.WorkItem) int {
		return cmp.Or(cmp.Compare(rank(a, now), rank(b, now)), cmp.Compare(a.Bead.Priority, b.Bead.Priority),
			a.Bead.CreatedAt.Compare(b.Bead.CreatedAt.Time))
	})
}

// workData is one page of the beads.
type workData struct {
	Query, Status  string
	Statuses       []bead.Status
	Items          []*view.WorkItem
	All, From, To  int
	Previous, Next int
}

// perPage is how many beads a page of the work lists.
const perPage = 200

func (p *pages) work(w http.ResponseWriter, r *http.Request) {
	v := p.look(r)
	d := workData{Query: screen.Clean(strings.TrimSpace(r.FormValue("q"))), Status: r.FormValue("status"),
		Statuses: []bead.Status{bead.Open, bead.Hooked, bead.InProgress, bead.Done, bead.Failed, bead.Blocked, bead.Merged, bead.Closed, bead.Cancelled}}
	words := strings.Fields(strings.ToLower(d.Query))
	var items []*view.WorkItem
	for _, item := range v.Work {
		if item.Matches(words) && (d.Status == "" || string(item.Bead.Status) == d.Status) {
			items = append(items, item)
		}
	}
	sortWork(items, v.At)
	number, _ := strconv.Atoi(r.FormValue("page")) // 0 if it is not a number
	d.All = len(items)
	last := max(0, d.All-1) / perPage
	number = min(max(0, number), last)
	d.From, d.To = number*perPage, min(d.All, (number+1)*perPage)
	d.Previous, d.Next = number-1, number+1
	if d.Next > last {
		d.Next = -1
	}
	d.Items = items[d.From:d.To]
	p.show(w, "work", page{Title: "Work", Here: "work", View: v, Data: &d})
}

// beadData is the page of a bead.
type beadData struct {
	ID      state.BeadID
	Tab     string
	Item    *view.WorkItem
	Subject act.Subject
	History *view.BeadHistory
	Text    *textData
}

func (p *pages) beadData(r *http.Request, tab string) (*view.View, *beadData, error) {
	id, err := state.ParseBeadID(r.PathValue("id"))
	if err != nil {
		return nil, nil, err
	}
	v := p.look(r)
	d := &beadData{ID: id, Tab: tab, Item: v.Work.Find(id)}
	if d.Item == nil {
		return v, d, &state.Unknown{Kind: "bead", Name: string(id)}
	}
	d.Subject = subjectOfBead(v, d.Item)
	d.History, err = view.Why(r.Context(), p.s.Rig, id)
	return v, d, err
}

func (p *pages) story(w http.ResponseWriter, r *http.Request) { p.beadPage(w, r, "story") }

func (p *pages) beadPage(w http.ResponseWriter, r *http.Request, tab string) {
	v, d, err := p.beadData(r, tab)
	if err == nil {
		switch tab {
		case "diff":
			d.Text, err = p.s.diffOf(r.Context(), d.ID)
		case "transcript":
			d.Text, err = p.s.transcriptOf(v, "", d.ID)
		}
	}
	if err != nil {
		p.fail(w, err)
		return
	}
	p.show(w, "bead", page{Title: string(d.ID), Here: "work", View: v, Pace: beadPace, Data: d})
}

func (p *pages) diff(w http.ResponseWriter, r *http.Request) { p.beadPage(w, r, "diff") }

func (p *pages) beadTranscript(w http.ResponseWriter, r *http.Request) {
	p.beadPage(w, r, "transcript")
}

// agentData is the page of an agent.
type agentData struct {
	Tab     string
	Agent   *view.AgentStatus
	Subject act.Subject
	Needs   []*view.Need
	Story   []event.Event
	Mail    []mail.Entry
	Text    *textData
}

func (p *pages) agent(w http.ResponseWriter, r *http.Request) { p.agentPage(w, r, "story") }

func (p *pages) agentTranscript(w http.ResponseWriter, r *http.Request) {
	p.agentPage(w, r, "transcript")
}

func (p *pages) agentPage(w http.ResponseWriter, r *http.Request, tab string) {
	id, err := state.ParseAgentID(r.PathValue("id"))
	if err != nil {
		p.fail(w, err)
		return
	}
	v := p.look(r)
	at := slices.IndexFunc(v.Agents, func(a view.AgentStatus) bool { return a.ID == id })
	if at < 0 {
		p.fail(w, &state.Unknown{Kind: "agent", Name: string(id)})
		return
	}
	d := agentData{Tab: tab, Agent: &v.Agents[at], Subject: act.Subject{Agent: &v.Agents[at]}}
	for i := range v.Needs {
		if v.Needs[i].AgentID == id {
			d.Needs = append(d.Needs, &v.Needs[i])
		}
	}
	const storyShown, mailShown = 60, 20
	for i := len(v.Story) - 1; i >= 0 && len(d.Story) < storyShown; i-- {
		if e := v.Story[i]; e.Agent == id || e.Subject == string(id) {
			d.Story = append(d.Story, e)
		}
	}
	if tab == "transcript" {
		if d.Text, err = p.s.transcriptOf(v, id, ""); err != nil {
			p.fail(w, err)
			return
		}
	}
	if all, _, err := p.s.Rig.Mailbox(id).List(); err == nil { // else a warning of the view
		slices.Reverse(all)
		d.Mail = all[:min(len(all), mailShown)]
	}
	p.show(w, "agent", page{Title: string(id), Here: "board", View: v, Data: &d})
}

// mailData is the person's mailbox.
type mailData struct {
	Unread, Read []mail.Entry
	Hidden       int
}

func (p *pages) mail(w http.ResponseWriter, r *http.Request) {
	v := p.look(r)
	all, _, err := p.s.Rig.Mailbox(state.Human).List() // unreadable messages are warnings of the view
	if err != nil {
		p.fail(w, err)
		return
	}
	var d mailData
	for _, e := range slices.Backward(all) {
		if e.Read {
			d.Read = append(d.Read, e)
		} else {
			d.Unread = append(d.Unread, e)
		}
	}
	if len(d.Read) > perPage {
		d.Hidden, d.Read = len(d.Read)-perPage, d.Read[:perPage]
	}
	p.show(w, "mail", page{Title: "Mail", Here: "mail", View: v, Data: &d})
}

// messageData is one message with its thread.
type messageData struct {
	Entry   mail.Entry
	Thread  []mail.Entry
	Subject act.Subject
	Need    *view.Need
}

func (p *pages) message(w http.ResponseWriter, r *http.Request) {
	v := p.look(r)
	name, err := mail.ParseName(r.PathValue("name"))
	if err != nil {
		p.fail(w, &state.Unknown{Kind: "message", Name: r.PathValue("name")})
		return
	}
	box := p.s.Rig.Mailbox(state.Human)
	e, err := box.Get(name)
	if err != nil {
		p.fail(w, err)
		return
	}
	d := messageData{Entry: e, Subject: act.Subject{Mail: e.Name}}
	if e.Archived || e.From == state.Human {
		d.Subject.Mail = ""
	}
	for i := range v.Needs {
		if v.Needs[i].Name == e.Name {
			d.Need = &v.Needs[i]
		}
	}
	if all, _, err := box.List(); err == nil && e.Thread != "" {
		for _, other := range all {
			if other.Name != e.Name && (other.Thread == e.Thread || string(other.Name) == e.Thread) {
				d.Thread = append(d.Thread, other)
			}
		}
	}
	p.show(w, "message", page{Title: "Mail", Here: "mail", View: v, Data: &d})
}
