package mail

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gastown-chipset/chipset/state"
)

func TestSendAllAnswersInOrder(t *testing.T) {
	p := newPost(t)
	taken, err := p.Send(testContext(), hello())
	must(t, err)
	const n = 40
	ms := make([]Message, n)
	for i := range ms {
		ms[i] = hello()
		ms[i].Body = fmt.Sprint("body ", i)
	}
	ms[3].To = "nobody"
	ms[4].To = "witness"
	ms[5].Subject = ""
	ms[6].Body = strings.Repeat("x", MaxSize)
	names, errs := p.SendAll(testContext(), ms)
	for i := range ms {
		if want := map[int]error{3: state.ErrNotFound, 5: nil, 6: state.ErrTooLarge}[i]; i == 3 || i == 5 || i == 6 {
			if errs[i] == nil || names[i] != "" || want != nil && !errors.Is(errs[i], want) {
				t.Errorf("%d: %q, %v", i, names[i], errs[i])
			}
			continue
		}
		must(t, errs[i])
		e, err := NewMailbox(p.tree, ms[i].To).Get(names[i])
		if err != nil || e.Body != ms[i].Body {
			t.Errorf("%d: %q, %v", i, e.Body, err)
		}
		// The first met a name that was taken, and went past all others.
		if i > 1 && names[i-1] != "" && names[i] <= names[i-1] {
			t.Errorf("%d: %s comes before %s", i, names[i], names[i-1])
		}
	}
	if e, err := p.box.Get(taken); err != nil || e.Body != hello().Body {
		t.Errorf("the message that was there: %q, %v", e.Body, err)
	}
}

func TestSendAllPassesNamesThatAreTaken(t *testing.T) {
	p := newPost(t)
	const n = 5
	for range n {
		_, err := p.Send(testContext(), hello())
		must(t, err)
	}
	names, errs := p.SendAll(testContext(), []Message{hello(), hello(), hello()})
	must(t, errors.Join(errs...))
	entries, bad, err := p.box.List()
	if err != nil || len(bad) > 0 || len(entries) != n+len(names) {
		t.Errorf("%d messages, %v, %v, want %d", len(entries), bad, err, n+len(names))
	}
}

func TestSendAllDeliversAnIDOnce(t *testing.T) {
	p := newPost(t)
	keyed := func(id string) Message {
		m := hello()
		m.ID = id
		return m
	}
	before, err := p.Send(testContext(), keyed("before"))
	must(t, err)
	names, errs := p.SendAll(testContext(), []Message{keyed("twice"), keyed("before"), keyed("twice"), keyed("once")})
	must(t, errors.Join(errs...))
	if names[0] != names[2] || names[1] != before || names[3] == names[0] {
		t.Errorf("names %v, before %s", names, before)
	}
	entries, _, err := p.box.List()
	if err != nil || len(entries) != 3 {
		t.Errorf("%d messages, %v, want 3", len(entries), err)
	}
	again, errs := p.SendAll(testContext(), []Message{keyed("once")})
	if errs[0] != nil || again[0] != names[3] {
		t.Errorf("sent again: %s, %v, want %s", again[0], errs[0], names[3])
	}
}

// The lock is held until the batch is delivered: of many processes that send the same IDs, one delivers each.
func TestConcurrentBatchesDeliverAnIDOnce(t *testing.T) {
	p := newPost(t)
	const senders = 8
	ids := []string{"one", "two"}
	var names [senders][]Name
	var errs [senders][]error
	var wg sync.WaitGroup
	for s := range senders {
		sender := NewSender(p.tree, p.agents, fixed, 0)
		wg.Go(func() {
			var ms []Message
			for _, id := range ids {
				m := hello()
				m.ID = id
				ms = append(ms, m)
			}
			names[s], errs[s] = sender.SendAll(testContext(), ms)
		})
	}
	wg.Wait()
	for s := range senders {
		must(t, errors.Join(errs[s]...))
		if !slices.Equal(names[s], names[0]) {
			t.Errorf("%v and %v", names[s], names[0])
		}
	}
	if entries, _, err := p.box.List(); err != nil || len(entries) != len(ids) {
		t.Errorf("%d messages, %v, want %d", len(entries), err, len(ids))
	}
}
