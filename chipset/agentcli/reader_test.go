package agentcli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
