package claudeteam

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/bridge"
	"github.com/gastown-chipset/chipset/chipset/bridge/bridgetest"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

func taskList(t *testing.T, export bool) *Tasks {
	t.Helper()
	c, err := OpenTasks(t.TempDir(), &actor.Actor{Rig: rigtest.New(t, ""), ID: state.Human})
	rigtest.Must(t, err)
	c.Export = export
	return c
}

func (c *Tasks) path(id string) string { return filepath.Join(c.Dir, id+".json") }

func readBack(t *testing.T, c *Tasks, id string) map[string]any {
	t.Helper()
	var m map[string]any
	rigtest.Must(t, json.Unmarshal([]byte(bridgetest.Read(t, c.path(id))), &m))
	return m
}

func TestTasksBecomeBeadsOnce(t *testing.T) {
	c := taskList(t, false)
	bridgetest.Write(t, c.path("1"), `{"id":"1","subject":"Parse","description":"the input","status":"pending","blocks":["2"],"blockedBy":[],"activeForm":"Parsing","future":{"b":1}}`)
	bridgetest.Write(t, c.path("2"), `{"id":"2","subject":"Print","description":"","status":"in_progress","owner":"researcher","blocks":[],"blockedBy":["1"]}`)
	bridgetest.Write(t, c.path("3"), `{"id":"3","subject":"Old","status":"completed","blocks":[],"blockedBy":[]}`)
	bridgetest.Write(t, c.path("4"), `{"id":"9","subject":"It lies about its number"}`)
	bridgetest.Write(t, c.path("5"), `{"id":"5","subject":"Foreign","description":"chipset:bead:zz-other","status":"pending"}`)
	before := bridgetest.Read(t, c.path("4")) + bridgetest.Read(t, c.path("3")) + bridgetest.Read(t, c.path("5"))
	n, err := c.Carry(t.Context())
	if n.In != 2 || err == nil || !strings.Contains(err.Error(), "4.json") {
		t.Errorf("%+v, %v", n, err)
	}
	beads, _, err := c.By.Beads.All()
	rigtest.Must(t, err)
	byTitle := map[string]*bead.Bead{}
	for i := range beads {
		byTitle[beads[i].Title] = &beads[i]
	}
	parse, prints := byTitle["Parse"], byTitle["Print"]
	if len(beads) != 2 || parse == nil || prints == nil || len(prints.BlockedBy) != 1 || prints.BlockedBy[0] != parse.ID {
		t.Fatalf("%+v", beads)
	}
	one := readBack(t, c, "1")
	if !strings.HasSuffix(one["description"].(string), "the input\n\nchipset:bead:"+string(parse.ID)) || one["activeForm"] != "Parsing" || one["future"] == nil {
		t.Errorf("%v", one)
	}
	if after := bridgetest.Read(t, c.path("4")) + bridgetest.Read(t, c.path("3")) + bridgetest.Read(t, c.path("5")); after != before {
		t.Errorf("tasks that are none of ours were changed: %s", after)
	}
	// A crash before the task was tagged.
	bridgetest.Write(t, c.path("1"), `{"id":"1","subject":"Parse","description":"the input","status":"pending"}`)
	if n, _ := c.Carry(t.Context()); n.In != 0 {
		t.Errorf("%d beads made again", n.In)
	}
	if !strings.Contains(readBack(t, c, "1")["description"].(string), string(parse.ID)) {
		t.Error("not tagged after the crash")
	}

	set := func(id state.BeadID, s bead.Status) {
		_, err := c.By.Beads.Update(t.Context(), string(id), func(b *bead.Bead) error {
			b.Status, b.AssignmentID, b.Assignee = s, "as-abcde", "polecat-alpha"
			return nil
		})
		rigtest.Must(t, err)
	}
	set(parse.ID, bead.InProgress)
	_, _ = c.Carry(t.Context())
	if s := readBack(t, c, "1")["status"]; s != "in_progress" {
		t.Errorf("its bead is in progress, the task %v", s)
	}
	set(parse.ID, bead.Merged)
	_, _ = c.Carry(t.Context())
	set(prints.ID, bead.Blocked)
	_, _ = c.Carry(t.Context())
	if one, two := readBack(t, c, "1")["status"], readBack(t, c, "2")["status"]; one != "completed" || two != "in_progress" {
		t.Errorf("%v and %v", one, two)
	}
	if left, _ := filepath.Glob(filepath.Join(c.Dir, "*.lock")); len(left) > 0 {
		t.Errorf("locks left: %v", left)
	}
}

func TestBeadsBecomeTasksOnce(t *testing.T) {
	c := taskList(t, true)
	bridgetest.Write(t, c.path("7"), `{"id":"7","subject":"There before","status":"completed"}`)
	first, err := c.By.AddBead(t.Context(), bead.Bead{Title: "First", Description: "do it"})
	rigtest.Must(t, err)
	second, err := c.By.AddBead(t.Context(), bead.Bead{Title: "Second", BlockedBy: []state.BeadID{first.ID}})
	rigtest.Must(t, err)
	for i := range 3 {
		n, err := c.Carry(t.Context())
		rigtest.Must(t, err)
		if want := (bridge.Count{}); i > 0 && n != want || i == 0 && n.Out != 2 {
			t.Errorf("run %d: %+v", i, n)
		}
		if i == 1 { // a crash before anything but the files was written
			rigtest.Must(t, os.Remove(filepath.Join(c.Dir, ".counter")))
		}
	}
	eight, nine := readBack(t, c, "8"), readBack(t, c, "9")
	if eight["subject"] == "Second" {
		eight, nine = nine, eight
	}
	if eight["description"] != "do it\n\nchipset:bead:"+string(first.ID) || eight["status"] != "pending" ||
		!strings.Contains(nine["description"].(string), string(second.ID)) {
		t.Errorf("%v\n%v", eight, nine)
	}
	if files, _ := filepath.Glob(filepath.Join(c.Dir, "*.json")); len(files) != 3 {
		t.Errorf("%v", files)
	}
}

// What a session of the team has claimed is not slung, before and after it got its bead,
// as long as the bridge looks; what the rig works on stays with the rig.
func TestClaimedTaskHoldsItsBead(t *testing.T) {
	c := taskList(t, false)
	bridgetest.Write(t, c.path("1"), `{"id":"1","subject":"Claimed","status":"in_progress","owner":"researcher"}`)
	bridgetest.Write(t, c.path("2"), `{"id":"2","subject":"Free","status":"pending"}`)
	ready := func() string {
		t.Helper()
		_, err := c.Carry(t.Context())
		rigtest.Must(t, err)
		beads, _, _, err := actor.ListBeads(c.By.Rig, actor.BeadFilter{Ready: true})
		rigtest.Must(t, err)
		var titles []string
		for i := range beads {
			titles = append(titles, beads[i].Title)
		}
		return strings.Join(titles, " ")
	}
	if got := ready(); got != "Free" {
		t.Errorf("ready: %s", got)
	}
	claim := func(id string) {
		t.Helper()
		rigtest.Must(t, c.change(t.Context(), c.path(id), func(*task) map[string]any { return map[string]any{"owner": "tester"} }))
	}
	claim("2")
	if got := ready(); got != "" {
		t.Errorf("ready after the claim: %s", got)
	}
	before, _, err := c.By.Beads.All()
	rigtest.Must(t, err)
	if got := ready(); got != "" {
		t.Errorf("ready at the next look: %s", got)
	}
	for i := range before {
		if now, err := c.By.Beads.Get(string(before[i].ID)); err != nil || now.Gen != before[i].Gen {
			t.Errorf("written again without need: %+v, %v", now, err)
		}
	}
	later := c.By.Clock.Now().Add(claimLease)
	c.By.Rig.Clock = func() time.Time { return later }
	if got := ready(); got != "" {
		t.Errorf("ready after the lease was renewed: %s", got)
	}
}
