package clients

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

// told is what a person reads of a transcript, one passage a line.
func told(transcript []byte) []string {
	var got []string
	n := Narrate(func(all []agentcli.Passage) {
		for _, p := range all {
			got = append(got, string(p.Kind)+" "+strings.ReplaceAll(p.Text, "\n", "⏎"))
		}
	})
	for line := range bytes.Lines(transcript) {
		n.Line(line)
	}
	return got
}

// TestPassages: the same small session reads alike, whichever client printed it, and who
// printed it is found out from the lines.
func TestPassages(t *testing.T) {
	for client, want := range map[string][]string{
		"claude":   {"noted the session begins claude-opus-5-5", "said I make a file.", "called Bash  echo one > one.txt", "returned done-with-it", "said Finished.", "noted the turn ends"},
		"codex":    {"noted the session begins", "said I make a file.", "called shell  /bin/bash -lc 'echo one", "returned fatal: Unable", "said Finished.", "noted the turn ends"},
		"gemini":   {"noted the session begins gemini-2.5-pro", "noted work", "said I make a file.", "called run_shell_command  echo one", "returned On branch master⏎", "said Finished.", "noted the turn ends"},
		"opencode": {"said I make a file.", "called bash  echo one > one.txt", "returned On branch master⏎", "said Finished.", "noted the turn ends"},
	} {
		data, err := os.ReadFile(filepath.Join("..", client, "testdata", "finished.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		got := told(data)
		if len(got) != len(want) {
			t.Errorf("%s: %q, want %q", client, got, want)
			continue
		}
		for i := range want {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("%s: passage %d is %q, want %q", client, i, got[i], want[i])
			}
		}
	}
}

// TestPassagesAreCut: a long result and a long change leave a person the beginning.
func TestPassagesAreCut(t *testing.T) {
	long := strings.Repeat(`line\n`, 100)
	got := told([]byte(`{"type":"user","session_id":"s","message":{"content":[{"type":"tool_result","content":"` + long + `"}]}}` + "\n" +
		`{"type":"assistant","session_id":"s","message":{"content":[{"type":"tool_use","name":"Write","input":{"file_path":"a.go","content":"` + long + `"}}]}}` + "\n" +
		"plain words\n{not json\n"))
	want := []string{"returned line⏎line⏎line⏎line⏎line⏎line⏎… 94 more lines", "called Write  a.go",
		"added " + strings.Repeat("line⏎", 12) + "… 88 more lines", "said plain words", "said {not json"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q,\nwant %q", got, want)
	}
}

// FuzzNarrate: nothing that a worker prints stops the narrator.
func FuzzNarrate(f *testing.F) {
	f.Add([]byte(`{"type":"assistant","session_id":"s","message":{"content":[{"type":"tool_use","name":"x","input":[1]}]}}`))
	f.Add([]byte(`{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"a","kind":"add"}]}}`))
	f.Fuzz(func(_ *testing.T, data []byte) { told(data) })
}
