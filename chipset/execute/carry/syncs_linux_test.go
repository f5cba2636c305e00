package carry

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state/statetest/traced"
)

const syncsEnv = "PIPELINE_TEST_SYNCS" // CHIPSET_ variables are taken away

// An acknowledged commit needs git's own fsyncs, and then those of the whole
// repository: the exit code of git says nothing of a power cut.
func TestGitReachesTheDisk(t *testing.T) {
	y := newYard(t, "")
	out, err := y.Git.Run(t.Context(), git.Command{Args: []string{"config", "--get", "core.fsync"}})
	if err != nil || strings.TrimSpace(string(out)) != "all" {
		t.Errorf("core.fsync is %q, %v", out, err)
	}
	got := traced.Calls(t, "TestGitSyncChild", syncsEnv+"="+y.Dir)
	if got["sync"] != "syncfs fsync" {
		t.Errorf("Sync makes the calls %q", got["sync"])
	}
	if !strings.HasSuffix(got["keep"], "syncfs fsync") {
		t.Errorf("work that is saved is kept with the calls %q", got["keep"])
	}
}

// TestGitSyncChild is the child of the test above.
func TestGitSyncChild(t *testing.T) {
	dir := os.Getenv(syncsEnv)
	if dir == "" {
		t.Skip("it is for a child of another test")
	}
	repo, err := git.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	say := t.TempDir()
	if err := traced.Say(say, "sync"); err != nil {
		t.Fatal(err)
	}
	if err := repo.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := rig.Open(t.Context(), dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	tip, _, err := repo.ResolveRef(t.Context(), git.Branch("main").Ref())
	if err != nil {
		t.Fatal(err)
	}
	if err := traced.Say(say, "keep"); err != nil {
		t.Fatal(err)
	}
	if err := keep(t.Context(), r, tip); err != nil {
		t.Fatal(err)
	}
	if err := traced.Say(say, "end"); err != nil {
		t.Fatal(err)
	}
}
