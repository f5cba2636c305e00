package execute

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/process/broker"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
)

// spec makes the folders that the supervisor expects, writes the prompt, and
// says how the command is run.
func (p *Polecat) spec(ctx context.Context, w *worker, run agentcli.Invocation, item hook.WorkItem) (process.Spec, error) {
	record, log := rig.ExitRecord(item.Session), workerLog(item.Session)
	for _, dir := range []state.Path{record.Dir(), log.Dir()} {
		if err := p.Rig.Tree.MkdirAll(dir); err != nil {
			return process.Spec{}, err
		}
	}
	if run.File != "" {
		if err := p.Rig.Tree.Replace(promptFile(item.Session), []byte(run.Content)); err != nil {
			return process.Spec{}, err
		}
	}
	identity, err := p.Rig.Git.IdentityEnv(ctx, string(p.ID))
	if err != nil {
		return process.Spec{}, err
	}
	folder, err := broker.Folder()
	if err != nil {
		return process.Spec{}, err
	}
	address := broker.NewAddress(folder).String()
	who := append(p.identity(item), broker.EnvAddress+"="+address)
	kit, err := p.equip(w, run.Argv, item, who)
	if err != nil {
		return process.Spec{}, err
	}
	client := clients.Of(w.preset)
	show := append(linked(p.Rig), p.Rig.Tree.Abs(promptFile(item.Session)))
	for name := range kit.Files {
		show = append(show, p.Rig.Tree.Abs(clientFile(item.Session, name)))
	}
	preset := append(kit.Env, run.Env...)
	box, moved, err := p.confineWorker(&client, item.Session, show, preset)
	if err != nil {
		return process.Spec{}, err
	}
	env := p.environment(surroundings{bin: p.binDir(), identity: identity, preset: append(preset, moved...),
		inherited: variables(p.Rig, ownEnvironment(), client.Keys)}, who)
	return process.Spec{ID: string(item.Session), Argv: kit.Argv, Dir: p.Rig.Worktree(p.ID), Env: env, Sandbox: box,
		Stdin: run.Stdin, Log: p.Rig.Tree.Abs(log), Record: p.Rig.Tree.Abs(record), Timeout: run.Timeout, Grace: p.Rig.Def.Worker.Grace,
		Limits: p.Rig.Limits(),
		Settle: true, Broker: &process.Broker{Address: address, Dir: p.Rig.Dir, Env: ownEnvironment(), MaxCalls: p.Rig.Def.Limits.Commands}}, nil
}

// exceeded says what a command had used too much of when it was ended, or "".
func exceeded(x process.Exit) string {
	switch x.Over {
	case process.OverDisk:
		return "its worktree and temporary files take more than limits.disk"
	case process.OverMemory:
		return "its processes take more memory than limits.memory"
	case process.OverTasks:
		return "it has more processes and threads than limits.tasks"
	}
	return ""
}

// binDir is a folder in which "chipset" is this very binary, whatever its file
// is called and whatever else lies beside it.
func (p *Polecat) binDir() string {
	link := state.RunDir.Join("bin", "chipset")
	if err := p.Rig.Tree.Symlink(link, p.Self); err != nil {
		p.Say("%s: %v", p.ID, err)
		return filepath.Dir(p.Self)
	}
	return p.Rig.Tree.Abs(link.Dir())
}

// ownEnvironment is that of this process without what would lead git or another
// chipset astray.
func ownEnvironment() []string {
	return slices.DeleteFunc(clients.Inherit(git.Environment(os.Environ())), func(entry string) bool {
		return strings.HasPrefix(entry, "CHIPSET_")
	})
}

// surroundings are what a worker's environment is made of, apart from who it is.
type surroundings struct {
	// bin is the folder with its chipset.
	bin string
	// inherited is what it may have of this process's own environment.
	inherited, identity, preset []string
}

// environment is the worker's: what it inherits, then the preset's, then who it is. Each name stands once, because programs differ in which of two they believe.
func (p *Polecat) environment(from surroundings, who []string) []string {
	var env []string
	set := func(entries ...string) {
		for _, entry := range entries {
			name, _, _ := strings.Cut(entry, "=")
			env = slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
			env = append(env, entry)
		}
	}
	path := ""
	for _, entry := range from.inherited {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value
		}
		set(entry)
	}
	set(from.identity...)
	set(from.preset...)
	for _, entry := range from.preset {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value
		}
	}
	// The worker's chipset is this very binary.
	set("PATH=" + strings.TrimSuffix(from.bin+string(os.PathListSeparator)+path, string(os.PathListSeparator)))
	set(who...)
	return env
}
