package execute

import (
	"errors"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles/witness"
	"github.com/gastown-chipset/chipset/state"
)

// tasksOf are the tasks that an agent was asked for by its mail, and the version
// of the mailbox in which they stood.
type tasksOf struct {
	seen  state.Stamp
	tasks []mail.TaskStatus
}

// overdue finds the tasks whose deadline has passed and that are not over.
func (w *witnessRunner) overdue(agents []witness.Agent) ([]mail.TaskStatus, error) {
	now := w.Now()
	var late []mail.TaskStatus
	for i := range agents {
		box := w.Rig.Mailbox(agents[i].ID)
		tasks, err := w.tasksIn(box)
		if err != nil {
			return nil, err
		}
		for _, t := range tasks {
			if !t.Overdue(now.Time) {
				continue
			}
			asked, err := box.Get(t.Request)
			if err != nil {
				continue // archived or quarantined meanwhile: the next look knows
			}
			if s, err := mail.TaskStatusOf(w.Rig.Mailbox(t.Requester), &asked); err == nil && s != nil && s.Overdue(now.Time) {
				late = append(late, *s)
			}
		}
	}
	return late, nil
}

// tasksIn are the tasks that a mailbox asks for. It is read again only when
// something in it has changed; how far they are may be older.
func (w *witnessRunner) tasksIn(box *mail.Mailbox) ([]mail.TaskStatus, error) {
	stamp, err := box.Stamp()
	if err != nil {
		return nil, err
	}
	known, found := w.tasks[box.Owner()]
	if found && known.seen == stamp && stamp != (state.Stamp{}) { // zero is no version
		return known.tasks, nil
	}
	tasks, err := mail.TasksFor(box, w.Rig.Mailbox)
	if err != nil && !errors.Is(err, state.ErrCorrupt) { // a mailbox that can't be read is the doctor's
		return nil, err
	}
	w.tasks[box.Owner()] = tasksOf{stamp, tasks}
	return tasks, nil
}
