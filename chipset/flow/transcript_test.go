package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

// world is the records of one bead in memory.
type world struct {
	bead     *bead.Bead // nil when it does not exist
	hook     hook.Hook
	requests []*mergequeue.Request
	dispatch dispatch.Record
	retire   retire.Record
	mail     map[string]mail.Message // by recipient and name
	// landed says whether the target moved, saved is what is on the salvage ref, freed
	// whether the worktree is, told whether the person's own session knows.
	landed bool
	saved  string
	freed  bool
	told   bool

	// refuse is why an effect is not carried out, or nil.
	refuse func(e Effect) error
	out    strings.Builder
}

func (w *world) say(format string, args ...any) { fmt.Fprintf(&w.out, format+"\n", args...) }

// fields are those of a record as they are on the disk.
func fields(record any) map[string]string {
	data, err := json.Marshal(record)
	raw := map[string]json.RawMessage{}
	if err == nil {
		err = json.Unmarshal(data, &raw)
	}
	if err != nil {
		panic(err)
	}
	all := map[string]string{}
	for name, value := range raw {
		all[name] = string(value)
	}
	return all
}

// changed names the fields in which two records differ.
func changed(before, after any) string {
	var out []string
	a, b := fields(before), fields(after)
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if a[name] != b[name] {
			out = append(out, name+"="+short(b[name]))
		}
		delete(a, name)
	}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		out = append(out, "no "+name)
	}
	if out == nil {
		return "nothing"
	}
	return strings.Join(out, " ")
}

func short(s string) string {
	if len(s) > 160 {
		return fmt.Sprintf("%s… (%d bytes)", s[:100], len(s))
	}
	return s
}

// change carries one change of a record out, as a store does, and says what became of it.
func change[T any](w *world, name string, record *T, do func(*T) error) error {
	after := *record
	err := do(&after)
	switch {
	case errors.Is(err, state.ErrUnchanged):
		w.say("%s: unchanged", name)
		return nil
	case err != nil:
		w.say("%s: %v", name, err)
		return err
	}
	w.say("%s: %s", name, changed(*record, after))
	*record = after
	return nil
}

// do carries an effect out.
func (w *world) do(e Effect) error {
	name := e.Name()
	if w.refuse != nil {
		if err := w.refuse(e); err != nil {
			w.say("%s: %v", name, err)
			return err
		}
	}
	switch e := e.(type) {
	case BeadChange:
		if w.bead == nil {
			return state.ErrNotFound
		}
		return change(w, name, w.bead, func(b *bead.Bead) error { return e.Change(b, noon) })
	case HookChange:
		return change(w, name+" of "+string(e.Hook()), &w.hook, func(h *hook.Hook) error { return e.Change(h, noon) })
	case RequestChange:
		i := slices.IndexFunc(w.requests, func(q *mergequeue.Request) bool { return q.ID == e.Request() })
		if i < 0 {
			return state.ErrNotFound
		}
		return change(w, name+" "+string(e.Request()), w.requests[i], func(q *mergequeue.Request) error { return e.Change(q, noon) })
	case PutDispatch:
		return change(w, name, &w.dispatch, func(d *dispatch.Record) error { *d = e.Record; return nil })
	case RemoveDispatch:
		w.say("%s: %v", name, e.Refusal)
		w.dispatch = dispatch.Record{}
	case PutRetire:
		return change(w, name, &w.retire, func(d *retire.Record) error { *d = e.Record; return nil })
	case Send:
		w.send(e)
	case MoveTarget:
		return w.move(e)
	default:
		w.say("%s", name)
		w.freed = w.freed || name == FreeWorktree{}.Name()
		w.told = w.told || name == TellSession{}.Name()
	}
	return nil
}

func (w *world) send(e Send) {
	m := e.Message
	w.say("%s: %s %s from %s to %s, id %s, ref %+v, optional %t, short %t\n  %s\n  %s", e.Name(), e.As, m.Priority, m.From, m.To, m.ID, *m.Ref, e.Optional, e.Short,
		m.Subject, strings.ReplaceAll(short(strings.TrimSpace(m.Body)), "\n", "\n  "))
	if w.mail == nil {
		w.mail = map[string]mail.Message{}
	}
	w.mail[string(m.To)+"/"+string(e.As)] = m
}

func (w *world) move(e MoveTarget) error {
	w.say("%s: to %s, the last is %s at %s", e.Name(), e.Land.Candidate, e.Last.ID, e.Last.Candidate)
	for _, m := range e.Beads {
		if err := m.Change(w.bead, noon); err != nil && !errors.Is(err, state.ErrUnchanged) {
			w.say("  %s of %s: %v", m.BeadID, m.MR, err)
			return err
		}
		w.say("  %s of %s for %s is merged", m.BeadID, m.MR, m.Assignment)
	}
	w.landed = true
	return nil
}

// ends is all that is left in the end.
func (w *world) ends() string {
	text, err := json.Marshal([]any{w.bead, w.hook, w.requests, w.dispatch, w.retire, w.mail, w.landed, w.saved, w.freed, w.told})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// errCrash ends a run.
var errCrash = errors.New("crash")

// run carries a sequence out up to a crash after some effects, 0 for none. read fetches the records.
func (w *world) run(s Sequence, read func(), crash int) error {
	for n := 1; n < 40; n++ {
		read()
		e := s.Next()
		if e == (Done{}) {
			return nil
		}
		err := w.do(e)
		if work, ok := s.(*Retirement); ok && err == nil {
			w.secure(work, e)
		}
		if err != nil && !Decides(e, err) {
			w.say("ends: %v", err)
			return err
		}
		if n == crash {
			return errCrash
		}
		s.Answer(e, err)
	}
	return errors.New("it does not end")
}

// secure is what git and the queue answer to a retirement.
func (w *world) secure(r *Retirement, e Effect) {
	switch e := e.(type) {
	case SecureWork:
		rec := e.Record
		if rec.Outcome == retire.Done {
			rec.Head, rec.Base = "head", "base"
		} else {
			rec.Salvage = "refs/saved"
		}
		w.saved, r.Work = rec.Salvage, &rec
	case SaveWork:
		rec := e.Record
		rec.Salvage = "refs/saved"
		w.saved, r.Work = rec.Salvage, &rec
	case Submit:
		w.say("  %s", changed(mergequeue.Request{}, e.Request))
		r.Request = "mr-1"
		q := e.Request
		q.ID = r.Request
		w.requests = []*mergequeue.Request{&q}
	}
}

// matrix is a change from every status. Those of which the same becomes are told together.
type matrix struct {
	results []string
	of      map[string][]string
}

func try[T any](m *matrix, name string, record *T, do func(*T) error) {
	var w world
	err := change(&w, "", record, do)
	result := strings.TrimPrefix(w.out.String(), ": ")
	if errors.Is(err, state.ErrConflict) {
		result = "conflict\n"
	}
	if m.of == nil {
		m.of = map[string][]string{}
	}
	if m.of[result] == nil {
		m.results = append(m.results, result)
	}
	m.of[result] = append(m.of[result], name)
}

func (m *matrix) String() string {
	var out strings.Builder
	for _, result := range m.results {
		fmt.Fprintf(&out, "%s: %s", strings.Join(m.of[result], "; "), result)
	}
	return out.String()
}

// play runs a scene whole, and then with a crash after each effect, after which another process goes on from the records.
// It prints the first run, and what is left where that is not the same.
func play(begin func() (w *world, fresh func(first bool) (Sequence, func()))) string {
	w, fresh := begin()
	s, read := fresh(true)
	whole := w.run(s, read, 0)
	for crash := 1; ; crash++ {
		c, fresh := begin()
		s, read := fresh(true)
		if err := c.run(s, read, crash); !errors.Is(err, errCrash) {
			return w.out.String()
		}
		c.out.Reset()
		s, read = fresh(false)
		if err := c.run(s, read, 0); fmt.Sprint(err) != fmt.Sprint(whole) || c.ends() != w.ends() {
			w.say("after a crash behind effect %d: %v", crash, err)
			for line := range strings.Lines(c.out.String()) {
				if !strings.HasPrefix(line, " ") { // the body of a mail
					w.say("  %s", strings.TrimSpace(line))
				}
			}
		}
	}
}

// TestTranscripts holds what testdata says, and -rewrite writes it: the sequences, effect by effect,
// and every change of a record, from every status. A crash after any effect changes nothing of what comes out, unless it is printed.
func TestTranscripts(t *testing.T) {
	scenes := map[string]func(name string) string{"dispatch": dispatchScene, "retire": retireScene, "land": landScene, "intervene": interveneScene,
		"bead": beadMatrix, "hook": hookMatrix, "request": requestMatrix, "rules": rules}
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			scene := scenes[d.Cmd]
			if scene == nil {
				t.Fatalf("no scene %s", d.Cmd)
			}
			return scene(strings.TrimSpace(d.Input))
		})
	})
}
