package bd

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

func TestMain(m *testing.M) { os.Exit(rigtest.Main(m)) }

func testRig(t *testing.T) *rig.Rig {
	t.Helper()
	r, err := rig.Init(t.Context(), rig.InitOptions{Dir: gittest.Repo(t), Clock: time.Now})
	rigtest.Must(t, err)
	return r
}

// issue is a line: what is given, and what bd always writes.
func issue(id, more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"id":%q,"title":"Title of %s","issue_type":"task","created_at":"2025-12-16T13:26:47.117226-08:00","updated_at":"2025-12-17T16:11:17Z"%s}`, id, id, more)
}

func waitsFor(kind string, ids ...string) string {
	deps := make([]string, len(ids))
	for n, id := range ids {
		deps[n] = fmt.Sprintf(`{"depends_on_id":%q,"type":%q}`, id, kind)
	}
	return `"dependencies":[` + strings.Join(deps, ",") + `]`
}

func read(t testing.TB, lines ...string) []Line {
	t.Helper()
	all, err := Read(strings.NewReader(strings.Join(lines, "\n")))
	rigtest.Must(t, err)
	return all
}

func importLines(t *testing.T, r *rig.Rig, options Options, lines ...string) []Result {
	t.Helper()
	report, err := Import(t.Context(), r, state.Human, read(t, lines...), options)
	rigtest.Must(t, err)
	return report.Results
}

func get(t *testing.T, r *rig.Rig, id string) bead.Bead {
	t.Helper()
	b, err := r.Beads.Get(id)
	rigtest.Must(t, err)
	return b
}
