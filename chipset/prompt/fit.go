package prompt

import (
	"slices"

	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/mail"
)

// Room is how much mail a text may hold.
type Room struct {
	// Left is how much may be added to the text now, Full how much to one that holds nothing else, in bytes.
	Left, Full int
	// Listed are the messages of which the agent knows already that they wait.
	Listed []mail.Name
}

// Fitted is mail in a text of limited size.
type Fitted struct {
	Text quote.Text
	// Whole are the messages that stand there whole, Cut those that no text has room for: their
	// beginning stands there. Listed stand there by sender and subject. What is in none of them waits unmentioned.
	Whole, Cut, Listed []mail.Name
}

const (
	// maxHead is how much is shown of a message that is too long to be shown whole, in bytes.
	maxHead = 1 << 10
	// maxList is how much of a text lists what has no room in it, in bytes.
	maxList = 1500
)

const (
	afterMail  quote.Text = "`chipset mail read NAME` marks one as read, `chipset mail reply NAME --body TEXT` answers it.\n"
	beforeList quote.Text = "More has come, and is shown at your next steps; `chipset mail read NAME` shows one at once:\n"
)

// Fit frames the first of the messages as far as there is room. The rest is listed. Decisions among
// them are said in the rig's own words, as Decisions does.
func Fit(r *rig.Rig, letters []mail.Entry, room Room) Fitted {
	var f Fitted
	frames := len(Preamble) + len("\n\n") + len(afterMail)
	left, full := room.Left-frames, room.Full-frames
	if len(letters) == 0 || left <= 0 {
		return f
	}
	reserved := 0
	if framedSize(r, letters, full) > left {
		reserved = maxList
	}
	var p, list quote.Builder
	for i := range letters {
		text, whole := framed(r, &letters[i], full)
		if i == 1 { // the first one may need all of the room
			left -= reserved
		}
		if len(text) > left {
			f.Listed = listWaiting(&list, letters[i:], room.Listed)
			break
		}
		p.Add(text)
		left -= len(text)
		if whole {
			f.Whole = append(f.Whole, letters[i].Name)
		} else {
			f.Cut = append(f.Cut, letters[i].Name)
		}
	}
	if len(f.Whole)+len(f.Cut) > 0 {
		f.Text = Preamble + "\n\n" + p.Text() + afterMail
	}
	if rest := list.Text(); rest != "" && len(f.Text)+len(rest) <= room.Left {
		f.Text += rest
	} else {
		f.Listed = nil
	}
	return f
}

// framed is one message with what it decides. One that has no room in a text of its own is cut.
func framed(r *rig.Rig, e *mail.Entry, full int) (_ quote.Text, whole bool) {
	decided := Decisions(r, []mail.Entry{*e})
	text, whole := frameMail(e, Excerpt{Limit: full})
	if !whole || len(decided)+len(text)+len("\n\n") > full {
		text, whole = frameMail(e, Excerpt{Limit: maxHead})
	}
	return decided + text + "\n\n", whole
}

// framedSize is how long the messages are together, or something above most.
func framedSize(r *rig.Rig, letters []mail.Entry, most int) int {
	size := 0
	for i := range letters {
		text, _ := framed(r, &letters[i], most)
		if size += len(text); size > most {
			break
		}
	}
	return size
}

// listWaiting writes a line for each message that is not in known, as far as maxList goes, and returns their names.
func listWaiting(list *quote.Builder, letters []mail.Entry, known []mail.Name) []mail.Name {
	const counted = 60 // the line that counts the others
	var names []mail.Name
	left := 0
	for i := range letters {
		e := &letters[i]
		if slices.Contains(known, e.Name) {
			continue
		}
		line := quote.Sprintf("- %s from %s: %s\n", e.Name, quote.Line(string(e.From), maxWord), quote.Line(e.Subject, maxSummary/2))
		if len(list.Text())+len(line) > maxList-len(beforeList)-counted {
			left++
			continue
		}
		if len(names) == 0 {
			list.Add(beforeList)
		}
		list.Add(line)
		names = append(names, e.Name)
	}
	if left > 0 && len(names) > 0 {
		list.Addf("(%d more: chipset mail inbox --unread)\n", left)
	}
	return names
}
