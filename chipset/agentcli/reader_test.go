package agentcli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// play puts a recording of a real program through its reader.
func play(t testing.TB, r Reader, name string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := &Lines{To: r.Line}
	if _, err := lines.Write(data); err != nil {
		t.Fatal(err)
	}
	lines.Flush()
}

// TestRecordings: what the real programs printed, and what is made of it. The model
// was a stand-in that used one tool and said "Finished.".
func TestRecordings(t *testing.T) {
	tests := []struct {
		name    string
		code    int
		end     End
		figures Figures
	}{
		{"claude-finished", 0, End{Verdict: Finished, Said: "Finished."}, Figures{Turns: 2, Tools: 1, TokensIn: 25095, TokensOut: 14, CostUSD: 0.10066, Tool: "Bash"}},
		{"claude-overloaded", 1, End{Verdict: Unfinished, Reason: "API error 529: API Error: 529 Overloaded"}, Figures{Turns: 1}},
		{"claude-bad-key", 1, End{Verdict: Broken, Reason: "API error 401: Invalid API key"}, Figures{Turns: 1}},
		{"claude-refused", 0, End{Verdict: Refused, Reason: "it was refused what it asked for: Bash", Said: "Finished."},
			Figures{Turns: 2, Tools: 1, TokensIn: 25027, TokensOut: 14, CostUSD: 0.100388, Tool: "Bash"}},
		{"claude-stop-cap", 0, End{Verdict: Unfinished, Reason: "it was told again and again to go on", Said: "I think I am finished."},
			Figures{Turns: 9, TokensIn: 114757, TokensOut: 63, CostUSD: 0.46028800000000003}},
		{"claude-max-turns", 1, End{Verdict: Unfinished, Reason: "it reached its limit of turns", Said: "I make a file."},
			Figures{Turns: 1, Tools: 1, TokensIn: 12508, TokensOut: 7, CostUSD: 0.050172, Tool: "Bash"}},
		{"codex-finished", 0, End{Verdict: Finished, Said: "Finished."}, Figures{Turns: 2, Tools: 1, TokensIn: 28223, TokensOut: 14, Tool: "shell"}},
		{"codex-failed", 1, End{Verdict: Unfinished, Reason: "its turn failed: unexpected status 401"}, Figures{}},
		{"gemini-finished", 0, End{Verdict: Finished, Said: "Finished."}, Figures{Turns: 2, Tools: 1, TokensIn: 24520, TokensOut: 14, Tool: "run_shell_command"}},
		{"gemini-bad-key", 145, End{Verdict: Broken, Reason: "API error 401: [API Error:"}, Figures{}},
		{"opencode-finished", 0, End{Verdict: Finished, Said: "Finished."}, Figures{Turns: 2, Tools: 1, TokensIn: 15450, TokensOut: 14, Tool: "bash"}},
		{"opencode-refused", 0, End{Verdict: Refused, Reason: "it was refused what it asked for: bash", Said: "Finished."},
			Figures{Turns: 2, Tools: 1, TokensIn: 15504, TokensOut: 14, Tool: "bash"}},
		{"opencode-asked", 0, End{Verdict: Refused, Reason: "it was refused what it asked for: bash", Said: "I make a file."},
			Figures{Turns: 1, Tools: 1, TokensIn: 7672, TokensOut: 7, Tool: "bash"}},
		{"opencode-bad-key", 1, End{Verdict: Broken, Reason: "API error 401: invalid x-api-key"}, Figures{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			name, _, _ := strings.Cut(tt.name, "-")
			r := Named(name).Reader()
			play(t, r, tt.name)
			if diff := cmp.Diff(tt.figures, r.Figures()); diff != "" {
				t.Error(diff)
			}
			end := r.End(tt.code)
			if end.Verdict != tt.end.Verdict || !strings.HasPrefix(end.Reason, tt.end.Reason) || tt.end.Said != "" && end.Said != tt.end.Said {
				t.Errorf("ended %+v, want %+v", end, tt.end)
			}
			if r.Session() == "" && tt.name != "claude-refused" {
				t.Error("the session has no name")
			}
		})
	}
}

// TestResumedRuns: the programs' totals are those of the whole session, and what
// ended an earlier run says nothing of a later one.
func TestResumedRuns(t *testing.T) {
	tests := []struct{ client, first, then string }{{"claude", "claude-finished", "claude-resumed"}, {"codex", "codex-finished", "codex-resumed"}}
	for _, tt := range tests {
		r := Named(tt.client).Reader()
		play(t, r, tt.first)
		before, session := r.Figures(), r.Session()
		r.Resumed()
		if end := r.End(0); end.Verdict == Finished {
			t.Errorf("%s: a run that has not said anything has %s", tt.client, end.Verdict)
		}
		play(t, r, tt.then)
		after := r.Figures()
		if r.Session() != session || after.Turns != 4 || after.Tools != 2 || after.TokensOut != 28 ||
			after.TokensIn < 2*before.TokensIn || after.TokensIn > 3*before.TokensIn {
			t.Errorf("%s: %+v in session %s, and after it %+v in %s", tt.client, before, session, after, r.Session())
		}
	}
	r := Named("claude").Reader()
	play(t, r, "claude-stop-cap")
	r.Resumed()
	play(t, r, "claude-resumed")
	if end := r.End(0); end.Verdict != Finished {
		t.Errorf("the cap of the first run ends the second: %+v", end)
	}
}

// TestCutOff: a program that was ended in the middle says so by what is missing.
func TestCutOff(t *testing.T) {
	for _, name := range []string{"claude-finished", "codex-finished", "gemini-finished", "opencode-finished"} {
		data, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		program, _, _ := strings.Cut(name, "-")
		lines := bytes.SplitAfter(data, []byte("\n"))
		for n := 2; n < len(lines)-1; n++ {
			r := Named(program).Reader()
			for _, line := range lines[:n] {
				r.Line(line)
			}
			if end := r.End(0); end.Verdict != Unfinished {
				t.Errorf("%s after %d lines: %+v", name, n, end)
			}
			if end := r.End(143); end.Verdict == Finished {
				t.Errorf("%s after %d lines and TERM: %+v", name, n, end)
			}
		}
	}
}

// TestReadersTakeAnything: no output makes a reader panic, and what it quotes is
// bounded and valid.
func TestReadersTakeAnything(t *testing.T) {
	var lines [][]byte
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, bytes.Split(bytes.TrimSpace(data), []byte("\n"))...)
	}
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.SampledFrom(All()).Draw(t, "client").Reader()
		cut := &Lines{To: r.Line}
		for range rapid.IntRange(0, 12).Draw(t, "lines") {
			line := bytes.Clone(rapid.SampledFrom(lines).Draw(t, "line"))
			if len(line) > 0 && rapid.Bool().Draw(t, "damage") {
				at := rapid.IntRange(0, len(line)-1).Draw(t, "at")
				line = append(line[:at], rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "bytes")...)
			}
			_, _ = cut.Write(append(line, '\n'))
		}
		cut.Flush()
		end := r.End(rapid.IntRange(0, 255).Draw(t, "code"))
		if len(end.Reason) > 2*maxSaid+200 || len(end.Said) > (maxNoise+1)*(maxSaid+4) || r.Session() != "" && !plausible(r.Session()) {
			t.Fatalf("%d and %d bytes are quoted, session %q", len(end.Reason), len(end.Said), r.Session())
		}
	})
}

func TestLines(t *testing.T) {
	var got []string
	l := &Lines{To: func(line []byte) { got = append(got, string(line)) }}
	long := strings.Repeat("x", maxLine)
	for _, piece := range []string{"a\nb", "c\n\n", "d", long, long, "\ne\n", "last"} {
		if n, err := l.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatalf("wrote %d, %v", n, err)
		}
	}
	l.Flush()
	if diff := cmp.Diff([]string{"a", "bc", "", "e", "last"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestSessionNames: what an agent prints can't choose another session, or become
// an option on a command line.
func TestSessionNames(t *testing.T) {
	r := Named("claude").Reader()
	r.Line([]byte(`{"type":"system","subtype":"init","session_id":"--dangerously-skip-permissions"}`))
	r.Line([]byte(`{"type":"system","subtype":"init","session_id":"first"}`))
	r.Line([]byte(`{"type":"system","subtype":"init","session_id":"second"}`))
	if r.Session() != "first" {
		t.Errorf("session %q", r.Session())
	}
}
