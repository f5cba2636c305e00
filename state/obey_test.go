package state_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

// thing is an object of the stores of these tests.
type thing struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

func things(r *model.Run) *state.Store[thing] {
	return state.NewStore(r.Tree, "state/things", "thing", state.LockRecord, func(name string, v *thing) error {
		if v.Name != name {
			return fmt.Errorf("name %q contradicts the file's name", v.Name)
		}
		return nil
	}).WithSummaries("1", func(v *thing) []string { return []string{fmt.Sprint(v.Count)} })
}

// prepareThings makes two objects, a message and a log.
func prepareThings(r *model.Run) error {
	return errors.Join(
		things(r).Create("one", thing{Name: "one", Count: 1}), things(r).Create("two", thing{Name: "two", Count: 2}),
		r.Tree.WriteNew("state/mail/mayor/old.json", []byte("old")), r.Tree.Append("state/log.jsonl", []byte("torn")),
		r.Tree.SyncFile("state/log.jsonl"))
}

// listed returns an error for each object that could not be read.
func listed[T any](all []T, bad []error, err error) (any, error) {
	return fmt.Sprintf("%+v", all), errors.Join(append(bad, err)...)
}

// Each verb of the tree says what it could not do.
func TestVerbsOfTheTreeObey(t *testing.T) {
	const old, elsewhere = state.Path("state/mail/mayor/old.json"), state.Path("state/mail/mayor/archive/old.json")
	verbs := map[string]model.Verb{
		"write new": {Spares: []string{"state/things", "state/log.jsonl", "state/mail/mayor/"}, Do: func(r *model.Run) (any, error) {
			return nil, r.Tree.WriteNew("state/mail/mayor/new.json", []byte("new"))
		}},
		"write all": {Spares: []string{"state/things", "state/log.jsonl", "state/mail/mayor/"}, Do: func(r *model.Run) (any, error) {
			var news []state.NewFile
			for i := range 6 {
				news = append(news, state.NewFile{Path: state.Path(fmt.Sprintf("state/mail/agent-%d/%d.json", i%2, i)), Data: fmt.Append(nil, i)})
			}
			return nil, errors.Join(r.Tree.WriteAll(news)...)
		}},
		"replace": {Spares: []string{"state/things", "state/log.jsonl"}, Do: func(r *model.Run) (any, error) {
			return nil, r.Tree.Replace(old, []byte("new"))
		}},
		"append": {Lock: func(p state.Path) (state.LockKind, string) { return state.LockAppend, p.Base() }, Spares: []string{"state/things", "state/mail"}, Do: func(r *model.Run) (any, error) {
			return nil, errors.Join(r.Tree.Append("state/log.jsonl", []byte("line\n")), r.Tree.SyncFile("state/log.jsonl"))
		}},
		"move": {Spares: []string{"state/things", "state/log.jsonl", string(old)}, Do: func(r *model.Run) (any, error) {
			return nil, r.Tree.Move(old, elsewhere)
		}},
		"remove": {Spares: []string{"state/things", "state/log.jsonl"}, Do: func(r *model.Run) (any, error) { return nil, r.Tree.Remove(old) }},
		"set aside": {Spares: []string{"state/things", "state/log.jsonl", string(old)}, Do: func(r *model.Run) (any, error) {
			_, err := r.Tree.Quarantine(old, "why", state.At(later()))
			return nil, err
		}},
		"set a copy aside": {Spares: []string{"state/things", "state/log.jsonl"}, Do: func(r *model.Run) (any, error) {
			_, err := r.Tree.QuarantineCopy(old, "why", state.At(later()))
			return nil, err
		}},
		"explain": {Spares: []string{"state/things", "state/log.jsonl", "state/mail"}, Do: func(r *model.Run) (any, error) {
			return nil, r.Tree.Explain(state.QuarantineDir.Join("x"), "why", state.At(later()))
		}},
		"clear the way": {Spares: []string{"state/things", "state/log.jsonl", string(old)}, Do: func(r *model.Run) (any, error) {
			return nil, r.Tree.QuarantineNonFolder(r, old, "why", state.At(later()))
		}},
		"list": {Spares: []string{"state/things", "state/log.jsonl", "state/mail/mayor/"}, Do: func(r *model.Run) (any, error) {
			all, err := r.Tree.List("state/mail/mayor")
			return len(all), err
		}},
	}
	for name, features := range model.Kinds() {
		t.Run(name, func(t *testing.T) { model.ObeyOn(t, features, prepareThings, verbs) })
	}
	model.Obey(t, func(r *model.Run) error {
		return errors.Join(r.Tree.WriteNew("state/mail/.tmp-1-x", []byte("a")), r.Tree.WriteNew("state/mail/.tmp-1-y", []byte("b")))
	}, map[string]model.Verb{
		"sweep": {Spares: []string{"state/mail"}, Do: func(r *model.Run) (any, error) { return r.Tree.RemoveTempFiles(later()) }},
	})
	model.Obey(t, func(r *model.Run) error {
		return r.Tree.WriteNew(state.QuarantineDir, []byte("in the way"))
	}, map[string]model.Verb{
		"clear the quarantine": {Do: func(r *model.Run) (any, error) {
			err := r.Tree.QuarantineNonFolder(r, state.QuarantineDir, "why", state.At(later()))
			all, listErr := r.Tree.Quarantined()
			return len(all), errors.Join(err, listErr)
		}, Spares: []string{string(state.QuarantineDir)}},
	})
}

// Each verb of a store changes objects under its lock and says what it could not do.
func TestVerbsOfAStoreObey(t *testing.T) {
	lock := func(p state.Path) (state.LockKind, string) {
		if !strings.HasPrefix(string(p), "state/things/") {
			return "", ""
		}
		return state.LockRecord, strings.TrimSuffix(p.Base(), ".json")
	}
	others := []string{"state/log.jsonl", "state/mail"}
	but := func(names ...string) []string {
		all := others
		for _, n := range names {
			all = append(all, "state/things/"+n)
		}
		return all
	}
	count := func(v *thing) error { v.Count++; return nil }
	model.Obey(t, prepareThings, map[string]model.Verb{
		"get":        {Spares: but("two"), Do: func(r *model.Run) (any, error) { return things(r).Get("one") }},
		"get cached": {Spares: but("two"), Do: func(r *model.Run) (any, error) { return things(r).GetCached("one") }},
		"all":        {Spares: others, Do: func(r *model.Run) (any, error) { return listed(things(r).All()) }},
		"all again": {Spares: others, Do: func(r *model.Run) (any, error) {
			s := things(r)
			_, err := listed(s.All())
			if err = errors.Join(err, things(r).Put("one", thing{Name: "one", Count: 5})); err != nil {
				return nil, err
			}
			return listed(s.All()) // what is known has changed
		}},
		"select": {Spares: others, Do: func(r *model.Run) (any, error) {
			return listed(things(r).Select(func(v *thing) bool { return v.Count == 2 }))
		}},
		"summaries": {Spares: others, Do: func(r *model.Run) (any, error) { return listed(things(r).Summaries()) }},
		"since": {Spares: others, Do: func(r *model.Run) (any, error) {
			c, err := things(r).Since(state.Cursor{})
			return listed(c.Values, c.Bad, err)
		}},
		"create": {Spares: but("one", "two"), Do: func(r *model.Run) (any, error) { return nil, things(r).Create("three", thing{Name: "three"}) }},
		"create all": {Spares: but("one", "two"), Do: func(r *model.Run) (any, error) {
			return nil, errors.Join(things(r).CreateAll([]thing{{Name: "three"}, {Name: "four"}}, func(v *thing) string { return v.Name })...)
		}},
		"put": {Spares: but("two"), Do: func(r *model.Run) (any, error) { return nil, things(r).Put("one", thing{Name: "one", Count: 5}) }},
		"update": {Lock: lock, Spares: but("two"), Do: func(r *model.Run) (any, error) {
			return things(r).Update(r, "one", count)
		}},
		"update then": {Lock: lock, Spares: but("two"), Do: func(r *model.Run) (any, error) {
			return things(r).UpdateThen(r, "one", count, func() error { return r.Tree.Replace("state/things-act", nil) })
		}},
		"insert": {Lock: lock, Spares: but("one", "two"), Do: func(r *model.Run) (any, error) {
			return things(r).Upsert(r, "three", func(v *thing, found bool) error {
				if found {
					return errors.New("found")
				}
				v.Name = "three"
				return nil
			})
		}},
		"upsert": {Lock: lock, Spares: but("two"), Do: func(r *model.Run) (any, error) {
			return things(r).Upsert(r, "one", func(v *thing, _ bool) error { return count(v) })
		}},
		"remove": {Spares: but("two"), Do: func(r *model.Run) (any, error) { return nil, things(r).Remove("one") }},
	})
	model.Obey(t, func(r *model.Run) error { return r.Tree.WriteNew("state/things/bad.json", []byte("{")) }, map[string]model.Verb{
		"set aside": {Lock: lock, Spares: []string{"state/things"}, Do: func(r *model.Run) (any, error) {
			return nil, things(r).Quarantine(r, "bad", state.At(later()))
		}},
	})
}

// Files that a power cut let share are parted, or it is said that they are not.
func TestPartingObeys(t *testing.T) {
	const a, b = state.Path("state/things/a.json"), state.Path("state/things/b.json")
	prepare := func(r *model.Run) error {
		return errors.Join(r.Tree.WriteNew(a, []byte("a")), r.Tree.WriteNew(b, []byte("b")))
	}
	model.Obey(t, prepare, map[string]model.Verb{
		"part": {Spares: []string{"state/things"}, Do: func(r *model.Run) (any, error) {
			err := errors.Join(r.Tree.MkdirAll("run/agents"), r.Tree.MkdirAll("worktrees"), os.Link(r.Tree.Abs(a), r.Tree.Abs("run/agents/x")), os.Link(r.Tree.Abs(b), r.Tree.Abs("worktrees/y")))
			if err != nil {
				return nil, err
			}
			n, err := r.Tree.BreakAllHardLinks()
			if err != nil {
				return nil, err
			}
			one, oneErr := r.Tree.Read(a, 10)
			two, twoErr := r.Tree.Read(b, 10)
			left, leftErr := r.Tree.Exists("run/agents/x")
			return fmt.Sprint(n, string(one), string(two), left), errors.Join(oneErr, twoErr, leftErr)
		}},
	})
}
