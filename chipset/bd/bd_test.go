package bd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

func TestWhatIsNoIssue(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		is   error
		says string
	}{
		"torn":          {`{"id":"bd-1","title":"x`, actor.ErrInvalid, "not valid JSON"},
		"array":         {`[{"id":"bd-1"}]`, actor.ErrInvalid, "as bd export prints them"},
		"conflict":      {`<<<<<<< HEAD`, actor.ErrInvalid, "conflict marker"},
		"no id":         {`{"title":"x"}`, actor.ErrInvalid, "the id is empty"},
		"no title":      {`{"id":"bd-1","title":"  "}`, actor.ErrInvalid, "the title is empty"},
		"long title":    {`{"id":"bd-1","title":"` + strings.Repeat("x", 501) + `"}`, actor.ErrInvalid, "at most 500"},
		"twice":         {`{"id":"bd-1","id":"bd-2","title":"x"}`, actor.ErrInvalid, "appears twice"},
		"priority":      {issue("bd-1", `"priority":5`), actor.ErrInvalid, "priority is 5"},
		"priority word": {issue("bd-1", `"priority":"P1"`), actor.ErrInvalid, "priority is a string"},
		"time":          {`{"id":"bd-1","title":"x","created_at":"yesterday"}`, actor.ErrInvalid, "RFC 3339"},
		"no target":     {issue("bd-1", `"dependencies":[{"type":"blocks"}]`), actor.ErrInvalid, "depends_on_id is empty"},
		"label":         {issue("bd-1", `"labels":["a\nb"]`), actor.ErrInvalid, "a label must be one line"},
		"utf-8":         {"{\"id\":\"bd-1\",\"title\":\"\xff\"}", actor.ErrInvalid, "UTF-8"},
		"deep":          {issue("bd-1", `"x":`+strings.Repeat("[", 100)+strings.Repeat("]", 100)), actor.ErrInvalid, "nested deeper"},
		"large text":    {issue("bd-1", `"design":"`+strings.Repeat("x", bead.MaxText+1)+`"`), state.ErrTooLarge, "at most 524288"},
		"large line":    {issue("bd-1", `"x":"`+strings.Repeat("x", MaxLine)+`"`), state.ErrTooLarge, "more than 4194304 bytes"},
	} {
		lines, err := Read(strings.NewReader(issue("bd-0", "") + "\n\n" + c.line))
		var bad Problems
		if !errors.As(err, &bad) || len(bad) != 1 || bad[0].Line != 3 || !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || lines != nil {
			t.Errorf("%s: %d lines, %v; want line 3 and %q", name, len(lines), err, c.says)
		}
	}
	lines := read(t, "\uFEFF"+issue("bd-0", "")+"\r", "", "  ", `{"_type":"memory","key":"x"}`)
	if len(lines) != 2 || lines[1].Number != 4 || lines[1].Issue.ignored() == "" {
		t.Errorf("a byte order mark, empty lines, other kinds: %+v", lines)
	}
}

func TestIDs(t *testing.T) {
	for _, own := range []string{"bd-1", "bd-2oo.1", "proj_x-a3f2dd", "0-1"} {
		if got := beadID(own); string(got) != own {
			t.Errorf("%s became %s", own, got)
		}
	}
	seen := map[state.BeadID]string{}
	for _, other := range []string{"BD-1", "Bd-1", "bd 1", "bd/../1", "../../x", "bd..1", "bd-1.", "bd-1.lock", "archive", "é", "-x", strings.Repeat("a", 49), strings.Repeat("a", 50), "bd-1\x01"} {
		got := beadID(other)
		if state.CheckID(string(got)) != nil || len(got) > longestID || string(got) == other || seen[got] != "" || got != beadID(other) {
			t.Errorf("%q became %q (%q)", other, got, seen[got])
		}
		seen[got] = other
	}
}

func TestWhereABeadStands(t *testing.T) {
	r := testRig(t)
	for n, c := range []struct {
		more   string
		want   bead.Status
		reason string
	}{
		{``, bead.Open, ""},
		{`"status":"open"`, bead.Open, ""},
		{`"status":"in_progress","assignee":"bob"`, bead.Open, ""},
		{`"status":"hooked"`, bead.Open, ""},
		{`"status":"blocked"`, bead.Blocked, "blocked in bd"},
		{`"status":"blocked",` + waitsFor("blocks", "bd-open"), bead.Open, ""},
		{`"status":"blocked",` + waitsFor("blocks", "bd-closed"), bead.Blocked, "blocked in bd"},
		{`"status":"deferred","defer_until":"2030-01-01T00:00:00Z"`, bead.Blocked, "deferred in bd until 2030-01-01T00:00:00Z"},
		{`"status":"pinned"`, bead.Blocked, "pinned in bd"},
		{`"status":"in_review"`, bead.Blocked, "in_review in bd"},
		{`"status":"closed","closed_at":"2025-12-18T00:00:00Z","close_reason":"done"`, bead.Closed, "done"},
		{`"status":"closed"`, bead.Closed, "closed in bd"},
		{`"status":"closed","close_reason":"no","metadata":{"chipset":{"status":"cancelled"}}`, bead.Cancelled, "no"},
	} {
		id := fmt.Sprintf("bd-%d", n)
		importLines(t, r, Options{}, issue("bd-open", ""), issue("bd-closed", `"status":"closed"`), issue(id, c.more))
		b := get(t, r, id)
		if b.Status != c.want || b.CloseReason != c.reason || (b.ClosedAt != nil) != c.want.Finished() || b.CreatedAt.String() != "2025-12-16T21:26:47.117226000Z" {
			t.Errorf("%s: %s %q closed at %v, made at %s; want %s %q", c.more, b.Status, b.CloseReason, b.ClosedAt, b.CreatedAt, c.want, c.reason)
		}
	}
	for _, more := range []string{`"status":"tombstone"`, `"ephemeral":true`, `"is_template":true`, `"_type":"memory"`, `"metadata":[1]`} {
		results := importLines(t, r, Options{}, strings.Replace(issue("bd-none", more), `"task"`, `"message"`, 1))
		if results[0].Outcome != Skipped || results[0].Detail == "" {
			t.Errorf("%s: %+v", more, results)
		}
	}
}

func TestDependenciesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		is    error
		says  string
	}{
		"unknown":       {[]string{issue("bd-1", waitsFor("blocks", "bd-none"))}, state.ErrNotFound, "line 1: issue bd-1 waits for bd-none"},
		"itself":        {[]string{issue("bd-1", waitsFor("waits-for", "bd-1"))}, state.ErrConflict, "line 1: issue bd-1: waits for itself"},
		"circle":        {[]string{issue("bd-0", ""), issue("bd-1", waitsFor("blocks", "BD-2")), issue("BD-2", waitsFor("blocks", "bd-1"))}, state.ErrConflict, "line 2: issue bd-1: dependency cycle: bd-1 → BD-2 → bd-1"},
		"two of an ID":  {[]string{issue("bd-1", ""), issue("bd-1", `"priority":1`)}, state.ErrConflict, "line 2: issue bd-1: is also in line 1"},
		"not only text": {[]string{issue("bd-1", waitsFor("blocks", "gt-gate")), strings.Replace(issue("gt-gate", ""), "task", "gate", 1)}, state.ErrNotFound, "waits for gt-gate"},
	} {
		r := testRig(t)
		_, err := Import(t.Context(), r, state.Human, read(t, c.lines...), Options{})
		if !errors.Is(err, c.is) || !strings.Contains(strings.ReplaceAll(err.Error(), `"`, ""), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if all, _, err := r.Beads.All(); err != nil || len(all) != 0 {
			t.Errorf("%s: %d beads, %v", name, len(all), err)
		}
	}
	r := testRig(t)
	importLines(t, r, Options{}, issue("bd-1", waitsFor("related", "bd-none")), issue("bd-1", waitsFor("related", "bd-none")))
	importLines(t, r, Options{DropUnknown: true}, issue("bd-2", waitsFor("blocks", "bd-none", "bd-1")))
	importLines(t, r, Options{}, issue("bd-3", waitsFor("blocks", "bd-dead", "bd-1")), issue("bd-dead", `"status":"tombstone"`))
	if got := fmt.Sprint(get(t, r, "bd-2").BlockedBy, get(t, r, "bd-3").BlockedBy); got != "[bd-1] [bd-1]" {
		t.Errorf("what is left: %s", got)
	}
	// A circle that only the rig and the file together close.
	_, err := Import(t.Context(), r, state.Human, read(t, issue("bd-1", waitsFor("blocks", "bd-3"))), Options{})
	if !errors.Is(err, state.ErrConflict) || !strings.Contains(err.Error(), "cycle") {
		t.Errorf("a circle over what is there: %v", err)
	}
}

// TestParents: a parent waits for its children, the children wait for what it
// waits for, and neither closes a circle.
func TestParents(t *testing.T) {
	r := testRig(t)
	lines := []string{
		issue("bd-first", ""),
		strings.Replace(issue("bd-e", waitsFor("blocks", "bd-first")), "task", "epic", 1),
		issue("bd-e.1", waitsFor("parent-child", "bd-e")),
		issue("bd-e.1.1", waitsFor("parent-child", "bd-e.1")),
		issue("bd-e.2", `"dependencies":[{"depends_on_id":"bd-e","type":"parent-child"},{"depends_on_id":"bd-e.1","type":"blocks"}]`),
		// Its child waits for an epic that waits for it: only bd's own words count.
		issue("bd-f", ""),
		issue("bd-f.1", `"dependencies":[{"depends_on_id":"bd-f","type":"parent-child"},{"depends_on_id":"bd-g","type":"blocks"}]`),
		issue("bd-g", waitsFor("blocks", "bd-f")),
	}
	importLines(t, r, Options{}, lines...)
	for id, want := range map[string]string{"bd-e": "[bd-first bd-e.1 bd-e.2]", "bd-e.1": "[bd-e.1.1 bd-first]", "bd-e.1.1": "[bd-first]",
		"bd-e.2": "[bd-e.1 bd-first]", "bd-f": "[]", "bd-f.1": "[bd-g]", "bd-g": "[bd-f]"} {
		if got := fmt.Sprint(get(t, r, id).BlockedBy); got != want {
			t.Errorf("%s waits for %s, want %s", id, got, want)
		}
	}
	if !get(t, r, "bd-e").AllowEmpty || !get(t, r, "bd-e.1").AllowEmpty || get(t, r, "bd-e.2").AllowEmpty {
		t.Error("a parent's own work may be nothing, a child's may not")
	}
	// One more child changes what the epic waits for, though its line is the same.
	results := importLines(t, r, Options{}, append(lines, issue("bd-e.3", waitsFor("parent-child", "bd-e")))...)
	var updated []string
	for _, res := range results {
		if res.Outcome != Unchanged {
			updated = append(updated, string(res.ID)+" "+string(res.Outcome))
		}
	}
	if got := strings.Join(updated, ", "); got != "bd-e updated, bd-e.3 added" {
		t.Errorf("with one more child: %s", got)
	}
}

// TestImportedAgain goes through what bd and the rig can do to an issue and its
// bead between two imports.
func TestImportedAgain(t *testing.T) {
	now := func() state.Time { return state.At(time.Now()) }
	move := func(to ...bead.Status) func(*bead.Bead) error {
		return func(b *bead.Bead) error {
			for _, s := range to {
				if s == bead.Hooked {
					b.AssignmentID, b.Assignee, b.Assignments = "as-1", "polecat-alpha", 1
				}
				if err := b.Become(s, "by the rig", now()); err != nil {
					return err
				}
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		first, then string
		rig         func(b *bead.Bead) error
		outcome     Outcome
		status      bead.Status
		title       string
	}{
		"the same":            {``, ``, nil, Unchanged, bead.Open, "Title of bd-1"},
		"touched":             {`"x":1`, `"x":1`, func(b *bead.Bead) error { b.Title = "Mine"; b.Touch(now()); return nil }, Unchanged, bead.Open, "Mine"},
		"changed":             {``, `"priority":4,"design":"D"`, nil, Updated, bead.Open, "Title of bd-1"},
		"changed while slung": {``, `"priority":4`, move(bead.Hooked), Kept, bead.Hooked, "Title of bd-1"},
		"changed after":       {``, `"priority":4`, move(bead.Hooked, bead.InProgress, bead.Done, bead.Merged), Kept, bead.Merged, "Title of bd-1"},
		"closed":              {``, `"status":"closed"`, nil, Updated, bead.Closed, "Title of bd-1"},
		"closed too late":     {``, `"status":"closed"`, move(bead.Hooked, bead.InProgress), Kept, bead.InProgress, "Title of bd-1"},
		"closed after a fail": {``, `"status":"closed"`, move(bead.Hooked, bead.InProgress, bead.Failed), Updated, bead.Closed, "Title of bd-1"},
		"opened again":        {`"status":"closed"`, `"status":"open"`, nil, Updated, bead.Open, "Title of bd-1"},
		"deleted":             {``, `"status":"tombstone"`, nil, Updated, bead.Cancelled, "Title of bd-1"},
		"unblocked":           {`"status":"blocked"`, `"status":"open"`, nil, Updated, bead.Open, "Title of bd-1"},
		"blocked":             {``, `"status":"blocked"`, nil, Updated, bead.Blocked, "Title of bd-1"},
		"blocked by the rig":  {`"status":"in_progress"`, `"status":"open"`, move(bead.Blocked), Updated, bead.Blocked, "Title of bd-1"},
		"cancelled here":      {``, `"priority":3`, move(bead.Cancelled), Kept, bead.Cancelled, "Title of bd-1"},
	} {
		r := testRig(t)
		importLines(t, r, Options{}, issue("bd-1", c.first))
		if c.rig != nil {
			_, err := r.Beads.Update(t.Context(), "bd-1", c.rig)
			rigtest.Must(t, err)
		}
		again := strings.Replace(issue("bd-1", c.then), "2025-12-17", "2026-01-01", 1)
		dry := importLines(t, r, Options{DryRun: true}, again)
		got := importLines(t, r, Options{}, again)
		b := get(t, r, "bd-1")
		if got[0].Outcome != c.outcome || dry[0] != got[0] || b.Status != c.status || b.Title != c.title {
			t.Errorf("%s: %+v (dry: %+v), %s %q; want %s, %s %q", name, got[0], dry[0], b.Status, b.Title, c.outcome, c.status, c.title)
		}
		third := importLines(t, r, Options{}, again)
		if c.outcome == Updated && third[0].Outcome != Unchanged {
			t.Errorf("%s, once more: %+v", name, third[0])
		}
	}
}

// TestThereAndBack: an import and an export give back what bd had, field by
// field, and an import of that changes nothing.
func TestThereAndBack(t *testing.T) {
	r := testRig(t)
	lines := []string{
		issue("MyProj-12", `"status":"blocked","priority":0,"owner":"a@b","estimated_minutes":60,"labels":["x","y"],"description":"D\n","design":"The design","notes":"N","acceptance_criteria":"A",`+
			`"comments":[{"id":1,"text":"<hello> & so"}],"metadata":{"k":[1.50,2]},"dependencies":[{"issue_id":"MyProj-12","depends_on_id":"bd-2","type":"blocks","created_at":"2025-12-18T02:02:00.470012-08:00","created_by":"daemon"},{"depends_on_id":"elsewhere","type":"related"}]`),
		issue("bd-2", `"status":"open","priority":2`),
		issue("bd-3", `"status":"closed","priority":4,"closed_at":"2025-12-18T00:00:00Z"`),
		strings.Replace(issue("bd-4", `"status":"in_progress","priority":3,"assignee":"bob"`), "task", "epic", 1),
		issue("bd-4.1", `"status":"deferred","priority":1,`+waitsFor("parent-child", "bd-4")),
	}
	importLines(t, r, Options{}, lines...)
	beads, _, err := r.Beads.All()
	rigtest.Must(t, err)
	issues, err := Export(beads)
	rigtest.Must(t, err)
	var out []string
	for _, i := range issues {
		line, err := state.EncodeLine(i)
		rigtest.Must(t, err)
		out = append(out, string(line))
	}
	want := map[string]string{}
	for _, l := range read(t, lines...) {
		line, err := state.EncodeLine(l.Issue)
		rigtest.Must(t, err)
		want[l.Issue.ID] = string(line)
	}
	for n, i := range issues {
		if out[n] != want[i.ID] {
			t.Errorf("%s came back as\n%swas\n%s", i.ID, out[n], want[i.ID])
		}
	}
	for _, res := range importLines(t, r, Options{}, out...) {
		if res.Outcome != Unchanged {
			t.Errorf("%+v", res)
		}
	}
}

// TestBackAndThere: what a rig exports becomes the same beads in another one,
// but for what was being worked on, and an import of it at home changes nothing.
func TestBackAndThere(t *testing.T) {
	home, other := testRig(t), testRig(t)
	at := state.At(time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC))
	full := bead.Bead{Title: "Full", Description: "D", Acceptance: "A", Priority: bead.P3, Type: "bug", Labels: []string{"l"}, CreatedBy: "mayor", AllowEmpty: true, Worker: "sh"}
	full, err := home.Beads.Add(full, "mr", at)
	rigtest.Must(t, err)
	for _, status := range []bead.Status{bead.Blocked, bead.Cancelled} {
		b, err := home.Beads.Add(bead.Bead{Title: string(status), BlockedBy: []state.BeadID{full.ID}}, "mr", at)
		rigtest.Must(t, err)
		_, err = home.Beads.Update(t.Context(), string(b.ID), func(b *bead.Bead) error { return b.Become(status, "the reason", state.At(time.Now())) })
		rigtest.Must(t, err)
	}
	beads, _, err := home.Beads.All()
	rigtest.Must(t, err)
	issues, err := Export(beads)
	rigtest.Must(t, err)
	lines := make([]Line, len(issues))
	for n, i := range issues {
		lines[n] = Line{n + 1, i}
	}
	report, err := Import(t.Context(), home, state.Human, lines, Options{})
	rigtest.Must(t, err)
	if slices.ContainsFunc(report.Results, func(r Result) bool { return r.Outcome != Unchanged }) {
		t.Errorf("at home: %+v", report.Results)
	}
	report, err = Import(t.Context(), other, state.Human, lines, Options{})
	rigtest.Must(t, err)
	if report.OfferedWorkers != 1 || get(t, other, string(full.ID)).Worker != "" {
		t.Error("a worker was taken without being trusted, or nobody was told")
	}
	other = testRig(t)
	_, err = Import(t.Context(), other, state.Human, lines, Options{Workers: true})
	rigtest.Must(t, err)
	for _, b := range beads {
		got := get(t, other, string(b.ID))
		if got.Title != b.Title || got.Description != b.Description || got.Acceptance != b.Acceptance || got.Priority != b.Priority || got.Status != b.Status ||
			got.CloseReason != b.CloseReason || !slices.Equal(got.Labels, b.Labels) || !slices.Equal(got.BlockedBy, b.BlockedBy) ||
			got.AllowEmpty != b.AllowEmpty || got.Worker != b.Worker || got.CreatedAt != b.CreatedAt {
			t.Errorf("%+v\nbecame\n%+v", b, got)
		}
	}
	_, err = Import(t.Context(), other, state.Human, lines, Options{Workers: true, CheckWorker: func(string) error { return actor.Invalidf("no such worker") }})
	rigtest.Must(t, err) // they are unchanged
	_, err = Import(t.Context(), testRig(t), state.Human, lines, Options{Workers: true, CheckWorker: func(string) error { return actor.Invalidf("no such worker") }})
	if !errors.Is(err, actor.ErrInvalid) {
		t.Errorf("a worker that can't be: %v", err)
	}
}

// TestImportGoesOn: an import that broke off after any number of beads is done
// by the next one, and at no moment does a bead wait for one that is not there.
func TestImportGoesOn(t *testing.T) {
	lines := []string{issue("bd-c", waitsFor("blocks", "bd-b", "bd-a")), issue("bd-b", waitsFor("blocks", "bd-a")), issue("bd-a", ""),
		issue("bd-e", ""), issue("bd-e.1", waitsFor("parent-child", "bd-e"))}
	whole := testRig(t)
	importLines(t, whole, Options{}, lines...)
	order := []string{"bd-a", "bd-e.1", "bd-b", "bd-e", "bd-c"} // the layers of it
	for n := range order {
		r := testRig(t)
		for _, id := range order[:n] {
			b := get(t, whole, id)
			for _, dep := range b.BlockedBy {
				get(t, r, string(dep))
			}
			rigtest.Must(t, r.Beads.Create(id, b))
		}
		importLines(t, r, Options{}, lines...)
		for _, id := range order {
			a, b := get(t, whole, id), get(t, r, id)
			a.UpdatedAt, b.UpdatedAt = state.Time{}, state.Time{}
			one, err := state.Encode(a)
			rigtest.Must(t, err)
			two, err := state.Encode(b)
			rigtest.Must(t, err)
			if string(one) != string(two) {
				t.Errorf("after %d: %s\ninstead of %s", n, two, one)
			}
		}
	}
	// A name that is taken by something that is no bead ends it, and what was made stays.
	r := testRig(t)
	rigtest.Must(t, os.MkdirAll(r.Tree.Abs(bead.Dir), 0o755))
	rigtest.Must(t, os.WriteFile(filepath.Join(r.Tree.Abs(bead.Dir), "bd-b.json"), []byte("{"), 0o644))
	if _, err := Import(t.Context(), r, state.Human, read(t, lines...), Options{}); !errors.Is(err, state.ErrExists) {
		t.Errorf("over a torn file: %v", err)
	}
	if _, err := r.Beads.Get("bd-c"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("what waits for the torn one: %v", err)
	}
}

// TestAnyImport: whatever depends on whatever, what is imported closes no
// circle, waits for nothing that is not there, and is known the next time.
func TestAnyImport(t *testing.T) {
	ids := []string{"bd-a", "BD-A", "bd-b", "bd-c", "bd-c.1", "bd-d"}
	kinds := []string{"blocks", "parent-child", "related", "waits-for"}
	states := []string{"open", "closed", "blocked", "tombstone", "in_progress"}
	rapid.Check(t, func(rt *rapid.T) {
		var lines []Line
		for n, id := range ids {
			i := Issue{ID: id, Title: id, Status: rapid.SampledFrom(states).Draw(rt, "status")}
			for range rapid.IntRange(0, 3).Draw(rt, "deps") {
				i.Dependencies = append(i.Dependencies, Dependency{DependsOnID: rapid.SampledFrom(ids).Draw(rt, "on"), Type: rapid.SampledFrom(kinds).Draw(rt, "kind")})
			}
			lines = append(lines, Line{n + 1, i})
		}
		p, err := makePlan(lines, nil, Options{DropUnknown: true})
		if err != nil {
			if !errors.Is(err, state.ErrConflict) {
				rt.Fatal(err)
			}
			return
		}
		g := bead.Graph{}
		var beads []bead.Bead
		for _, e := range p.entries {
			b, err := p.made(e, state.Human, state.At(time.Now()))
			if err != nil {
				rt.Fatal(err)
			}
			g[b.ID] = b.BlockedBy
			beads = append(beads, b)
		}
		for id, deps := range g {
			for _, d := range deps {
				if _, there := g[d]; !there {
					rt.Fatalf("%s waits for %s, which is not there", id, d)
				}
			}
		}
		if c := g.Cycles(); c != nil {
			rt.Fatalf("circles %v in %v", c, g)
		}
		again, err := makePlan(lines, beads, Options{DropUnknown: true})
		if err != nil {
			rt.Fatal(err)
		}
		for _, e := range again.entries {
			s, _ := sourceOf(e.there)
			if !e.same || !slices.Equal(s.Implied, e.implied) {
				rt.Fatalf("%s is not known again: %+v and %v", e.id, s, e.implied)
			}
		}
	})
}

// FuzzIssue: a line is refused, or it becomes a bead that can be stored, and the
// bead gives back the same issue.
func FuzzIssue(f *testing.F) {
	f.Add([]byte(issue("bd-1", `"status":"open","priority":1`)))
	f.Add([]byte(issue("BD/1", `"status":"closed","closed_at":"2025-12-18T00:00:00Z","labels":["a"],"metadata":{"chipset":{"status":"cancelled","worker":"sh"}}`)))
	f.Add([]byte(issue("bd-1", `"design":"d","notes":"n","x":{"y":[1]},`+waitsFor("blocks", "bd-2"))))
	f.Fuzz(func(t *testing.T, data []byte) {
		i, err := Decode(append([]byte(" "), data...))
		if err != nil || i.ignored() != "" || i.Status == statusTombstone {
			return
		}
		p, err := makePlan([]Line{{1, i}}, nil, Options{DropUnknown: true, Workers: true})
		if err != nil {
			return
		}
		b, err := p.made(p.entries[0], state.Human, state.At(time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC)))
		if err != nil {
			return
		}
		tree, err := state.Encode(b)
		rigtest.Must(t, err)
		var stored bead.Bead
		rigtest.Must(t, state.Decode("bead", tree, &stored))
		back, err := Export([]bead.Bead{stored})
		rigtest.Must(t, err)
		line, err := state.EncodeLine(back[0])
		rigtest.Must(t, err)
		again, err := Decode(line)
		if err != nil {
			t.Fatalf("%s\ncame back as what is refused: %v\n%s", data, err, line)
		}
		twice, err := makePlan([]Line{{1, again}}, []bead.Bead{stored}, Options{DropUnknown: true})
		rigtest.Must(t, err)
		if e := twice.entries[0]; !e.same || e.id != b.ID {
			t.Fatalf("%s\nis not known again as\n%s", data, line)
		}
	})
}
