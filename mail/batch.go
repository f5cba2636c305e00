package mail

import (
	"context"
	"errors"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// SendAll delivers many messages with shared syncs. It returns for each what Send would
// have returned; when it returns, messages without an error are durable. The times of the
// messages increase in their order, except when a name was taken.
func (s *Sender) SendAll(ctx context.Context, ms []Message) ([]Name, []error) {
	b := batch{sender: s, names: make([]Name, len(ms)), errs: make([]error, len(ms)),
		boxes: map[state.AgentID]*Mailbox{}, admitted: map[pair]error{}}
	var free, tasks []*letter
	keyed := map[*Mailbox][]*letter{}
	var last state.Time
	for i := range ms {
		l := &letter{Message: ms[i], at: i}
		if b.errs[i] = b.accept(l, &last); b.errs[i] != nil {
			continue
		}
		switch {
		case l.Task != nil:
			tasks = append(tasks, l)
		case l.ID == "":
			free = append(free, l)
		default:
			keyed[l.box] = append(keyed[l.box], l)
		}
	}
	b.publish(free)
	for box, letters := range keyed {
		b.publishKeyed(ctx, box, letters)
	}
	for _, l := range tasks { // one by one, because each may be a step after the one before
		b.names[l.at], b.errs[l.at] = s.Send(ctx, l.Message)
	}
	return b.names, b.errs
}

// letter is one message of a batch.
type letter struct {
	Message
	at  int // its index in the batch
	box *Mailbox
}

type batch struct {
	sender *Sender
	names  []Name
	errs   []error
	boxes  map[state.AgentID]*Mailbox
	// admitted are the results of Sender.recipient.
	admitted map[pair]error
}

type pair struct{ from, to state.AgentID }

func (b *batch) accept(l *letter, last *state.Time) error {
	if err := b.sender.complete(&l.Message); err != nil {
		return err
	}
	if !l.Timestamp.After(last.Time) {
		l.Timestamp = state.At(last.Add(1))
	}
	*last = l.Timestamp
	if l.box = b.boxes[l.To]; l.box == nil {
		l.box = NewMailbox(b.sender.tree, l.To)
		b.boxes[l.To] = l.box
	}
	if l.InReplyTo != "" { // whether it is accepted depends on the message that it answers
		return b.sender.recipient(&l.Message)
	}
	who := pair{l.From, l.To}
	err, known := b.admitted[who]
	if !known {
		err = b.sender.recipient(&l.Message)
		b.admitted[who] = err
	}
	return err
}

// publish publishes each letter under the next free nanosecond. Letters whose names were
// taken, which is rare, are tried again together.
func (b *batch) publish(letters []*letter) {
	for len(letters) > 0 {
		var news []state.NewFile
		var waiting, taken []*letter
		for _, l := range letters {
			n := NameAt(l.Timestamp, l.From)
			file, err := b.sender.file(l.box, n, &l.Message)
			switch {
			case errors.Is(err, state.ErrExists):
				taken = append(taken, l)
			case err != nil:
				b.errs[l.at] = err
			default:
				news, waiting = append(news, file), append(waiting, l)
				b.names[l.at] = n
			}
		}
		var sent []event.Event
		for i, err := range b.sender.tree.WriteAll(news) {
			l := waiting[i]
			switch {
			case err == nil:
				sent = append(sent, event.MailSent(describe(l.To, b.names[l.at], &l.Message)))
			case errors.Is(err, state.ErrExists):
				taken = append(taken, l)
			default:
				b.names[l.at], b.errs[l.at] = "", err
			}
		}
		b.sender.log.Tell(sent...)
		for _, l := range taken {
			l.Timestamp = state.At(l.Timestamp.Add(1))
		}
		letters = taken
	}
}

// publishKeyed delivers letters with IDs to one mailbox, each ID once, under its lock.
func (b *batch) publishKeyed(ctx context.Context, box *Mailbox, letters []*letter) {
	lock, err := box.lock(ctx)
	if err != nil {
		for _, l := range letters {
			b.errs[l.at] = err
		}
		return
	}
	defer lock.Unlock()
	first, wanted := map[delivery]*letter{}, map[delivery]bool{}
	for _, l := range letters {
		if d := (delivery{l.From, l.ID}); first[d] == nil {
			first[d], wanted[d] = l, true
		}
	}
	earlier, err := box.delivered(wanted)
	var fresh []*letter
	for d, l := range first {
		b.names[l.at], b.errs[l.at] = earlier[d], err
		if err == nil && earlier[d] == "" {
			fresh = append(fresh, l)
		}
	}
	b.publish(fresh)
	for _, l := range letters { // the same ID of a sender twice in a batch is one message
		of := first[delivery{l.From, l.ID}]
		b.names[l.at], b.errs[l.at] = b.names[of.at], b.errs[of.at]
	}
}
