package agentclitest

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/state/fault"
)

// Fault is what a client's reader makes of testdata/faults/NAME.txt, and of NAME-reduced.txt
// where that has no entry of its own.
type Fault struct {
	// Kind is "" for an end that is no fault.
	Kind fault.Kind
	// Reason is the whole reason of the end.
	Reason string
	// Until is the reset that is known, in RFC 3339, "" for none.
	Until string
}

// Recorded is when the runs in testdata/faults ended, as far as a time of day goes: at
// half past eight in the evening, in UTC.
func Recorded() time.Time { return time.Date(2026, 11, 22, 20, 30, 0, 0, time.UTC) }

// sample is one run of a real client whose model's interface failed.
type sample struct {
	out, err []byte
	code     int
}

// readSample reads a recording: a header, the parts "--- stdout", "--- stderr" and "--- rc".
func readSample(t *testing.T, path string) sample {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(data, []byte("--- stdout\n"))
	out, rest, _ := bytes.Cut(rest, []byte("\n--- stderr\n"))
	stderr, rc, found := bytes.Cut(rest, []byte("\n--- rc\n"))
	if !found {
		t.Fatalf("%s is not a recording", path)
	}
	s := sample{out: append(out, '\n'), err: append(stderr, '\n')}
	if text := strings.TrimSpace(string(rc)); text == "TIMEOUT" {
		s.code = 143 // somebody ended it from outside
	} else if s.code, err = strconv.Atoi(text); err != nil {
		t.Fatal(err)
	}
	return s
}

// mixed is both outputs as a supervisor writes them into one file: the lines of each in
// order, those of the two in any.
func (s sample) mixed(random *rand.Rand) [][]byte {
	out, stderr := bytes.Split(s.out, []byte("\n")), bytes.Split(s.err, []byte("\n"))
	var all [][]byte
	for len(out)+len(stderr) > 0 {
		from := &out
		if len(out) == 0 || len(stderr) > 0 && random.IntN(2) == 0 {
			from = &stderr
		}
		all, *from = append(all, (*from)[0]), (*from)[1:]
	}
	return all
}

// faults: what the real program printed when its model's interface failed, and whose fault
// that is, in whatever order its two outputs come.
func (s Suite) faults(t *testing.T) {
	paths, err := filepath.Glob("testdata/faults/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		want, known := s.Faults[name]
		if !known {
			want, known = s.Faults[strings.TrimSuffix(name, "-reduced")]
		}
		run := readSample(t, path)
		for seed := range uint64(5) {
			r := s.Client.Reader()
			r.Line([]byte("WARNING: proceeding, although something is odd"))
			for _, line := range run.mixed(rand.New(rand.NewPCG(seed, seed))) {
				r.Line(line)
			}
			if got := faultOf(r.End(run.code, Recorded())); !known || got != want {
				t.Errorf("%s: %+v,\nwant %+v", name, got, want)
				break
			}
		}
	}
	if len(paths) == 0 && len(s.Faults) > 0 {
		t.Error("there is not a recording")
	}
}

func faultOf(end agentcli.End) Fault {
	f := Fault{Kind: end.Fault.Kind, Reason: end.Reason}
	if !end.Fault.Until.IsZero() {
		f.Until = end.Fault.Until.Format(time.RFC3339)
	}
	return f
}

// quotedFaults: what an agent says, what a tool prints, and what stands raw in the output
// once the session has begun, is nobody's fault, however the run ends.
func (s Suite) quotedFaults(t *testing.T) {
	if !s.has("finished") {
		return
	}
	recording, err := os.ReadFile("testdata/finished.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("testdata/faults/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d samples, %v", len(paths), err)
	}
	for _, path := range paths {
		run := readSample(t, path)
		quote := string(run.out) + string(run.err)
		lines := quoting(t, recording, quote)
		for _, code := range []int{0, 1, 2, 17, 41, 126, 127, 143, 145, 173, run.code} {
			for n := 2; n <= len(lines); n++ {
				r := s.Client.Reader()
				for _, line := range lines[:n] {
					r.Line(line)
				}
				for _, raw := range bytes.Split(run.err, []byte("\n")) {
					r.Line(raw)
				}
				end := r.End(code, Recorded())
				if !end.Fault.IsZero() {
					t.Fatalf("%s, code %d, %d lines: %+v", path, code, n, end.Fault)
				}
				if whole := n == len(lines); whole && code == 0 && end.Verdict != agentcli.Finished {
					t.Fatalf("%s: ended %+v", path, end)
				}
			}
		}
	}
}

// quoting is a recording in which the agent says a text, and its tool prints it.
func quoting(t *testing.T, recording []byte, quote string) (lines [][]byte) {
	t.Helper()
	for line := range bytes.Lines(recording) {
		var value any
		if err := json.Unmarshal(line, &value); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(quoted(value, quote))
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, text)
	}
	if bytes.Contains(bytes.Join(lines, nil), []byte("Finished.")) {
		t.Fatal("not all is quoted")
	}
	return lines
}

// quoted is value with the quote in place of what the stand-in said and its tool printed.
func quoted(value any, quote string) any {
	switch v := value.(type) {
	case string:
		for _, said := range []string{"I make a file.", "done-with-it", "Finished."} {
			if strings.Contains(v, said) {
				return quote
			}
		}
	case []any:
		for i := range v {
			v[i] = quoted(v[i], quote)
		}
	case map[string]any:
		for name := range v {
			v[name] = quoted(v[name], quote)
		}
	}
	return value
}

// PrintedFaults checks a client that prints for people: for each exit code and output, the
// kind of its fault, "" for none.
func PrintedFaults(t *testing.T, c agentcli.Client, cases []Printed) {
	t.Helper()
	for _, want := range cases {
		r := c.Reader()
		for line := range strings.Lines(want.Output) {
			r.Line([]byte(strings.TrimSuffix(line, "\n")))
		}
		if end := r.End(want.Code, Recorded()); end.Fault.Kind != want.Kind || end.Reason != want.Reason {
			t.Errorf("%+v: %+v", want, end)
		}
	}
}

// Printed is an output with its exit code, and what is made of it.
type Printed struct {
	Code   int
	Output string
	Kind   fault.Kind
	Reason string
}
