package environment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/pause"
)

// Names of checks.
const (
	CheckDisk     = "disk"
	CheckRights   = "rights"
	CheckTarget   = "target"
	CheckBranches = "branches"
	CheckRemote   = "remote"
	CheckClient   = "client"
	CheckTest     = "test"
)

// Check is the result of one check before anything is started.
type Check struct {
	Name string `json:"check"`
	// Subject is what was checked: a branch, a remote, a client, a command line.
	Subject string `json:"subject,omitempty"`
	// Found says in a few words what was found.
	Found string `json:"found,omitempty"`
	// Fault is why nothing of Scope can start, zero if all is well.
	Fault fault.Fault `json:"fault,omitzero"`
	Scope pause.Scope `json:"scope,omitempty"`
	// Mend is a command line that mends it, or "".
	Mend string `json:"mend,omitempty"`
}

// OK reports whether nothing is wrong.
func (c *Check) OK() bool { return c.Fault.IsZero() }

const (
	// clientDeadline bounds the questions to a client, remoteDeadline those to a remote.
	clientDeadline, remoteDeadline = 10 * time.Second, 15 * time.Second
)

// Checks checks everything that agents need besides a worktree, in seconds and without a model: disk, permissions, target,
// remote, and each client that the definition or an unfinished bead names.
func Checks(ctx context.Context, r *rig.Rig) ([]Check, error) {
	workers, err := workers(r)
	if err != nil {
		return nil, err
	}
	checks := append(checkDisk(r), Target(ctx, r), checkBranches(ctx, r))
	var remote Check
	var wg sync.WaitGroup
	wg.Go(func() { remote = checkRemote(ctx, r) })
	clients := checkClients(ctx, r, workers)
	wg.Wait()
	if remote.Name != "" {
		checks = append(checks, remote)
	}
	return append(checks, clients...), ctx.Err()
}

// Clients checks each client that the definition or an unfinished bead names.
func Clients(ctx context.Context, r *rig.Rig) ([]Check, error) {
	workers, err := workers(r)
	if err != nil {
		return nil, err
	}
	return checkClients(ctx, r, workers), ctx.Err()
}

func checkClients(ctx context.Context, r *rig.Rig, workers []string) []Check {
	checks := make([]Check, len(workers))
	var wg sync.WaitGroup
	for i, worker := range workers {
		wg.Go(func() { checks[i] = checkClient(ctx, r, worker) })
	}
	wg.Wait()
	return checks
}

// Passes repeats a check that has failed, and reports whether it passes now. It does not repeat a test.
func Passes(ctx context.Context, r *rig.Rig, p *pause.Pause) bool {
	var again []Check
	switch p.Check {
	case CheckDisk, CheckRights:
		again = checkDisk(r)
	case CheckTarget:
		again = []Check{Target(ctx, r)}
	case CheckBranches:
		again = []Check{checkBranches(ctx, r)}
	case CheckRemote:
		again = []Check{checkRemote(ctx, r)}
	case CheckClient:
		again = Client(ctx, r, p.Scope)
	default:
		return false
	}
	return ctx.Err() == nil && !slices.ContainsFunc(again, func(c Check) bool { return !c.OK() })
}

// Client checks the client of a scope, with each worker that uses it.
func Client(ctx context.Context, r *rig.Rig, scope pause.Scope) (checks []Check) {
	workers, err := workers(r)
	if err != nil {
		return []Check{{Name: CheckClient, Scope: scope, Fault: fault.OfError(err, fault.ClientBroken)}}
	}
	for _, worker := range workers {
		if policy.Client(r.Def, worker) == scope {
			checks = append(checks, checkClient(ctx, r, worker))
		}
	}
	return checks
}

// workers returns the workers that the definition and the unfinished beads name.
func workers(r *rig.Rig) ([]string, error) {
	all := []string{r.Def.Worker.Default}
	beads, _, err := r.Beads.All()
	for i := range beads {
		if w := beads[i].Worker; w != "" && !beads[i].Status.Finished() && !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all, err
}

func checkDisk(r *rig.Rig) []Check {
	room := Check{Name: CheckDisk, Subject: r.Tree.Root()}
	d := DiskOf(r.Tree.Root())
	room.Found = d.String()
	if d.Critical() {
		room.fail(fault.DiskFull, "the disk of the rig is almost full: "+d.String(), "df -h "+r.Tree.Root())
	}
	rights := Check{Name: CheckRights, Subject: r.Git.CommonDir(), Found: "can be written"}
	for _, dir := range []string{r.Git.CommonDir(), r.Tree.Root(), r.Tree.Abs(state.StateDir)} {
		if err := unix.Access(dir, unix.W_OK); errors.Is(err, unix.EACCES) || errors.Is(err, unix.EROFS) {
			rights.Subject = dir
			rights.fail(fault.NoPermission, fmt.Sprintf("%s can't be written: %v", dir, err), "ls -ld "+dir)
			break
		}
	}
	return []Check{room, rights}
}

// Target checks the branch that work lands on.
func Target(ctx context.Context, r *rig.Rig) Check {
	c := Check{Name: CheckTarget}
	target, err := r.Target(ctx)
	c.Subject = string(target)
	if err == nil {
		err = TargetLost(ctx, r)
	}
	var lost *state.Corruption
	if errors.As(err, &lost) {
		c.fail(fault.TargetGone, fmt.Sprintf("the target branch %s %s", target, lost.Reason), "chipset doctor --fix")
		return c
	}
	if err == nil {
		tip, found, refErr := r.Git.ResolveRef(ctx, target.Ref())
		if c.Found = tip.Short(); refErr == nil && found {
			return c
		}
		err = refErr
	}
	if err != nil {
		c.fail(fault.TargetGone, "the target branch can't be read: "+err.Error(), "chipset doctor")
		return c
	}
	c.fail(fault.TargetGone, fmt.Sprintf("there is no branch %s, on which work lands (merge.target)", target), "git branch "+string(target))
	return c
}

// checkBranches checks that git can make the branches of workers: a branch with the name of their folder leaves no room for them.
func checkBranches(ctx context.Context, r *rig.Rig) Check {
	folder := strings.TrimSuffix(rig.WorkRefs, "/")
	name := strings.TrimPrefix(folder, "refs/heads/")
	c := Check{Name: CheckBranches, Subject: name + "/", Found: "can be made"}
	if _, found, err := r.Git.ResolveRef(ctx, git.Ref(folder)); err == nil && found {
		c.fail(fault.WorktreeFailed, fmt.Sprintf("git can't make branches %s/… for workers beside a branch named %s", name, name), fmt.Sprintf("git branch -m %s NEW-NAME", name))
	}
	return c
}

// checkRemote asks for the permission to push, and pushes nothing.
func checkRemote(ctx context.Context, r *rig.Rig) Check {
	remote := r.Def.Merge.Remote
	target, err := r.Target(ctx)
	if remote == "" || err != nil {
		return Check{}
	}
	c := Check{Name: CheckRemote, Subject: remote, Found: "takes pushes"}
	ctx, cancel := context.WithTimeout(ctx, remoteDeadline)
	defer cancel()
	if err := r.Git.CanPush(ctx, remote, target); err != nil {
		c.fail(fault.RemoteGone, fmt.Sprintf("the remote %s does not take pushes: %v", remote, err), fmt.Sprintf("git push --dry-run %s %s", remote, target))
		if errors.Is(err, git.ErrNoRemote) {
			c.fail(fault.RemoteGone, fmt.Sprintf("there is no remote %s (merge.remote)", remote), "git remote add "+remote+" URL")
		}
	}
	return c
}

func checkClient(ctx context.Context, r *rig.Rig, worker string) Check {
	c := Check{Name: CheckClient, Subject: worker}
	preset, err := agentcli.ResolveWorker(worker, clients.PresetsOf(r.Def))
	if err != nil {
		c.fail(fault.BadWorker, fmt.Sprintf("the worker %q can't be run: %v", worker, err), "chipset runtime list")
		c.Scope = policy.Client(r.Def, worker)
		return c
	}
	home, _ := os.UserHomeDir() // without one nothing of a client is found there
	client := clients.Of(preset)
	ready := agentcli.Ready(ctx, &client, preset, agentcli.Surroundings{Home: home, Environ: clients.Inherit(os.Environ()), Permission: r.Def.Worker.Permissions}, clientDeadline)
	c.Found = ready.Path
	if ready.Version != "" {
		c.Found = ready.Version + ", " + ready.Path
	}
	c.Fault, c.Mend = ready.Fault, ready.Mend
	if c.Fault.Kind == fault.ClientMissing && preset.Name == preset.Command[0] && !strings.Contains(preset.Name, "/") && client.Preset.Name != preset.Name {
		c.Fault, c.Mend = fault.New(fault.ClientMissing, fmt.Sprintf("no preset and no command is called %q", preset.Name)), "chipset validate"
	}
	if !c.OK() {
		c.Scope = policy.Client(r.Def, worker)
	}
	return c
}

// Pause pauses the scope of a check that has failed, and stores what mends it for the person. It is durable when it returns nil.
func (c *Check) Pause(ctx context.Context, r *rig.Rig) error {
	if c.OK() {
		return nil
	}
	return r.Pauses.Change(ctx, c.Scope, func(p *pause.Pause) error {
		p.Find(c.Name, c.Mend, c.Fault, r.Clock.Now())
		return nil
	})
}

func (c *Check) fail(kind fault.Kind, reason, mend string) {
	c.Fault, c.Mend = fault.New(kind, reason), mend
	c.Scope = pause.Of(kind, "")
}
