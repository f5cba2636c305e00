package clients

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/state/fault"
)

// FuzzReaders: no output makes a reader panic, and where a look cuts it changes
// nothing of what is made of it.
func FuzzReaders(f *testing.F) {
	for i, file := range recordings(f) {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint(i*97), byte(i))
	}
	f.Add([]byte(`{"type":"result","modelUsage":{"m":{"inputTokens":-1}},"permission_denials":[{}]}`), uint(3), byte(0))
	f.Fuzz(func(t *testing.T, data []byte, cut uint, code byte) {
		cut %= uint(len(data)) + 1
		for _, c := range All() {
			whole, parts := c.Reader(), c.Reader()
			l := &agentcli.Lines{To: whole.Line}
			_, _ = l.Write(data)
			l.Flush()
			l = &agentcli.Lines{To: parts.Line}
			_, _ = l.Write(data[:cut])
			_, _ = l.Write(data[cut:])
			l.Flush()
			if whole.Figures() != parts.Figures() || whole.Session() != parts.Session() || !reflect.DeepEqual(whole.End(int(code), agentclitest.Recorded()), parts.End(int(code), agentclitest.Recorded())) {
				t.Fatalf("%s: %+v %q %+v, and cut at %d %+v %q %+v", c.Preset.Name, whole.Figures(), whole.Session(), whole.End(int(code), agentclitest.Recorded()),
					cut, parts.Figures(), parts.Session(), parts.End(int(code), agentclitest.Recorded()))
			}
			checkEnd(t, whole.End(int(code), agentclitest.Recorded()), whole.Trying())
			if s := whole.Session(); len(s) > 128 || strings.HasPrefix(s, "-") || strings.ContainsAny(s, "/ \n=") {
				t.Fatalf("%s: session %q", c.Preset.Name, s)
			}
		}
	})
}

// recordings are the files with what real clients printed.
func recordings(t testing.TB) []string {
	t.Helper()
	ended, err := filepath.Glob("../*/testdata/*.jsonl")
	failed, errFailed := filepath.Glob("../*/testdata/faults/*.txt")
	if err = errors.Join(err, errFailed); err != nil || len(ended) == 0 || len(failed) == 0 {
		t.Fatalf("%d and %d recordings: %v", len(ended), len(failed), err)
	}
	return append(ended, failed...)
}

// checkEnd: whatever a client prints, a fault can be stored, and no good end has one.
func checkEnd(t interface{ Fatalf(string, ...any) }, end agentcli.End, trying fault.Fault) {
	if err := errors.Join(end.Fault.Check(), trying.Check()); err != nil {
		t.Fatalf("%+v, %+v: %v", end.Fault, trying, err)
	}
	if !end.Fault.IsZero() && (end.Verdict == agentcli.Finished || end.Verdict == agentcli.Refused || end.Reason != end.Fault.Reason) {
		t.Fatalf("ended %+v", end)
	}
	if until := end.Fault.Until; !until.IsZero() && (end.Fault.Class != fault.Capacity || !until.After(agentclitest.Recorded())) {
		t.Fatalf("ended %+v", end.Fault)
	}
}
