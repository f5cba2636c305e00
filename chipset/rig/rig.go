// Package rig opens, finds and makes rigs: the definition, the state tree with
// all its stores, the git repository, and who is alive.
package rig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/handoff"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/permission"
	"github.com/gastown-chipset/chipset/state/retire"
	"github.com/gastown-chipset/chipset/state/spend"
)

// DirName is the folder of a rig in its repository.
const DirName = ".chipset"

// DefinitionName is the file with the rig's definition.
const DefinitionName = "chipset.yaml"

// Rig is one open rig. It is safe for concurrent use.
type Rig struct {
	// Dir is the folder that holds .chipset.
	Dir  string
	Tree *state.Tree
	Def  *definition.Definition
	// DefCopied is true when chipset.yaml is gone and Def is what the rig was
	// last started with.
	DefCopied bool
	Git       *git.Repo

	Agents    agent.Store
	Beads     bead.Store
	Convoys   convoy.Store
	Queue     mergequeue.Store
	Dispatch  dispatch.Store
	Retire    retire.Store
	Handoffs  handoff.Store
	Incidents incident.Store
	Pauses    pause.Store
	Spend     spend.Store
	// Permissions are the person's remembered decisions.
	Permissions permission.Store
	Events      *event.Log
	Hooks       hook.Store
	Sender      *mail.Sender
	Clock       state.Clock

	mu      sync.Mutex
	boxes   map[state.AgentID]*mail.Mailbox
	watcher *state.Watcher // nil unless the rig is followed
	named   names
}

// DefinitionError is returned by Open for a chipset.yaml with errors in it.
type DefinitionError struct{ Problems definition.Problems }

func (e *DefinitionError) Error() string { return e.Problems.Error() }

// ErrNoRig is returned when no rig is found.
var ErrNoRig = errors.New("no rig here")

// Open opens the rig whose .chipset lies in dir. Errors: ErrNoRig, ErrUntrusted,
// state.ErrNoTree, *DefinitionError.
func Open(ctx context.Context, dir string, clock state.Clock) (*Rig, error) {
	return open(ctx, dir, clock, true, trusted)
}

// OpenState is Open for commands that need neither a valid definition nor git: Def or
// Git is nil if it is not available.
func OpenState(ctx context.Context, dir string, clock state.Clock) (*Rig, error) {
	return open(ctx, dir, clock, false, trusted)
}

func open(ctx context.Context, dir string, clock state.Clock, strict bool, check func(dir string, tree *state.Tree) error) (*Rig, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(abs, DirName)
	if info, err := os.Lstat(root); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s: %w", abs, ErrNoRig)
	}
	tree, err := state.Open(root)
	if errors.Is(err, state.ErrNoTree) && unborn(ctx, abs, root) {
		return nil, fmt.Errorf("%s: %w: %s has no state yet", abs, ErrNoRig, DirName)
	}
	if err == nil {
		err = check(abs, tree)
	}
	if err != nil {
		return nil, err
	}
	def, problems, err := LoadDefinition(filepath.Join(root, DefinitionName), definition.Options{ForceCount: true})
	copied := false
	if errors.Is(err, state.ErrNotFound) {
		// A stash or a clean has removed it, or another branch is checked out: the rig
		// continues with the definition of its last start.
		if again, p, e := LoadDefinition(tree.Abs(definitionCopy), definition.Options{ForceCount: true}); e == nil {
			def, problems, err, copied = again, p, nil, true
		}
	}
	if err == nil && len(problems.Errors()) > 0 {
		err = &DefinitionError{problems.Errors()}
	}
	if err != nil && strict {
		return nil, err
	}
	repo, err := git.Open(ctx, abs)
	if err != nil && strict {
		return nil, err
	}
	r := assemble(abs, tree, def, repo, clock)
	r.DefCopied = copied
	return r, nil
}

// unborn reports whether a .chipset came with a clone and was never initialised, as
// opposed to one whose state was lost: state/ is empty, and git has no record of a rig.
func unborn(ctx context.Context, dir, root string) bool {
	entries, err := os.ReadDir(filepath.Join(root, string(state.StateDir)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) || len(entries) > 0 {
		return false
	}
	repo, err := git.Open(ctx, dir)
	if err != nil {
		return errors.Is(err, git.ErrNotRepo)
	}
	return recorded(repo) == ""
}

// definitionCopy is the definition of the rig's last start.
const definitionCopy = state.RunDir + "/" + DefinitionName

func assemble(dir string, tree *state.Tree, def *definition.Definition, repo *git.Repo, clock state.Clock) *Rig {
	log := event.NewLog(tree, clock)
	r := &Rig{Dir: dir, Tree: tree, Def: def, Git: repo, Clock: clock, Events: log,
		Agents: agent.NewStore(tree, log), Beads: bead.NewStore(tree, log), Convoys: convoy.NewStore(tree, log),
		Queue: mergequeue.NewStore(tree, log), Dispatch: dispatch.NewStore(tree, log), Retire: retire.NewStore(tree, log),
		Handoffs: handoff.NewStore(tree, log), Incidents: incident.NewStore(tree, log), Pauses: pause.NewStore(tree, log), Spend: spend.NewStore(tree),
		Permissions: permission.NewStore(tree, log), Hooks: hook.NewStore(tree, log), boxes: map[state.AgentID]*mail.Mailbox{}}
	var limit int64
	if def != nil {
		limit = def.Mail.MaxSize
	}
	r.Sender = mail.NewSender(tree, r.Agents, clock, limit).WithLog(log)
	if root, err := filepath.EvalSymlinks(tree.Abs(".")); err == nil && repo != nil {
		repo.Own = filepath.Join(root, string(state.WorktreeDir))
	}
	return r
}

// LoadDefinition reads and checks a chipset.yaml.
func LoadDefinition(path string, opts definition.Options) (*definition.Definition, definition.Problems, error) {
	data, err := state.ReadOutside(path, definition.MaxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s: %w", path, state.ErrNotFound)
	}
	if err != nil {
		return nil, nil, err
	}
	if opts.ParseCommand == nil {
		opts.ParseCommand = process.ParseCommand
	}
	def, problems := definition.ParseWith(path, data, opts)
	return def, problems, nil
}

// CheckCommands are the options with which missing commands become warnings.
func CheckCommands() definition.Options {
	return definition.Options{LookPath: exec.LookPath, ParseCommand: process.ParseCommand}
}

// Mailbox returns the mailbox of an agent; always the same one for an agent, so that
// its cache is shared.
func (r *Rig) Mailbox(id state.AgentID) *mail.Mailbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.boxes[id]
	if b == nil {
		b = mail.NewMailbox(r.Tree, id).WithLog(r.Events)
		b.Follow(r.watcher)
		r.boxes[id] = b
	}
	return b
}

// Follow makes the stores and mailboxes read again only what the watcher reports as
// changed. It is for long-running processes.
func (r *Rig) Follow(w *state.Watcher) {
	r.mu.Lock()
	r.watcher = w
	for _, b := range r.boxes {
		b.Follow(w)
	}
	r.mu.Unlock()
	r.Agents.Follow(w)
	r.Beads.Follow(w)
	r.Convoys.Follow(w)
	r.Queue.Follow(w)
	r.Dispatch.Follow(w)
	r.Retire.Follow(w)
	r.Incidents.Follow(w)
	r.Pauses.Follow(w)
	r.Spend.Follow(w)
	r.Hooks.Follow(w)
}

// Slot returns the nudge slot of an agent.
func (r *Rig) Slot(id state.AgentID) nudge.Slot { return nudge.NewSlot(r.Tree, id, r.Events) }

// Role returns the id of the only agent with a role.
func (r *Rig) Role(role definition.Role) state.AgentID {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.named.def != r.Def || r.named.ids == nil {
		r.named = names{def: r.Def, ids: map[definition.Role]state.AgentID{}}
	}
	id, known := r.named.ids[role]
	if !known {
		id = state.AgentID(role)
		if r.Def != nil {
			for _, a := range r.Def.AgentsOf(role) {
				id = state.AgentID(a.ID)
				break
			}
		}
		r.named.ids[role] = id
	}
	return id
}

// names caches the results of Role, which every tick calls.
type names struct {
	def *definition.Definition
	ids map[definition.Role]state.AgentID
}

// Mayor returns the mayor's id.
func (r *Rig) Mayor() state.AgentID { return r.Role(definition.RoleMayor) }

// Witness returns the witness's id.
func (r *Rig) Witness() state.AgentID { return r.Role(definition.RoleWitness) }

// Refinery returns the refinery's id.
func (r *Rig) Refinery() state.AgentID { return r.Role(definition.RoleRefinery) }

// Name returns the rig's name in chipset.yaml, or its ID while that can't be read.
func (r *Rig) Name() string {
	if r.Def != nil && r.Def.Rig.Name != "" {
		return r.Def.Rig.Name
	}
	return string(r.Tree.RigID())
}

// Worktree returns the path of an agent's worktree.
func (r *Rig) Worktree(id state.AgentID) string {
	return r.Tree.Abs(state.WorktreeDir.Join(string(id)))
}

// Target returns the branch that work lands on: the one that the definition names, else,
// or if the definition can't be read, the repository's default.
func (r *Rig) Target(ctx context.Context) (git.Branch, error) {
	if r.Def != nil && r.Def.Merge.Target != "" {
		return git.ParseBranch(r.Def.Merge.Target)
	}
	return r.Git.DefaultTarget(ctx)
}
