package carry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/retire"
)

// report tells the mayor and the witness. A mayor or witness that is no longer
// registered is a warning: bead, queue and hook say the same as the mail.
func (f *finish) report(ctx context.Context) error {
	subject, body := f.letter()
	ref := &mail.Ref{BeadID: f.rec.BeadID, AssignmentID: f.rec.AssignmentID, Session: f.rec.Session}
	report := mail.Message{From: f.rec.AgentID, To: f.Rig.Mayor(), Type: mail.CompletionReport, Subject: subject, Body: body,
		ID: "report-" + string(f.rec.AssignmentID), Ref: ref}
	if err := f.sendAs(ctx, &f.rec.ReportName, report); err != nil {
		return err
	}
	if err := f.step("report"); err != nil {
		return err
	}
	note := mail.Message{From: f.rec.AgentID, To: f.Rig.Witness(), Type: mail.Coordination, Priority: mail.Low, Subject: subject,
		Body: "The attempt is retired; there is nothing to watch until the next one.\n", ID: "note-" + string(f.rec.AssignmentID), Ref: ref}
	if err := f.sendAs(ctx, &f.rec.NoteName, note); err != nil {
		return err
	}
	if err := f.step("note"); err != nil {
		return err
	}
	return f.reach(retire.Reported)
}

// letter is the subject and the body of the completion report.
func (f *finish) letter() (subject, body string) {
	title := ""
	if b, err := f.Rig.Beads.Get(string(f.rec.BeadID)); err == nil {
		title = ": " + b.Title
	}
	word := string(retire.Done)
	switch f.rec.Outcome {
	case retire.Fail:
		word = "failed"
	case retire.Block:
		word = "blocked"
	case retire.Done:
	}
	var text strings.Builder
	line := func(label, value string) {
		if value != "" {
			fmt.Fprintf(&text, "%s: %s\n", label, value)
		}
	}
	line("Outcome", word)
	if f.rec.Empty {
		line("Landed", "nothing to land")
	}
	line("Reason", f.rec.Reason)
	line("Summary", f.rec.Summary)
	if f.lands() {
		line("Merge request", string(f.rec.MR))
		line("Branch", f.rec.Branch+" at "+git.Hash(f.rec.Head).Short())
	}
	line("Unfinished work", f.rec.Salvage)
	line("Transcript", string(state.LogDir)+"/"+string(f.rec.Session)+".log")
	return string(f.rec.BeadID) + " " + word + title, text.String()
}

// sendAs sends under the name that the record holds. A name that somebody else
// has is replaced by the next nanosecond's, in the record first.
func (f *finish) sendAs(ctx context.Context, name *string, m mail.Message) error {
	for {
		n, err := mail.ParseName(*name)
		if err != nil {
			n = mail.NameAt(f.Rig.Clock.Now(), f.rec.AgentID)
		}
		err = f.Rig.SendAs(ctx, n, m)
		switch {
		case errors.Is(err, state.ErrExists):
			*name = string(mail.NameAt(state.At(n.Time().Add(1)), f.rec.AgentID))
			if err := f.save(); err != nil {
				return err
			}
		case errors.Is(err, state.ErrTooLarge) && m.Body != shortBody:
			m.Body = shortBody
		case errors.Is(err, state.ErrNotFound), errors.Is(err, state.ErrConflict), errors.Is(err, state.ErrCorrupt):
			f.warn("mail.undeliverable", err)
			return nil
		default:
			return err
		}
	}
}

// shortBody stands for a report that is larger than the rig's limit.
const shortBody = "The report is larger than a message may be: see state/retire/.\n"
