// Package permission stores permanent decisions of the person:
// state/permissions/{rule}.json. A file is one rule; its name is derived from what the
// rule is about, so that a later decision replaces an earlier one.
package permission

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// Decision is the decision about a rule.
type Decision string

const (
	// Approve: requests are approved.
	Approve Decision = "approve"
	// Deny: requests are denied.
	Deny Decision = "deny"
	// Asked: an agent tried it and was refused; ends when the person approves or denies it.
	Asked Decision = "asked"
)

// MaxRule bounds the text of a rule, in bytes.
const MaxRule = 1000

// Rule is one stored decision.
type Rule struct {
	ID string `json:"id"`
	// Rule is the exact text of the request. There are no patterns, because a pattern
	// permits what the person has not seen.
	Rule string `json:"rule"`
	// AgentID is the agent that the rule applies to; "" means every agent.
	AgentID  state.AgentID `json:"agent_id,omitempty"`
	Decision Decision      `json:"decision"`
	Reason   string        `json:"reason,omitempty"`
	// By is who decided, always the person, or, for Asked, the agent that tried it.
	By        state.AgentID `json:"by"`
	CreatedAt state.Time    `json:"created_at"`

	Extra state.Extra `json:"-"`
}

// UnmarshalJSON keeps unknown fields.
func (r *Rule) UnmarshalJSON(b []byte) error {
	type plain Rule
	return state.UnmarshalWithExtra(b, (*plain)(r), &r.Extra)
}

// MarshalJSON writes unknown fields back.
func (r Rule) MarshalJSON() ([]byte, error) {
	type plain Rule
	return state.MarshalWithExtra(plain(r), r.Extra)
}

// IDOf returns the name of the rule about a text, for one agent or, if id is "", for all.
func IDOf(rule string, id state.AgentID) string {
	sum := sha256.Sum256([]byte(string(id) + "\n" + rule))
	return "pm-" + hex.EncodeToString(sum[:8])
}

// CheckRule returns an error unless the text may be a rule: one line, so that the person
// sees all of it.
func CheckRule(rule string) error {
	switch {
	case strings.TrimSpace(rule) == "":
		return errors.New("the rule is empty")
	case len(rule) > MaxRule:
		return fmt.Errorf("the rule has %d bytes, at most %d", len(rule), MaxRule)
	case !utf8.ValidString(rule) || strings.ContainsAny(rule, "\n\r\x00"):
		return errors.New("the rule is not one line")
	}
	return nil
}

// Dir is the folder of the rules.
const Dir = state.StateDir + "/permissions"

// Store is state/permissions/.
type Store struct {
	*state.Store[Rule]
	log *event.Log
}

// NewStore opens the rules of a tree. It logs decisions and revocations; log may be nil.
func NewStore(t *state.Tree, log *event.Log) Store {
	return Store{state.NewStore(t, Dir, "permission", state.LockRecord, check), log}
}

// Decide stores a rule and replaces an earlier one about the same text and agent. Durable
// when it returns nil.
func (s Store) Decide(ctx context.Context, rule Rule) (Rule, error) {
	stored, err := s.Upsert(ctx, rule.ID, func(r *Rule, _ bool) error { *r = rule; return nil })
	if err == nil {
		s.log.Tell(event.PermissionDecided(rule.By, rule.ID, string(rule.Decision), rule.Rule))
	}
	return stored, err
}

// Revoke removes a rule and returns it. Durable when it returns nil. Errors:
// state.ErrNotFound.
func (s Store) Revoke(id string, by state.AgentID) (Rule, error) {
	rule, err := s.Get(id)
	if err != nil {
		return rule, err
	}
	if err := s.Remove(id); err != nil {
		return rule, err
	}
	s.log.Tell(event.PermissionRevoked(by, id, rule.Rule))
	return rule, nil
}

func check(name string, r *Rule) error {
	switch {
	case r.ID != name || name != IDOf(r.Rule, r.AgentID):
		return fmt.Errorf("id %q contradicts the file's name or the text of the rule", r.ID)
	case r.Decision != Approve && r.Decision != Deny && r.Decision != Asked:
		return fmt.Errorf("unknown decision %q", r.Decision)
	case r.By != state.Human && r.Decision != Asked:
		return fmt.Errorf("decided by %q, but only %s may decide", r.By, state.Human)
	}
	return CheckRule(r.Rule)
}

// Find returns the rule that applies to a request of an agent: its own, or else that of
// all agents. Errors: state.ErrNotFound when the person must be asked.
func (s Store) Find(rule string, id state.AgentID) (Rule, error) {
	r, err := s.Get(IDOf(rule, id))
	if errors.Is(err, state.ErrNotFound) {
		r, err = s.Get(IDOf(rule, ""))
	}
	if err == nil && r.Decision == Asked {
		return Rule{}, fmt.Errorf("permission %s: %w: the person has not decided", r.ID, state.ErrNotFound)
	}
	return r, err
}

// maxAsked is how many hosts may wait for a decision.
const maxAsked = 50

// AskForHost records that an agent was refused a connection to a host, and reports whether that is new. It changes
// nothing if the person has decided about the host, or if maxAsked hosts wait already. Durable when it returns nil.
func (s Store) AskForHost(ctx context.Context, host string, r Rule) (bool, error) {
	r.Rule, r.Decision, r.AgentID = hostRule(host), Asked, ""
	r.ID = IDOf(r.Rule, "")
	if _, err := s.Get(r.ID); !errors.Is(err, state.ErrNotFound) {
		return false, err
	}
	known, _, err := s.All()
	if err != nil || len(slices.DeleteFunc(known, func(k Rule) bool { return k.Decision != Asked })) >= maxAsked {
		return false, err
	}
	isNew := false
	_, err = s.Upsert(ctx, r.ID, func(stored *Rule, exists bool) error {
		if isNew = !exists; isNew {
			*stored = r
		}
		return nil
	})
	return isNew && err == nil, err
}

// Hosts returns those that the person has approved for an agent or, with "", for all.
func Hosts(rules []Rule, id state.AgentID) []string {
	var hosts []string
	for _, r := range rules {
		if host, is := r.Host(); is && r.Decision == Approve && (r.AgentID == "" || r.AgentID == id) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// Host returns the host that a rule is about. is is false if it is not about a host.
func (r *Rule) Host() (host string, is bool) {
	if host, is = strings.CutPrefix(r.Rule, hostPrefix); !is {
		return "", false
	}
	return strings.CutSuffix(host, ")")
}

const hostPrefix = "Network("

func hostRule(host string) string { return hostPrefix + host + ")" }
