package simulate

import (
	"slices"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/mayor"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/retire"
)

func (w *world) putRecord(rec retire.Record) error {
	if w.full {
		return errDiskFull
	}
	old, known := w.records[rec.AssignmentID]
	w.judge.record(w, old, rec, known)
	if !known {
		w.unfinished[rec.AgentID] = append(w.unfinished[rec.AgentID], rec.AssignmentID)
		w.byID[rec.AgentID].wake()
	}
	if rec.Stage.Final() {
		w.unfinished[rec.AgentID] = slices.DeleteFunc(w.unfinished[rec.AgentID], func(a state.AssignmentID) bool { return a == rec.AssignmentID })
	}
	w.records[rec.AssignmentID] = rec
	return nil
}

func (w *world) putDispatch(rec dispatch.Record) error {
	if w.full {
		return errDiskFull
	}
	if rec.Stage == dispatch.Confirmed {
		delete(w.dispatches, rec.BeadID)
		return nil
	}
	w.dispatches[rec.BeadID] = rec
	return nil
}

func (w *world) removeDispatch(id state.BeadID) error {
	if w.full {
		return errDiskFull
	}
	delete(w.dispatches, id)
	return nil
}

// send delivers a message. One with an id that its sender has used is delivered
// already.
func (w *world) send(m mail.Message, esc *mayor.Escalation) error {
	if w.full {
		return errDiskFull
	}
	if m.ID != "" {
		key := string(m.From) + ">" + string(m.To) + ":" + m.ID
		if w.sent[key] {
			return nil
		}
		w.sent[key] = true
	}
	if m.Priority == "" {
		m.Priority = mail.Normal
	}
	m.Timestamp = w.clock()
	w.tally.Mails[string(m.Type)]++
	if m.To == state.Human {
		return nil
	}
	w.letters[m.To] = append(w.letters[m.To], mayor.Message{Entry: mail.Entry{Name: mail.Name(w.newSerial("mail-")), Message: m}, Escalation: esc})
	w.byID[m.To].wake()
	return nil
}

func (w *world) markRead(to state.AgentID, name mail.Name) error {
	if w.full {
		return errDiskFull
	}
	w.letters[to] = slices.DeleteFunc(w.letters[to], func(l mayor.Message) bool { return l.Name == name })
	return nil
}

// entries are the unread mail of an agent other than the mayor.
func (w *world) entries(id state.AgentID) []mail.Entry {
	letters := w.letters[id]
	if len(letters) == 0 {
		return nil
	}
	all := make([]mail.Entry, len(letters))
	for i := range letters {
		all[i] = letters[i].Entry
	}
	mail.SortForProcessing(all, mayorID)
	return all
}

// sendNudge puts a hint into a slot, unless it is lost.
func (w *world) sendNudge(from state.AgentID, a roles.Nudge) (nudge.Nudge, error) {
	to, n := a.To, a.Nudge
	n.From = from
	if w.full {
		return n, errDiskFull
	}
	w.tally.Nudges[string(n.Type)]++
	n.Timestamp = w.clock()
	if last := w.seen[[2]state.AgentID{to, n.From}]; !n.Timestamp.After(last.Time) {
		n.Timestamp = state.At(last.Add(1))
	}
	if w.chance(w.o.Faults.Nudge) {
		w.tally.NudgesLost++
		return n, nil
	}
	slot := slices.DeleteFunc(w.slotsOf[to], func(o nudge.Nudge) bool { return o.From == n.From })
	w.slotsOf[to] = append(slot, n)
	w.byID[to].wake()
	return n, nil
}

func (w *world) markSeen(to state.AgentID, n nudge.Nudge) error {
	if w.full {
		return errDiskFull
	}
	w.seen[[2]state.AgentID{to, n.From}] = n.Timestamp
	w.slotsOf[to] = slices.DeleteFunc(w.slotsOf[to], func(o nudge.Nudge) bool { return o.From == n.From && !o.Timestamp.After(n.Timestamp.Time) })
	return nil
}

func (w *world) nudges(id state.AgentID) []nudge.Nudge {
	if len(w.slotsOf[id]) == 0 {
		return nil
	}
	return slices.Clone(w.slotsOf[id])
}
