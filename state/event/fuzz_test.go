package event

import (
	"bytes"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/statetest/decodetest"
)

// FuzzDecodeEvent: what is accepted has one form, and loses nothing that it does
// not know.
func FuzzDecodeEvent(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		decodetest.Object(t, data, func(*Event) error { return nil })
	})
}

// FuzzLines: every whole line of a day is an event, an error or blank, from
// wherever the reading begins, and what was written is read again.
func FuzzLines(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		events, bad, end := parse("p", data, 0, time.Time{})
		lines := 0
		for line := range bytes.Lines(data) {
			if bytes.HasSuffix(line, []byte("\n")) && len(bytes.TrimSpace(line)) > 0 {
				lines++
			}
		}
		if len(events)+len(bad) != lines || end > len(data) || end != bytes.LastIndexByte(data, '\n')+1 {
			t.Fatalf("%d events and %d bad of %d lines, up to %d of %d", len(events), len(bad), lines, end, len(data))
		}
		var written []byte
		for i := range events {
			line, err := state.EncodeLine(events[i])
			if err != nil {
				t.Fatal(err)
			}
			written = append(written, line...)
		}
		if again, bad := Lines("p", written); len(bad) > 0 || len(again) != len(events) {
			t.Fatalf("written and read: %d of %d, %v", len(again), len(events), bad)
		}
	})
}
