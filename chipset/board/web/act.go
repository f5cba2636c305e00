package web

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/board/act"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/need"
)

// subjectOfBead is a bead with its merge request in the queue.
func subjectOfBead(v *view.View, item *view.WorkItem) act.Subject {
	s := act.Subject{Item: item}
	for i := range v.Queue {
		if v.Queue[i].BeadID == item.Bead.ID {
			s.Merge = &v.Queue[i]
		}
	}
	return s
}

// subjectOfNeed is a need with the bead or the merge request that it is about.
func subjectOfNeed(v *view.View, n *view.Need) act.Subject {
	s := act.Subject{Need: n}
	if n.Kind == view.NeedBlocked {
		s.Item = v.Work.Find(n.BeadID)
	}
	for i := range v.Queue {
		if n.Kind == view.NeedLanding && v.Queue[i].ID == n.MergeID {
			s.Merge = &v.Queue[i]
		}
	}
	return s
}

// errGone is returned for an act that does not apply any more.
var errGone = errors.New("nothing waits for this any more: it was answered, or its cause is gone")

// errOther is returned for a decision about another content than the person saw.
var errOther = errors.New("it has changed since you saw it: look again")

// subjectOf finds the subject of a form in the present view.
func subjectOf(v *view.View, r *http.Request) (act.Subject, error) {
	value := func(name string) string { return r.PostFormValue(name) }
	switch {
	case value("need") != "":
		at := slices.IndexFunc(v.Needs, func(n view.Need) bool { return n.Key == need.Key(value("need")) })
		if at < 0 {
			return act.Subject{}, errGone
		}
		if v.Needs[at].Change != value("change") {
			return act.Subject{}, errOther
		}
		return subjectOfNeed(v, &v.Needs[at]), nil
	case value("bead") != "":
		if item := v.Work.Find(state.BeadID(value("bead"))); item != nil {
			return subjectOfBead(v, item), nil
		}
		return act.Subject{}, &state.Unknown{Kind: "bead", Name: value("bead")}
	case value("merge") != "":
		for i := range v.Queue {
			if string(v.Queue[i].ID) == value("merge") {
				return act.Subject{Merge: &v.Queue[i]}, nil
			}
		}
		return act.Subject{}, errGone
	case value("agent") != "":
		for i := range v.Agents {
			if string(v.Agents[i].ID) == value("agent") {
				return act.Subject{Agent: &v.Agents[i]}, nil
			}
		}
		return act.Subject{}, &state.Unknown{Kind: "agent", Name: value("agent")}
	}
	name, err := mail.ParseName(value("mail"))
	return act.Subject{Mail: name}, err
}

// doneData is the result of an act.
type doneData struct {
	Failed bool
	Text   string
}

// act runs the act of a form. The answer is a line of text for the page's script, or a page
// without it.
func (s *Server) act(w http.ResponseWriter, r *http.Request) {
	said, err := s.do(r)
	d := doneData{Failed: err != nil, Text: strings.TrimSpace(said)}
	code := http.StatusOK
	if err != nil {
		d.Text, code = err.Error(), http.StatusConflict
	}
	_, _ = s.live.look(r.Context())
	if r.Header.Get("Accept") == "text/plain" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(cleaned(d.Text))) // the browser is gone if it fails
		return
	}
	w.WriteHeader(code)
	s.pages.show(w, "done", page{Title: "Done", View: s.live.view(), Data: d})
}

func (s *Server) do(r *http.Request) (string, error) {
	name := r.PostFormValue("act")
	a, known := act.Named(name)
	if !known {
		return "", &state.Unknown{Kind: "act", Name: name}
	}
	v, _ := s.live.look(r.Context()) // errors are warnings of the view
	subject, err := subjectOf(v, r)
	if err != nil {
		return "", err
	}
	if !a.Can(subject) {
		return "", errGone
	}
	answer := strings.ReplaceAll(r.PostFormValue("text"), "\r\n", "\n")
	if a.Ask != nil && strings.TrimSpace(answer) == "" {
		return "", errors.New(a.Name + " needs a text")
	}
	said, err := s.Run(r.Context(), a.Command(subject, answer))
	return cmp.Or(said, a.Name+": done"), err
}
