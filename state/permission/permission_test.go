package permission

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

var now = state.At(time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC))

func rule(text string, id state.AgentID, d Decision) Rule {
	return Rule{ID: IDOf(text, id), Rule: text, AgentID: id, Decision: d, By: state.Human, CreatedAt: now}
}

// Each verb changes a rule under its lock, says what it could not do, and tells what it did.
func TestVerbsObey(t *testing.T) {
	store := func(r *model.Run) Store {
		return NewStore(r.Tree, event.NewLog(r.Tree, func() time.Time { return now.Time }))
	}
	old := rule("Bash(rm -r x)", "", Deny)
	lock := func(p state.Path) (state.LockKind, string) {
		if p.Dir() != Dir {
			return "", ""
		}
		return state.LockRecord, strings.TrimSuffix(p.Base(), ".json")
	}
	model.Obey(t, func(r *model.Run) error { _, err := store(r).Decide(r, old); return err }, map[string]model.Verb{
		"decide": {Tells: " permission.decided", Lock: lock, Spares: []string{string(Dir)}, Do: func(r *model.Run) (any, error) {
			return store(r).Decide(r, rule("Bash(make)", "polecat-alpha", Approve))
		}},
		"decide anew": {Tells: " permission.decided", Lock: lock, Do: func(r *model.Run) (any, error) {
			return store(r).Decide(r, rule(old.Rule, "", Approve))
		}},
		"revoke": {Tells: " permission.revoked", Do: func(r *model.Run) (any, error) { return store(r).Revoke(old.ID, state.Human) }},
		"find":   {Do: func(r *model.Run) (any, error) { return store(r).Find(old.Rule, "polecat-alpha") }},
	})
}

// An agent's own rule goes before that of all, nobody but the person makes one, and it is one line.
func TestRules(t *testing.T) {
	tree, err := state.Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := NewStore(tree, nil)
	for _, r := range []Rule{rule("a", "", Deny), rule("a", "polecat-alpha", Approve)} {
		if _, err := s.Decide(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[state.AgentID]Decision{"polecat-alpha": Approve, "polecat-bravo": Deny} {
		if r, err := s.Find("a", id); err != nil || r.Decision != want {
			t.Errorf("%s: %+v, %v", id, r, err)
		}
	}
	if _, err := s.Find("b", "polecat-alpha"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("of nothing: %v", err)
	}
	if _, err := s.Revoke(IDOf("b", ""), state.Human); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("nothing revoked: %v", err)
	}
	if err := CheckRule(strings.Repeat("x", MaxRule)); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(r *Rule){
		"another name":    func(r *Rule) { r.ID = IDOf("other", "") },
		"no decision":     func(r *Rule) { r.Decision = "perhaps" },
		"of an agent":     func(r *Rule) { r.By = "mayor" },
		"empty":           func(r *Rule) { r.Rule = " " },
		"two lines":       func(r *Rule) { r.Rule = "a\nb" },
		"no text":         func(r *Rule) { r.Rule = "\xff" },
		"too long by one": func(r *Rule) { r.Rule = strings.Repeat("x", MaxRule+1) },
	} {
		r := rule("c", "", Approve)
		before := r.Rule
		change(&r)
		if r.Rule != before {
			r.ID = IDOf(r.Rule, "")
		}
		if _, err := s.Decide(t.Context(), r); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
}

// A host that was refused waits for the person, once, and is allowed for nobody before.
func TestAskForHost(t *testing.T) {
	tree, err := state.Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := NewStore(tree, nil)
	ask := func(host string, want bool) {
		t.Helper()
		isNew, err := s.AskForHost(t.Context(), host, Rule{By: "polecat-alpha", Reason: "the worker of gt-a", CreatedAt: now})
		if err != nil || isNew != want {
			t.Errorf("%s: new %t, %v", host, isNew, err)
		}
	}
	hosts := func() []string {
		all, _, err := s.All()
		if err != nil {
			t.Fatal(err)
		}
		return Hosts(all, "polecat-alpha")
	}
	ask("a.example.org", true)
	ask("a.example.org", false)
	if _, err := s.Find("Network(a.example.org)", "polecat-alpha"); !errors.Is(err, state.ErrNotFound) || len(hosts()) > 0 {
		t.Errorf("it counts as decided: %v, %q", err, hosts())
	}
	for _, d := range []Decision{Deny, Approve} {
		want := map[Decision]int{Approve: 1}[d]
		if _, err := s.Decide(t.Context(), rule("Network(a.example.org)", "", d)); err != nil {
			t.Fatal(err)
		}
		ask("a.example.org", false)
		if got := hosts(); len(got) != want {
			t.Errorf("%s: %q", d, got)
		}
	}
	for i := range 2 * maxAsked {
		ask("h"+strings.Repeat("x", i)+".example.org", i < maxAsked)
	}
	if all, _, _ := s.All(); len(all) != maxAsked+1 {
		t.Errorf("%d wait", len(all))
	}
}
