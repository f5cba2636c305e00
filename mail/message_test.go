package mail

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

func testContext() context.Context { return context.Background() }

func TestValidate(t *testing.T) {
	one, minus := 1, -1
	for name, c := range map[string]struct {
		change func(*Message)
		good   bool
	}{
		"plain":        {func(m *Message) {}, true},
		"own type":     {func(m *Message) { m.Type = "x-poem" }, true},
		"ttl":          {func(m *Message) { m.TTL = &one }, true},
		"no to":        {func(m *Message) { m.To = "" }, false},
		"type":         {func(m *Message) { m.Type = "poem" }, false},
		"odd own type": {func(m *Message) { m.Type = "x-../y" }, false},
		"subject":      {func(m *Message) { m.Subject = "\t" }, false},
		"two lines":    {func(m *Message) { m.Subject = "a\nb" }, false},
		"priority":     {func(m *Message) { m.Priority = "P1" }, false},
		"long id":      {func(m *Message) { m.ID = strings.Repeat("x", 201) }, false},
		"ttl used up":  {func(m *Message) { m.TTL = &minus }, false},
		"loop":         {func(m *Message) { m.Trace = []state.AgentID{"witness", m.To} }, false},
	} {
		m := hello()
		m.Priority = Normal
		c.change(&m)
		if err := m.Validate(); (err == nil) != c.good {
			t.Errorf("%s: %v, want good %v", name, err, c.good)
		}
	}
}

func TestProcessingOrder(t *testing.T) {
	var want []string
	var entries []Entry
	second := 0
	add := func(from state.AgentID, kind Type, p Priority) {
		at := state.At(now.Add(time.Duration(60-second) * time.Second)) // against the order of time, where nothing else decides
		second++
		m := Message{From: from, Type: kind, Priority: p, Timestamp: at, Subject: fmt.Sprint(second)}
		entries = append(entries, Entry{Name: NameAt(at, from), Message: m})
		want = append(want, m.Subject)
	}
	add("witness", ShutdownRequest, Low)
	add(state.Human, Coordination, Urgent)
	add(state.Human, Coordination, Low)
	add("mayor", WorkAssignment, Urgent)
	add("mayor", WorkAssignment, Normal)
	add("witness", Coordination, Urgent)
	add("polecat-bravo", Coordination, "whatever")
	add("polecat-bravo", Coordination, Low)
	early := entries[6]
	early.Timestamp, early.Subject = state.At(now.Add(-time.Hour)), "early"
	entries = append(entries, early)
	want = append(want[:6], append([]string{"early"}, want[6:]...)...)
	rand.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	SortForProcessing(entries, "mayor")
	var got []string
	for _, e := range entries {
		got = append(got, e.Subject)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

func TestMachinery(t *testing.T) {
	for kind, want := range map[Type]bool{WorkAssignment: true, ShutdownRequest: true, ShutdownResponse: true, PlanResponse: true,
		PlanRequest: false, Coordination: false, CompletionReport: false, "x-poem": false} {
		if kind.RoleOnly() != want {
			t.Errorf("%s: %v", kind, !want)
		}
	}
}

func TestNames(t *testing.T) {
	n := NameAt(now, "mayor")
	if n != "2026-03-05T10-30-00.000000000Z-mayor.json" || !n.Time().Equal(now.Time) {
		t.Errorf("%s at %s", n, n.Time())
	}
	if got, err := ParseName(strings.TrimSuffix(string(n), ".json")); err != nil || got != n {
		t.Errorf("without .json: %s, %v", got, err)
	}
	for _, s := range []string{"", "x", "../" + string(n), "archive/" + string(n), string(n) + "/x"} {
		if _, err := ParseName(s); err == nil {
			t.Errorf("%q is a name", s)
		}
	}
}

// FuzzDecodeMessage: whatever decodes can be marked read with one byte sequence
// changed, and has a canonical form that keeps its unknown fields.
func FuzzDecodeMessage(f *testing.F) {
	f.Add([]byte(fmt.Sprintf(foreign, "polecat-alpha", "2026-03-05T10:30:00Z")))
	f.Add([]byte(`{"from":"polecat-alpha","to":"mayor","type":"x-a","subject":"","body":"","timestamp":"2026-03-05T10:30:00.9Z","read" : true ,"priority":"p","ttl":3,"trace":["a"],"ref":{"bead_id":"gt-a","new":1},"task":{"id":"t"},"z":[{"read":false}]}`))
	const name = "2026-03-05T10-30-00Z-polecat-alpha.json"
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode("p", "mayor", name, data)
		if err != nil {
			return
		}
		flipped, err := markRead(data)
		if err != nil {
			t.Fatal(err)
		}
		read, err := Decode("p", "mayor", name, flipped)
		if err != nil || !read.Read {
			t.Fatalf("%q marked as %q: %v", data, flipped, err)
		}
		again, err := markRead(flipped)
		if err != nil || !bytes.Equal(again, flipped) {
			t.Fatalf("%q marked twice %q, %v", flipped, again, err)
		}
		m.Read = true
		a, err := state.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		b, err := state.Encode(read)
		if err != nil || !bytes.Equal(a, b) {
			t.Fatalf("more than the flag changed: %s, %s, %v", a, b, err)
		}
		back, err := Decode("p", "mayor", name, a)
		if err != nil || len(back.Extra) != len(m.Extra) {
			t.Fatalf("canonical form %s: %v", a, err)
		}
	})
}
