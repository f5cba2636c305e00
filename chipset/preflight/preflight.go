// Package preflight checks whether a rig can work before anything is spent: the checks of package environment, and the
// setup and the test in a fresh worktree of the target's tip. A failed check pauses its scope, with one need for the person.
package preflight

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/environment"
	"github.com/gastown-chipset/chipset/chipset/execute"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Options configure a Run.
type Options struct {
	// Self is the path of this binary, for the supervisor of setup and test.
	Self string
	// Say prints one line for the person.
	Say func(format string, args ...any)
}

// Run makes all checks. The setup and the test run only if the checks that they depend on passed, and if they have
// not passed before on the same tip.
func Run(ctx context.Context, r *rig.Rig, o Options) ([]environment.Check, error) {
	checks, err := environment.Checks(ctx, r)
	if err != nil {
		return checks, err
	}
	inTheWay := func(c environment.Check) bool {
		return !c.OK() && c.Scope == pause.Rig && c.Name != environment.CheckRemote
	}
	if slices.ContainsFunc(checks, inTheWay) {
		return checks, nil
	}
	test, err := Test(ctx, r, o)
	return append(checks, test), err
}

// Note stores the results: each fault pauses its scope, and a pause that an earlier check began ends if the check
// was repeated and passed. It returns the pauses that are in force. It is durable when the error is nil.
func Note(ctx context.Context, r *rig.Rig, checks []environment.Check) ([]pause.Pause, error) {
	found, made := map[pause.Scope]environment.Check{}, map[string]bool{}
	for _, c := range slices.Backward(checks) { // the first of a scope is what keeps the others from being seen
		made[c.Name] = true
		if !c.OK() {
			found[c.Scope] = c
		}
	}
	for _, c := range found {
		if err := c.Pause(ctx, r); err != nil {
			return nil, err
		}
	}
	all, err := r.Pauses.InForce()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(p pause.Pause) bool {
		if _, again := found[p.Scope]; again {
			return false
		}
		if made[p.Check] {
			err = errors.Join(err, r.Pauses.Change(ctx, p.Scope, func(p *pause.Pause) error { return p.Lift(r.Clock.Now()) }))
		}
		return true
	}), err
}

// folder is the worktree in which setup and test run. No agent can have that name.
const folder = state.WorktreeDir + "/.preflight"

// siteID is the name of what runs there.
const siteID state.AgentID = "preflight"

// Test runs setup and test in a fresh worktree of the target's tip. If both passed on that tip before, or the
// refinery has landed it, nothing runs.
func Test(ctx context.Context, r *rig.Rig, o Options) (c environment.Check, err error) {
	c.Name = environment.CheckTest
	target, tip, err := carry.TargetTip(ctx, r)
	if err != nil {
		return c, err
	}
	key, err := keyOf(r, tip)
	if err != nil {
		return c, err
	}
	line, known := remembered(r, target, tip, key)
	if known {
		c.Subject, c.Found = line, "was green on "+tip.Short()
		if _, err := os.Lstat(r.Tree.Abs(folder)); errors.Is(err, fs.ErrNotExist) {
			return c, nil // nor is there anything of a start that was killed
		}
	}
	lock, err := r.Tree.Lock(ctx, state.LockGit, string(siteID))
	if err != nil {
		return c, err
	}
	defer lock.Unlock()
	site := &execute.Site{Rig: r, ID: siteID, Dir: r.Tree.Abs(folder), Jobs: process.NewHost(o.Self), Say: o.Say}
	defer site.Jobs.Close()
	if err := clear(site); err != nil || known {
		return c, err
	}
	defer func() { err = errors.Join(err, clear(site)) }()
	err = r.Tree.MkdirAll(state.WorktreeDir)
	if err == nil {
		err = prepare(ctx, r, site.Dir, tip)
	}
	if err != nil {
		fail(&c, fault.OfError(err, fault.WorktreeFailed))
		return c, ctx.Err()
	}
	return try(ctx, site, target, tip, key)
}

func prepare(ctx context.Context, r *rig.Rig, dir string, tip git.Hash) error {
	lock, err := r.Tree.Lock(ctx, state.LockGit, "worktrees")
	if err != nil {
		return err
	}
	defer lock.Unlock()
	return r.Git.PrepareDetached(ctx, dir, tip)
}

// try runs setup and test in a worktree that is at tip.
func try(ctx context.Context, s *execute.Site, target git.Branch, tip git.Hash, key string) (environment.Check, error) {
	c := environment.Check{Name: environment.CheckTest}
	began := time.Now() //nolint:forbidigo // measures a real command
	line, argv, err := execute.TestCommand(s.Rig.Def, s.Dir)
	c.Subject = line
	if err == nil && len(argv) > 0 {
		s.Say("testing %s at %s before anything starts: %s", target, tip.Short(), line)
	}
	if err := s.Furnish(ctx); err != nil {
		if ctx.Err() != nil {
			return c, ctx.Err()
		}
		f := fault.OfError(err, fault.SetupFailed)
		fail(&c, f)
		return c, nil
	}
	result, err := s.Test(ctx)
	took := time.Since(began).Round(100 * time.Millisecond)
	switch {
	case err != nil:
		return c, err
	case result.Untested:
		c.Subject, c.Found = "none", "work lands untested"
	case result.Kind == refinery.Green:
		c.Found = fmt.Sprintf("green on %s in %s", tip.Short(), took)
		return c, s.Rig.Tree.ReplaceJSON(memoryPath, memory{Key: key, Line: line, Tip: string(tip)})
	default:
		what := "is red on"
		if result.Kind != refinery.Red || len(argv) == 0 {
			what = "can't be run on"
		}
		log := s.Rig.Tree.Abs(state.LogDir.Join("test-" + string(siteID) + ".log"))
		fail(&c, fault.New(fault.TestCannotRun, fmt.Sprintf("the test %s %s itself, at %s: %s", what, target, tip.Short(), cause(result.Text))))
		if len(argv) > 0 {
			c.Mend = "less " + log
		}
	}
	return c, nil
}

// cause returns how a test ended, and its output if that is one line.
func cause(text string) string {
	end, output, _ := strings.Cut(text, "\n")
	if output = strings.TrimSpace(output); output != "" && !strings.Contains(output, "\n") {
		end += ": " + output
	}
	return wording.Reason(end)
}

func fail(c *environment.Check, f fault.Fault) {
	c.Fault, c.Scope = f, pause.Of(f.Kind, "")
}

// clear removes the worktree and its registration.
func clear(s *execute.Site) error {
	err := os.RemoveAll(s.Dir) //nolint:forbidigo // a worktree that holds nobody's work
	if err == nil {
		err = s.Rig.Git.ForgetWorktree(s.Dir)
	}
	return errors.Join(err, s.ForgetSetup())
}

// memory is the last tip on which setup and test passed: run/preflight.json.
type memory struct {
	Key  string `json:"key"`
	Line string `json:"test"`
	Tip  string `json:"tip"`
}

const memoryPath = state.RunDir + "/preflight.json"

// remembered returns the test that passed on a tip: here, or in the refinery, which landed it with the current
// definition.
func remembered(r *rig.Rig, target git.Branch, tip git.Hash, key string) (string, bool) {
	var m memory
	if r.Tree.ReadJSON(memoryPath, &m) == nil && m.Key == key {
		return m.Line, true
	}
	last, err := r.Queue.LastLanded(string(target))
	if err != nil || last == nil || !last.Tested || git.Hash(last.MergedSHA) != tip {
		return "", false
	}
	info, err := os.Stat(r.Tree.Abs(rig.DefinitionName))
	return r.Def.Merge.Test.String(), err == nil && info.ModTime().Before(last.UpdatedAt.Time)
}

// keyOf returns a key for a tip and the parts of the definition that setup and test depend on.
func keyOf(r *rig.Rig, tip git.Hash) (string, error) {
	d := r.Def
	text, err := json.Marshal([]any{tip, d.Merge.Test, d.MergeDefined, d.Worktree, d.Sandbox, d.Allow, d.Network})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}
