package clients

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

// FuzzReaders: no output makes a reader panic, and where a look cuts it changes
// nothing of what is made of it.
func FuzzReaders(f *testing.F) {
	files, err := filepath.Glob("../*/testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		f.Fatalf("no recordings: %v", err)
	}
	for i, file := range files {
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
			if whole.Figures() != parts.Figures() || whole.Session() != parts.Session() || !reflect.DeepEqual(whole.End(int(code), time.Time{}), parts.End(int(code), time.Time{})) {
				t.Fatalf("%s: %+v %q %+v, and cut at %d %+v %q %+v", c.Preset.Name, whole.Figures(), whole.Session(), whole.End(int(code), time.Time{}),
					cut, parts.Figures(), parts.Session(), parts.End(int(code), time.Time{}))
			}
			if s := whole.Session(); len(s) > 128 || strings.HasPrefix(s, "-") || strings.ContainsAny(s, "/ \n=") {
				t.Fatalf("%s: session %q", c.Preset.Name, s)
			}
		}
	})
}
