package main

import (
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

// outcome is what a command did for one argument, for --json.
type outcome struct {
	Number  int           `json:"number,omitempty"` // of the need that it answered
	Did     string        `json:"did,omitempty"`    // absent when it failed
	Name    mail.Name     `json:"name,omitempty"`   // the message that was sent or moved
	To      string        `json:"to,omitempty"`
	BeadID  state.BeadID  `json:"bead_id,omitempty"`
	AgentID state.AgentID `json:"agent_id,omitempty"`
	RigID   string        `json:"rig_id,omitempty"`
	Scope   string        `json:"scope,omitempty"` // that goes on
	Path    string        `json:"path,omitempty"`  // what was written or removed
	Count   int           `json:"count,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	Error   string        `json:"error,omitempty"`
}

// did reports what a command has done: with --json as v, else as text. If err is not nil, it only
// returns err.
func (a *app) did(v any, err error, format string, args ...any) error {
	return a.show(v, err, func() error {
		a.printf(format, args...)
		return nil
	})
}

// didAll is did for several outcomes. It reports them even if err is not nil, and returns err.
func (a *app) didAll(all []outcome, err error, line func(o *outcome) string) error {
	if a.json {
		return joined([]error{err, printList(a, all)})
	}
	for i := range all {
		a.printf("%s\n", clean(line(&all[i])))
	}
	return err
}

// sent reports the message that a command has sent, by its name. A printed name is an acknowledgement, so it is not
// printed if err is not nil.
func (a *app) sent(err error, message outcome) error {
	if err != nil {
		return err
	}
	return a.named([]outcome{message}, nil)
}

// named is didAll for messages, by their names.
func (a *app) named(all []outcome, err error) error {
	return a.didAll(all, err, func(o *outcome) string { return string(o.Name) })
}

// note prints a remark to standard output, or with --json to standard error.
func (a *app) note(format string, args ...any) {
	if a.json {
		a.tellf(format, args...)
		return
	}
	a.printf(format, args...)
}
