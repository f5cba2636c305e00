package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/environment"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/history"
	"github.com/gastown-chipset/chipset/chipset/preflight"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/wording"
)

type initOptions struct {
	rig, worker, target, test, permissions string
	polecats                               int
	trackState, restore, anew              bool
	// given holds the names of the flags on the command line.
	given map[string]bool
}

// AddFlags registers the flags of init.
func (o *initOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.rig, "rig", "", "the `name` of the rig (default: the directory's name)")
	fs.StringVar(&o.worker, "worker", "", "a preset (chipset runtime list) or a `command` line (default: the first preset found on PATH)")
	fs.IntVar(&o.polecats, "polecats", 5, fmt.Sprintf("how many polecats, `N`, work in parallel: 1 to %d", definition.MaxPolecats))
	fs.StringVar(&o.target, "target", "", "the `branch` that work lands on (default main, master, or the current one)")
	fs.StringVar(&o.test, "test", "", "the `command` that must succeed on everything that lands (default: detected)")
	fs.StringVar(&o.permissions, "permissions", "", "what agents may do without asking, `ask|edit|full`; required for an agent preset")
	fs.BoolVar(&o.trackState, "track-state", false, "let git track .chipset/state; a stash or another branch can then remove the live tree")
	fs.BoolVar(&o.restore, "restore", false, "restore a rig whose .chipset/state is gone from its newest snapshot (chipset audit)")
	fs.BoolVar(&o.anew, "anew", false, "make a new rig where one was lost")
}

func newInitCmd(a *app) *cobra.Command {
	var opts initOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "init",
		Short: "Make a rig in the current repository",
		Long: `Make .chipset/ with a commented chipset.yaml and the state tree, and register
every agent of the definition. A repository has one rig (exit 4 for a second
one). An existing chipset.yaml is used as it is; nothing is ever overwritten. If
init has guessed the test command, it tries it in a fresh worktree of the
target, after the setup.

If a rig was here before and its state is gone (git clean -x removes ignored
files), init says so. If there is a snapshot of it (chipset audit), choose
--restore or --anew.

A headless agent can't ask anybody for permission. So the preset of an agent
(` + strings.Join(clients.Agents(), ", ") + `)
needs a decision. On a terminal init asks for it; elsewhere use --permissions:
` + permissionsHelp,
		Example: "  chipset init --worker claude --permissions edit --test \"go test ./...\"\n  chipset init --worker sh --polecats 2",
		Args:    nargs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts.given = map[string]bool{}
			cmd.Flags().Visit(func(f *pflag.Flag) { opts.given[f.Name] = true })
			return runInit(cmd.Context(), opts, a)
		},
	})
}

// permissionsHelp says what the choices mean.
const permissionsHelp = `  ask   the client's own defaults; what it would ask about is refused until you
        approve it (clients with a hook for it ask you by mail: chipset approve)
  edit  it may edit files in its worktree; most clients then run no commands,
        not even tests
  full  it may run any command within the sandbox; without a sandbox, anything
        your user may`

// decides reports whether a flag was given that an existing chipset.yaml would
// override.
func (o *initOptions) decides() bool {
	return slices.ContainsFunc([]string{"rig", "worker", "polecats", "target", "test", "permissions"},
		func(name string) bool { return o.given[name] })
}

func runInit(ctx context.Context, opts initOptions, a *app) error {
	dir := a.cwd
	if a.dir != "" {
		dir = a.abs(a.dir)
	}
	repo, err := git.Open(ctx, dir)
	if err != nil {
		return withHint(err, "chipset init needs a git repository with a first commit: git init, git commit")
	}
	if err := opts.check(); err != nil {
		return err
	}
	root := filepath.Join(repo.TopLevel(), rig.DirName)
	undetected, guessed := false, false
	template := definition.TemplateOptions{}
	if !exists(filepath.Join(root, rig.DefinitionName)) && !exists(filepath.Join(root, "state", "rig.json")) {
		if template, undetected, err = opts.template(ctx, a, repo); err != nil {
			return err
		}
		guessed = !undetected && !opts.given["test"]
	}
	r, err := makeOrRestore(ctx, a, repo, opts, rig.InitOptions{Dir: dir, Template: template, TemplateGiven: opts.decides(), TrackState: opts.trackState, Anew: opts.anew, Clock: a.clock})
	if err != nil {
		return err
	}
	a.opened = r
	if undetected {
		hint := ""
		has, read := files(repo.TopLevel())
		if tests := definition.DetectTests(folders(repo.TopLevel()), has, read); len(tests) > 0 {
			hint = fmt.Sprintf(", perhaps to sh -c '(%s)'", strings.Join(tests, ") && ("))
		}
		a.warnf("no test command was found, so nothing is tested before it lands (test: \"true\"); set merge.test in %s%s", filepath.Join(root, rig.DefinitionName), hint)
	}
	found := tried{}
	if found.remotes, err = r.Git.Remotes(ctx); err != nil {
		return err
	}
	if guessed {
		if found.test, err = tryTest(ctx, a, r); err != nil {
			return err
		}
	}
	return tellInit(ctx, a, r, found)
}

// tried is what init has found out in addition to what it wrote.
type tried struct {
	// test is the result of the guessed test command, zero if it was not guessed.
	test    environment.Check
	remotes []string
}

// tryTest runs setup and test as up would, so that a wrong guess is noticed at once.
func tryTest(ctx context.Context, a *app, r *rig.Rig) (environment.Check, error) {
	o, err := a.preflightOptions()
	if err != nil {
		return environment.Check{}, err
	}
	c, err := preflight.Test(ctx, r, o)
	switch {
	case err != nil && ctx.Err() != nil:
		return c, ctx.Err()
	case err != nil:
		a.warnf("the test could not be tried: %v", err)
	case !c.OK():
		mend := "set merge.test or worktree.setup in " + filepath.Join(rig.DirName, rig.DefinitionName) + ", then chipset validate --live"
		a.warnf("%s: nothing lands until it passes: %s", c.Fault.Reason, cmp.Or(c.Mend, mend))
	}
	return c, nil
}

// makeOrRestore makes the rig, or restores the one that was lost here.
func makeOrRestore(ctx context.Context, a *app, repo *git.Repo, opts initOptions, o rig.InitOptions) (*rig.Rig, error) {
	r, err := rig.Init(ctx, o)
	var lost *rig.LostError
	if !errors.As(err, &lost) {
		if err == nil && opts.restore {
			a.warnf("init: no rig was lost here, so nothing was restored")
		}
		return r, err
	}
	entry, snapshot, noSnapshot := history.Newest(ctx, repo, git.Branch(definition.DefaultAuditRef))
	kept := noSnapshot == nil && snapshot.Rig == lost.Rig // another rig's branch may have come with a clone
	switch {
	case !kept && opts.restore:
		return nil, exitWith(codeNotFound, errors.Join(fmt.Errorf("init: %w, and there is no snapshot of it on %s", lost, definition.DefaultAuditRef), noSnapshot))
	case !kept:
		a.warnf("%v; there is no snapshot of it, so a new rig is made", lost)
		o.Anew = true
	case opts.restore:
		o.Restore = &snapshot
		a.tellf("restored %s of the rig %s as of %s (%s)\n", wording.Count(len(snapshot.Files), "file"), lost.Rig, localTime(entry.When), entry.Commit.Short())
	default:
		return nil, withHint(lost, fmt.Sprintf("chipset init --restore brings it back as of %s (%s on %s), chipset init --anew makes another rig",
			localTime(entry.When), entry.Commit.Short(), definition.DefaultAuditRef))
	}
	return rig.Init(ctx, o)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// check refuses values that would make the written file invalid.
func (o *initOptions) check() error {
	if o.polecats < 1 || o.polecats > definition.MaxPolecats {
		return usagef("--polecats %d is not between 1 and %d", o.polecats, definition.MaxPolecats)
	}
	if o.given["permissions"] && !slices.Contains(permissionChoices(), o.permissions) {
		return usagef("--permissions %q is not one of %s", o.permissions, strings.Join(permissionChoices(), ", "))
	}
	if o.given["worker"] {
		if _, err := agentcli.ResolveWorker(o.worker, clients.Presets()); err != nil {
			return usagef("--worker: %v", err)
		}
		if nowhere(o.worker, clients.Presets()) {
			return withHint(usagef("--worker: %q is neither a preset nor a command on PATH", o.worker), "chipset runtime list shows the presets")
		}
	}
	if o.target != "" {
		if _, err := git.ParseBranch(o.target); err != nil {
			return usagef("--target: %v", err)
		}
	}
	if strings.TrimSpace(o.test) != "" {
		if _, err := process.ParseCommand(o.test); err != nil {
			return usagef("--test: %v", err)
		}
	}
	return nil
}

// nowhere reports whether a worker is one word that is neither a preset nor a command on PATH.
func nowhere(worker string, presets []agentcli.Preset) bool {
	if strings.ContainsAny(worker, " /") || slices.ContainsFunc(presets, func(p agentcli.Preset) bool { return p.Name == worker }) {
		return false
	}
	_, err := exec.LookPath(worker)
	return err != nil
}

func permissionChoices() []string {
	return []string{agentcli.PermissionAsk, agentcli.PermissionEdit, agentcli.PermissionFull}
}

// template returns the options of the new definition, and whether no test command
// could be detected.
func (o *initOptions) template(ctx context.Context, a *app, repo *git.Repo) (definition.TemplateOptions, bool, error) {
	t := definition.TemplateOptions{RigName: o.rig, Worker: o.worker, Polecats: o.polecats, Target: o.target,
		Test: o.test, Permissions: o.permissions}
	if t.RigName == "" {
		t.RigName = filepath.Base(repo.TopLevel())
	}
	if t.Worker == "" {
		t.Worker = detectWorker()
	}
	if t.Target == "" {
		target, err := repo.DefaultTarget(ctx)
		if err != nil {
			return t, false, err
		}
		t.Target = string(target)
	} else if found, err := repo.BranchExists(ctx, git.Branch(t.Target)); err != nil || !found {
		if err == nil {
			err = exitWith(codeNotFound, fmt.Errorf("init: --target: no branch %q", t.Target))
		}
		return t, false, err
	}
	ignored, err := repo.In(repo.TopLevel()).Ignored(ctx)
	if err != nil {
		return t, false, err
	}
	has, read := files(repo.TopLevel())
	t.Worktree = definition.DetectWorktree(ignored, has, read)
	undetected := false
	if !o.given["test"] {
		t.Test = definition.DetectTest(has, read)
		if undetected = t.Test == ""; undetected {
			t.Test = "true"
		}
	}
	if isAgentPreset(t.Worker) && t.Permissions == "" {
		var err error
		if t.Permissions, err = a.askPermissions(t.Worker); err != nil {
			return t, undetected, err
		}
	}
	return t, undetected, nil
}

// detectWorker returns the first built-in preset whose command is on PATH, else sh.
func detectWorker() string {
	for _, p := range clients.Presets() {
		if _, err := exec.LookPath(p.Command[0]); err == nil && len(p.Permissions) > 0 {
			return p.Name
		}
	}
	return "sh"
}

func isAgentPreset(worker string) bool { return slices.Contains(clients.Agents(), worker) }

// maxProbe bounds what is read of a file that may name the test command, in bytes.
const maxProbe = 1 << 20

// files returns access to a checkout's files, for the guesses of package definition.
func files(top string) (has func(path string) bool, read func(path string) []byte) {
	regular := func(path string) bool {
		info, err := os.Stat(filepath.Join(top, filepath.FromSlash(path)))
		return err == nil && (info.IsDir() || info.Mode().IsRegular() && info.Size() <= maxProbe)
	}
	return regular, func(path string) []byte {
		if !regular(path) {
			return nil
		}
		data, err := state.ReadOutside(filepath.Join(top, filepath.FromSlash(path)), maxProbe)
		if err != nil {
			return nil
		}
		return data
	}
}

// folders returns the folders in the root of a checkout that may be projects of their own.
func folders(top string) (names []string) {
	const most = 100
	entries, _ := os.ReadDir(top) // a guess
	for _, e := range entries[:min(len(entries), most)] {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && e.Name() != "node_modules" {
			names = append(names, e.Name())
		}
	}
	return names
}

func (a *app) askPermissions(worker string) (string, error) {
	if !a.interactive() {
		return "", withHint(usagef("the worker %s needs a decision about its permissions", worker),
			"add --permissions ask, edit or full (chipset help init says what they mean), or --worker sh")
	}
	a.tellf(`What may %s do without asking? Headless, it has nobody to ask.
`+permissionsHelp+"\n", worker)
	in := bufio.NewReader(a.stdin)
	for {
		a.tellf("ask, edit or full? ")
		line, err := in.ReadString('\n')
		if answer := strings.TrimSpace(line); slices.Contains(permissionChoices(), answer) {
			return answer, nil
		}
		if err != nil {
			return "", usagef("no decision about the permissions of %s", worker)
		}
	}
}

// madeRig is what init --json prints.
type madeRig struct {
	Path       string   `json:"path"`
	Rig        string   `json:"rig"`
	BeadPrefix string   `json:"bead_prefix"`
	Agents     []string `json:"agents"`
	Worker     string   `json:"worker"`
	Target     string   `json:"target"`
	Test       string   `json:"test,omitempty"`
	// Tried is the result of the test, if it was guessed.
	Tried      string   `json:"tried,omitempty"`
	Worktree   string   `json:"worktree,omitempty"`
	Remotes    []string `json:"remotes,omitempty"`
	Definition string   `json:"definition"`
}

func tellInit(ctx context.Context, a *app, r *rig.Rig, found tried) error {
	target, err := r.Target(ctx)
	if err != nil {
		return err
	}
	made := madeRig{Path: filepath.Join(r.Dir, rig.DirName), Rig: r.Def.Rig.Name, BeadPrefix: r.Def.Rig.BeadPrefix, Worker: r.Def.Worker.Default,
		Target: string(target), Test: r.Def.Merge.Test.String(), Worktree: worktreeText(&r.Def.Worktree), Definition: filepath.Join(rig.DirName, rig.DefinitionName)}
	switch made.Remotes = found.remotes; {
	case !found.test.OK():
		made.Tried = "red"
	case found.test.Found != "":
		made.Tried = found.test.Found
	}
	for _, agent := range r.Def.Agents() {
		made.Agents = append(made.Agents, agent.ID)
	}
	if isAgentPreset(made.Worker) {
		made.Worker += " (permissions: " + r.Def.Worker.Permissions + ")"
	}
	return a.show(made, nil, func() error {
		test := made.Test
		if test == "" {
			test = "none: nothing is tested before it lands"
		} else if made.Tried != "" {
			test += ": " + made.Tried
		}
		remote := ""
		if len(made.Remotes) > 0 && r.Def.Merge.Remote == "" {
			remote = fmt.Sprintf("%s: work lands on %s here, and is pushed where merge.remote names one", strings.Join(made.Remotes, ", "), target)
		}
		a.printf("made %s\n", made.Path)
		a.fields(9, [][2]string{
			{"rig", made.Rig + " (beads " + made.BeadPrefix + "-…)"}, {"agents", strings.Join(made.Agents, ", ")}, {"worker", made.Worker},
			{"target", made.Target}, {"remotes", remote}, {"test", test}, {"worktree", made.Worktree}, {"settings", made.Definition},
			{"history", historyWords(r)},
		})
		a.printf("next:\n  chipset work add \"What is to be done\" -d \"How, and what else to know\"\n  chipset up\n")
		return nil
	})
}

// historyWords describes in one sentence how the history of the state tree is kept.
func historyWords(r *rig.Rig) string {
	interval := r.Def.Audit.Every
	if interval == 0 {
		return "chipset audit commit keeps a snapshot on " + r.Def.Audit.Ref
	}
	every := interval.String()
	if interval == time.Hour {
		every = "hour"
	}
	return fmt.Sprintf("a snapshot every %s on %s; chipset audit track leaves .chipset/state to your own commits", every, r.Def.Audit.Ref)
}

// worktreeText describes what worktrees get in addition to what git checks out, "" for nothing.
func worktreeText(w *definition.Worktree) string {
	var parts []string
	for _, p := range w.Copy {
		parts = append(parts, "a copy of "+p)
	}
	for _, p := range w.Link {
		parts = append(parts, "a link to "+p)
	}
	if w.Submodules {
		parts = append(parts, "submodules")
	}
	if w.LFS {
		parts = append(parts, "LFS files")
	}
	if !w.Setup.IsZero() {
		parts = append(parts, w.Setup.String())
	}
	return strings.Join(parts, ", ")
}
