package chipsettest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/statetest"
)

// hostile is a rig into which somebody put what does not belong there, and a
// canary outside of it.
type hostile struct {
	t       *testing.T
	w       *chipsettest.World
	outside string
	canary  string
	twins   int
	planted []planted
	// before is what lies outside, before any command runs.
	before map[string]string
}

type planted struct{ row, path string }

func newHostile(t *testing.T, bin string) *hostile {
	t.Helper()
	h := &hostile{t: t, w: chipsettest.New(t, bin, chipsettest.Options{Polecats: 1, Test: "true"}), outside: t.TempDir()}
	h.canary = filepath.Join(h.outside, "canary")
	h.put(h.canary, "sings\n")
	return h
}

func (h *hostile) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *hostile) put(path, text string) {
	h.t.Helper()
	h.must(os.MkdirAll(filepath.Dir(path), 0o755))
	h.must(os.WriteFile(path, []byte(text), 0o644))
}

func (h *hostile) state(elem ...string) string {
	return filepath.Join(append([]string{h.w.Dir, ".chipset", "state"}, elem...)...)
}

// plant makes a row's file, if the file system has such names at all.
func (h *hostile) plant(row, path string, f func(path string)) {
	h.t.Helper()
	h.must(os.MkdirAll(filepath.Dir(path), 0o755))
	f(path)
	if _, err := os.Lstat(path); err != nil {
		h.t.Fatalf("%s: %v", row, err)
	}
	h.planted = append(h.planted, planted{row, path})
}

// hang is how long a command may take before it counts as hanging. It is far more
// than any needs, also on a machine with much else to do.
const hang = 5 * time.Minute

// run runs a command that must come back.
func (h *hostile) run(args ...string) (stdout, stderr string, code int) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), hang)
	defer cancel()
	like := h.w.Command(h.w.Bin, args...)
	cmd := exec.CommandContext(ctx, h.w.Bin, args...)
	cmd.Dir, cmd.Env = like.Dir, like.Env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if ctx.Err() != nil {
		h.t.Fatalf("chipset %q hangs", args)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		h.t.Fatalf("chipset %q: %v", args, err)
	}
	if exit != nil {
		code = exit.ExitCode()
	}
	if code < 0 || strings.Contains(errs.String(), "panic:") || strings.Contains(errs.String(), "goroutine ") {
		h.t.Fatalf("chipset %q: exit %d\n%s", args, code, errs.String())
	}
	return out.String(), errs.String(), code
}

// diagnosis is what doctor --json prints.
type diagnosis struct {
	Rule, Path, Detail, Repair, Severity string
	Fixed                                bool
}

func (h *hostile) doctor(args ...string) []diagnosis {
	h.t.Helper()
	out, errs, _ := h.run(append([]string{"doctor", "--json"}, args...)...)
	var found []diagnosis
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		h.t.Fatalf("doctor --json: %v\n%s\n%s", err, out, errs)
	}
	return found
}

var replaced = regexp.MustCompile("\uFFFD+")

// plain is a path as it can be told in JSON.
func plain(path string) string {
	return replaced.ReplaceAllString(strings.ToValidUTF8(path, "\uFFFD"), "\uFFFD")
}

// told reports whether a finding names the path with a rule and a reason.
func told(found []diagnosis, path string) bool {
	for _, f := range found {
		if plain(f.Path) == plain(path) && f.Rule != "" && f.Detail != "" && f.Repair != "" {
			return true
		}
	}
	return false
}

func (h *hostile) rel(path string) string {
	h.t.Helper()
	rel, err := filepath.Rel(filepath.Join(h.w.Dir, ".chipset"), path)
	h.must(err)
	return filepath.ToSlash(rel)
}

// outsideNow is everything that lies outside of the rig.
func (h *hostile) outsideNow() map[string]string {
	h.t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(h.outside)
	h.must(err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(h.outside, e.Name()))
		h.must(err)
		all[e.Name()] = string(data)
	}
	return all
}

// keepSafe remembers what must not change from here on.
func (h *hostile) keepSafe() { h.before = h.outsideNow() }

func (h *hostile) checkSafe() {
	h.t.Helper()
	now := h.outsideNow()
	if len(now) != len(h.before) {
		h.t.Errorf("outside of the rig lie %d files, and lay %d", len(now), len(h.before))
	}
	for name, text := range h.before {
		if now[name] != text {
			h.t.Errorf("%s, outside of the rig, was changed", name)
		}
	}
}

// quarantined are the paths that something was moved away from.
func (h *hostile) quarantined() map[string]bool {
	h.t.Helper()
	tree, err := state.Open(filepath.Join(h.w.Dir, ".chipset"))
	h.must(err)
	kept, err := tree.Quarantined()
	h.must(err)
	from := map[string]bool{}
	for _, q := range kept {
		if _, err := os.Lstat(h.state("quarantine", q.File)); err == nil && q.Reason != "" {
			from[plain(q.Path)] = true
		}
	}
	return from
}

// lookAround runs what people run, all of which must come back.
func (h *hostile) lookAround() {
	h.t.Helper()
	for _, args := range [][]string{{"status"}, {"status", "--json"}, {"mail", "inbox", "mayor"}, {"mail", "inbox", "human"}, {"work", "list"}, {"convoy", "list"},
		{"queue", "list"}, {"hook", "list"}, {"log"}, {"mail", "search", "x"}, {"nudge", "list", "mayor"}, {"handoff", "list"}, {"prime", "--agent", "mayor"}} {
		h.run(args...)
	}
}

// Every hostile file in every folder is told of, reaches nothing outside, hangs
// nobody, and is kept.
func TestHostileFiles(t *testing.T) {
	bin := chipsettest.Build(t)
	rows := 0
	for _, p := range places() {
		t.Run(p.dir, func(t *testing.T) {
			h := newHostile(t, bin)
			for n, f := range forms() {
				name := p.name(n + 1)
				h.plant(f.name, h.state(filepath.FromSlash(p.dir), name), func(path string) { f.make(h, path, p.sound(name)) })
			}
			h.check()
			rows += len(h.planted)
		})
	}
	if rows < 200 {
		t.Errorf("only %d rows", rows)
	}
	statetest.Figures(t, "%d hostile files", rows)
}

// So are hostile names.
func TestHostileNames(t *testing.T) {
	bin := chipsettest.Build(t)
	h := newHostile(t, bin)
	rows := 0
	for _, p := range append(places(), place{dir: "events"}, place{dir: "."}, place{dir: "mail"}, place{dir: "nudge"}, place{dir: "nudge/mayor"}) {
		for _, name := range names() {
			if strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "..") {
				continue // dot-files are unfinished files of somebody
			}
			if name == "...json" {
				continue
			}
			rows++
			h.plant(p.dir+" "+name, h.state(filepath.FromSlash(p.dir), name), func(path string) { h.put(path, "{}") })
		}
	}
	h.check()
	statetest.Figures(t, "%d hostile names", rows)
}

// check runs everything over what was planted.
func (h *hostile) check() {
	h.t.Helper()
	h.keepSafe()
	found := h.doctor()
	for _, p := range h.planted {
		if !told(found, h.rel(p.path)) {
			h.t.Errorf("%s: doctor does not tell of %q", p.row, h.rel(p.path))
		}
	}
	h.lookAround()
	for _, p := range h.planted {
		if _, err := os.Lstat(p.path); err != nil {
			h.t.Errorf("%s: a command that only reads took %q away", p.row, h.rel(p.path))
		}
	}
	h.checkSafe()
	h.doctor("--fix")
	away := h.quarantined()
	left := h.doctor()
	for _, p := range h.planted {
		rel := h.rel(p.path)
		_, err := os.Lstat(p.path)
		switch {
		case err != nil && !away[plain(rel)]:
			h.t.Errorf("%s: %q is neither where it was nor in the quarantine", p.row, rel)
		case err == nil && !away[plain(rel)] && !told(left, rel):
			h.t.Errorf("%s: %q still lies there, and nobody tells of it", p.row, rel)
		}
	}
	h.checkSafe()
	h.lookAround()
	// The rig goes on beside all that.
	h.run("work", "add", "still works", "-d", "echo still > works.txt")
}
