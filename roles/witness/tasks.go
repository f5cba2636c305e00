package witness

import (
	"fmt"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

// overdue tells both sides of a task, once each, that its deadline has passed and
// it is not over. There is no incident: the mail, whose id is that of the task's
// request, is the record.
func (d *decision) overdue() {
	told := map[mail.Name]bool{}
	for i := range d.f.Scan.Overdue {
		t := &d.f.Scan.Overdue[i]
		told[t.Request] = true
		if d.s.Overdue[t.Request] {
			continue
		}
		subject := fmt.Sprintf("overdue: %s (task %s of %s for %s)", t.Subject, t.ID, t.Requester, t.Assignee)
		facts := fmt.Sprintf("deadline:    %s\nstate:       %s, since %s\nrequest:     %s\n", t.Deadline, t.State, t.UpdatedAt, t.Request)
		d.do(Remind{To: t.Requester, ID: "overdue:" + string(t.Request), Subject: subject, Thread: t.Request,
			Body: facts + fmt.Sprintf("\nIt can't be accepted any more. Ask %s, or ask somebody else with a new deadline.\n", t.Assignee)})
		if t.Assignee != t.Requester {
			d.do(Remind{To: t.Assignee, ID: "overdue:" + string(t.Request), Subject: subject, Thread: t.Request,
				Body: facts + fmt.Sprintf("\nTell %s where it stands: chipset mail reply %s --state completed|failed|rejected --body TEXT\n", t.Requester, t.Request)})
		}
	}
	d.s.Overdue = told
}

// Remind sends a message once, however often it is decided: its id is the same.
type Remind struct {
	To            state.AgentID
	ID            string
	Subject, Body string
	Thread        mail.Name
}

func (Remind) action() {}
