package web

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/board/act"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/chipset/view/screen"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/wording"
)

//go:embed static
var staticFiles embed.FS

// staticVersion names the content of the static files, so that browsers may keep them.
func staticVersion() (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(staticFiles, "static", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := staticFiles.ReadFile(p)
		sum.Write(data)
		return err
	})
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))[:12], err
}

// static serves the embedded files.
func static(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	http.ServeFileFS(w, r, staticFiles, path.Join("static", r.PathValue("name")))
}

// funcs are the functions of the templates.
func (p *pages) funcs(version string) template.FuncMap {
	return template.FuncMap{
		"dict":     dict,
		"line":     func(s any) string { return screen.Clean(strings.ToValidUTF8(fmt.Sprint(s), "\uFFFD")) },
		"text":     func(s any) string { return cleaned(fmt.Sprint(s)) },
		"static":   func(name string) string { return p.s.guard.folder() + "/static/" + version + "/" + name },
		"at":       func(t state.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") },
		"clock":    func(t state.Time) string { return t.Local().Format("Jan 2 15:04") },
		"count":    wording.Count,
		"acts":     offers,
		"handle":   func(n view.Need) string { return n.Handle() },
		"ofNeed":   func(v *view.View, n view.Need) act.Subject { return subjectOfNeed(v, &n) },
		"ofMerge":  func(q view.QueueEntry) act.Subject { return act.Subject{Merge: &q} },
		"doing":    doing,
		"stage":    stage,
		"standing": standing,
		"spent":    func(f agentcli.Figures) string { return f.String() },
		"told":     told,
		"work":     func(v *view.View, id state.BeadID) *view.WorkItem { return v.Work.Find(id) },
	}
}

// offer is one act with the content of its form.
type offer struct {
	act.Act
	Question, Begin string
	Loses           []string
	// Fields name the subject.
	Fields map[string]string
	Long   bool
	// Label names the subject for screen readers.
	Label string
}

// offers returns the acts that a subject offers.
func offers(s act.Subject) []offer {
	var all []offer
	for _, a := range act.Of(s) {
		o := offer{Act: a, Fields: map[string]string{}}
		if a.Ask != nil {
			o.Question, o.Begin = a.Ask(s)
			o.Long = a.Name != "priority"
		}
		if a.Lost != nil {
			o.Loses = a.Lost(s)
		}
		switch {
		case s.Need != nil:
			o.Fields["need"], o.Fields["change"], o.Label = string(s.Need.Key), s.Need.Change, s.Need.Handle()
		case s.Item != nil:
			o.Fields["bead"], o.Label = string(s.Item.Bead.ID), string(s.Item.Bead.ID)
		case s.Merge != nil:
			o.Fields["merge"], o.Label = string(s.Merge.ID), string(s.Merge.ID)
		case s.Agent != nil:
			o.Fields["agent"], o.Label = string(s.Agent.ID), string(s.Agent.ID)
		default:
			o.Fields["mail"], o.Label = string(s.Mail), "message"
		}
		all = append(all, o)
	}
	return all
}

// mood is a word with its colour.
type mood struct{ Class, Word string }

// doing is the state of an agent.
func doing(v *view.View, a view.AgentStatus) mood {
	for i := range v.Incidents {
		if v.Incidents[i].AgentID == a.ID {
			return mood{"bad", strings.ReplaceAll(string(v.Incidents[i].Kind), "_", " ")}
		}
	}
	holds := a.Hook == hook.Active || a.Hook == hook.Pending
	switch {
	case a.Hook == "corrupt":
		return mood{"bad", "hook corrupt"}
	case a.Lease != nil:
		return mood{"wait", "attached"}
	case len(a.Asks) > 0:
		return mood{"wait", "waits for you"}
	case holds && !a.Alive:
		return mood{"bad", "not running"}
	case a.Hook == hook.Active:
		return mood{"busy", "working"}
	case holds:
		return mood{"busy", "starting"}
	case a.Alive:
		return mood{"idle", "idle"}
	}
	return mood{"off", "down"}
}

// stage is the state of a merge request.
func stage(q view.QueueEntry) mood {
	switch {
	case q.IsHeld():
		return mood{"wait", "waits for you"}
	case q.Failure != "":
		return mood{"bad", string(q.Failure)}
	case q.Stage != "":
		return mood{"busy", string(q.Stage)}
	case q.Waiting != "":
		return mood{"wait", "held up"}
	}
	return mood{"idle", string(q.Request.Status)}
}

// standing is the state of a bead.
func standing(item *view.WorkItem, now state.Time) mood {
	switch s := item.Bead.Status; s {
	case bead.InProgress:
		return mood{"busy", "in progress"}
	case bead.Hooked:
		return mood{"busy", "starting"}
	case bead.Done:
		return mood{"busy", "to land"}
	case bead.Merged, bead.Closed:
		return mood{"good", string(s)}
	case bead.Failed, bead.Blocked:
		return mood{"bad", string(s)}
	case bead.Cancelled:
		return mood{"off", string(s)}
	case bead.Open:
		if item.Ready(now) {
			return mood{"idle", "ready"}
		}
		return mood{"off", "waiting"}
	}
	return mood{"off", string(item.Bead.Status)}
}

// told describes an event in a few words.
func told(e event.Event) string {
	words := strings.ReplaceAll(strings.ReplaceAll(e.Type, ".", " "), "_", " ")
	if e.Text == "" {
		return words
	}
	return words + ": " + e.Text
}

// dict makes a map of names and values, for templates that need more than one value.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict: %d values", len(pairs))
	}
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m, nil
}
