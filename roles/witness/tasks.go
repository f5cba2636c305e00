package witness

import (
	"fmt"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
)

// overdue tells both sides of a task, once each, that its deadline has passed and
// it is not over. There is no incident: the mail, whose id is that of the task's
// request, is the record.
func (d *decision) overdue() {
	for i := range d.f.Scan.Overdue {
		t := &d.f.Scan.Overdue[i]
		if d.f.Scan.Reminded[t.Request] {
			continue
		}
		facts := fmt.Sprintf("deadline:    %s\nstate:       %s, since %s\nrequest:     %s\n", t.Deadline, t.State, t.UpdatedAt, t.Request)
		g := roles.Group{reminder(t, t.Requester,
			facts+fmt.Sprintf("\nIt can't be accepted any more. Ask %s, or ask somebody else with a new deadline.\n", t.Assignee))}
		if t.Assignee != t.Requester {
			g = append(g, reminder(t, t.Assignee,
				facts+fmt.Sprintf("\nTell %s where it stands: chipset mail reply %s --state completed|failed|rejected --body TEXT\n", t.Requester, t.Request)))
		}
		d.do(append(g, RememberOverdue{t.Request})...)
	}
}

// reminder is the mail to one side of an overdue task. Its id is always the same.
func reminder(t *mail.TaskStatus, to state.AgentID, body string) roles.Send {
	return roles.Send{Message: mail.Message{To: to, Type: mail.Coordination, ID: "overdue:" + string(t.Request), Thread: string(t.Request),
		Subject: fmt.Sprintf("overdue: %s (task %s of %s for %s)", t.Subject, t.ID, t.Requester, t.Assignee), Body: body}}
}
