package prompt

import (
	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

// Answers is what the agent of an assignment has asked the person or the mayor,
// and what came back: the decisions in the rig's own words, then the replies as
// data. It is "" while nothing came.
func Answers(r *rig.Rig, id state.AgentID, item *hook.WorkItem) (quote.Text, error) {
	asked, err := actor.Questions(r, id, item)
	if err != nil {
		return "", err
	}
	var replies []mail.Entry
	var plan *actor.Question
	for i := range asked {
		if !asked[i].Answered() {
			continue
		}
		replies = append(replies, *asked[i].Reply)
		if a, decides := mail.AnswerOf(&asked[i].Reply.Message, r.Mayor()); decides && *a.Approved && asked[i].Request.Type == mail.PlanRequest {
			plan = &asked[i]
		}
	}
	text := Decisions(r, replies) + Frames(replies, maxQuotedMail)
	if plan != nil {
		text += "The plan that was approved, as you sent it:\n" + Frame(&mail.Entry{Name: plan.Name, Message: plan.Request}) + "\n\n"
	}
	return text, nil
}

// Decisions says in the rig's own words what the decisions among some messages
// are: that part of them is no data, because who may decide was checked.
func Decisions(r *rig.Rig, letters []mail.Entry) quote.Text {
	var p quote.Builder
	for i := range letters {
		e := &letters[i]
		a, decides := mail.AnswerOf(&e.Message, r.Mayor())
		if !decides || e.Type == mail.ShutdownResponse {
			continue
		}
		who, what := quote.Text("The mayor"), quote.Text("your plan")
		if e.From == state.Human {
			who = "The person"
		}
		if e.Type == mail.PermissionResponse {
			what = "the permission that you asked for"
		}
		word := quote.Text("has approved")
		if !*a.Approved {
			word = "has not approved"
		}
		p.Addf("%s %s %s (your message %s).\n", who, word, what, e.InReplyTo)
	}
	return p.Text()
}
