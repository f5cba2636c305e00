package main

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/state"
)

// FuzzBatchLine: whatever comes on standard input is one message a line by who may
// speak, or refused; nothing is joined, split or taken twice.
func FuzzBatchLine(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		in := bufio.NewReaderSize(bytes.NewReader(data), 64)
		me := &actor.Actor{ID: "polecat-alpha"}
		lines, total := 0, 0
		for {
			line, tooLong, err := readLine(in)
			total += len(line)
			if err != nil {
				break
			}
			lines++
			b := batchLine{text: line, tooLong: tooLong}
			m, err := b.message(me)
			if err == nil && (m.To == "" || state.CheckID(string(m.To)) != nil || m.From != "" && m.From != me.ID) {
				t.Fatalf("%q is a message from %q to %q", line, m.From, m.To)
			}
		}
		if lines > bytes.Count(data, []byte("\n"))+1 || total > len(data) {
			t.Fatalf("%d lines, %d bytes of %d", lines, total, len(data))
		}
	})
}

// FuzzClean: nothing that is printed to a person moves the cursor.
func FuzzClean(f *testing.F) {
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsAny(clean(s), "\x1b\x07\x08\x7f\u009b") {
			t.Fatalf("%q is printed as %q", s, clean(s))
		}
	})
}
