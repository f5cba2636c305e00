package disk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gastown-chipset/chipset/state/statetest/traced"
)

const syncsEnv = "CHIPSET_TEST_SYNCS"

func TestSyncsReachTheDisk(t *testing.T) {
	got := traced.Calls(t, "TestSyncsChild", syncsEnv+"="+t.TempDir())
	for what, calls := range map[string]string{
		"sync":      "fsync",
		"sync-file": "fsync",
		"sync-dir":  "fsync",
		"barrier":   "syncfs fsync",
		"replace":   "fsync rename",
	} {
		if got[what] != calls {
			t.Errorf("%s: %q, want %q", what, got[what], calls)
		}
	}
}

// TestSyncsChild is the child of the test above.
func TestSyncsChild(t *testing.T) {
	dir := os.Getenv(syncsEnv)
	if dir == "" {
		t.Skip("it is for a child of another test")
	}
	var d OS
	say := func(what string) { must(t, traced.Say(dir, what)) }
	file := filepath.Join(dir, "file")
	f, err := d.Create(file)
	must(t, err)
	say("sync")
	must(t, f.Sync())
	must(t, f.Close())
	say("sync-file")
	must(t, d.SyncFile(file))
	say("sync-dir")
	must(t, d.SyncDir(dir))
	b, err := d.Barrier(dir)
	must(t, err)
	say("barrier")
	must(t, b.Settle())
	say("replace")
	p, err := d.Pending(file)
	must(t, err)
	must(t, p.Replace())
	say("end")
}
