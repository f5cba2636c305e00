package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/repair"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/event"
)

// InitOptions are the options of Init.
type InitOptions struct {
	// Dir is any folder of the repository.
	Dir string
	// Template fills chipset.yaml, if the repository has none yet.
	Template definition.TemplateOptions
	// TemplateGiven is true if the person has chosen options of the template, which an
	// existing chipset.yaml would silently override.
	TemplateGiven bool
	// TrackState leaves state/ visible to git add.
	TrackState bool
	// Restore is the snapshot of a lost rig that is restored, or nil.
	Restore *Snapshot
	// Anew makes a new rig in place of a lost one.
	Anew  bool
	Clock state.Clock
}

// Init makes a rig in the repository around opts.Dir: one per repository, a
// second is an ErrConflict. An existing chipset.yaml is kept and used. Everything
// is durable when it returns nil; after a crash, another Init or the first start
// completes it. Errors: *LostError if a rig was lost, unless the options say what
// to do.
func Init(ctx context.Context, opts InitOptions) (*Rig, error) {
	repo, err := git.Open(ctx, opts.Dir)
	if err != nil {
		return nil, err
	}
	if err := repo.Check(ctx); err != nil {
		return nil, err
	}
	dir := repo.TopLevel()
	root := filepath.Join(dir, DirName)
	alone, err := lockInit(repo)
	if err != nil {
		return nil, err
	}
	defer alone.Close()
	if err := unused(repo, root); err != nil {
		return nil, err
	}
	if opts.Restore == nil && !opts.Anew {
		if err := lost(repo); err != nil {
			return nil, err
		}
	}
	if err := state.MkdirOutside(root); err != nil {
		return nil, err
	}
	def, err := initDefinition(filepath.Join(root, DefinitionName), opts)
	if err != nil {
		return nil, err
	}
	if err := writeIgnore(filepath.Join(root, ".gitignore")); err != nil {
		return nil, err
	}
	if err := exclude(repo, opts.TrackState); err != nil {
		return nil, err
	}
	// Before the tree: git must name it, or it is not trusted.
	id := state.NewRigID()
	if opts.Restore != nil {
		id = opts.Restore.Rig
	}
	if err := rememberID(repo, id); err != nil {
		return nil, err
	}
	tree, err := state.CreateAs(root, id)
	if err != nil {
		return nil, err
	}
	if opts.Restore != nil {
		if err := opts.Restore.fill(tree); err != nil {
			return nil, err
		}
	}
	r := assemble(dir, tree, def, repo, opts.Clock)
	if err := remember(repo, dir, tree.RigID()); err != nil {
		return nil, err
	}
	if err := r.keepDefinition(); err != nil {
		return nil, err
	}
	if err := r.Sync(ctx, def); err != nil {
		return nil, err
	}
	r.Events.Tell(event.RigCreated(tree.RigID(), dir))
	return r, nil
}

const ignoreFile = `# Written by chipset init. state/ is kept out of commits by .git/info/exclude
# (or tracked, if you said --track-state); these never belong into one.
run/
logs/
worktrees/
.tmp-*
.*.json[0-9]*
*.json.tmp
`

// writeIgnore keeps an existing file: the person may have committed it with
// changes, and .git/info/exclude has the same rules.
func writeIgnore(path string) error {
	_, err := os.Lstat(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return state.ReplaceOutside(path, []byte(ignoreFile))
}

// lockInit makes other inits of the repository wait until the file is closed.
func lockInit(repo *git.Repo) (*os.File, error) {
	f, err := os.Open(repo.CommonDir())
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	return f, nil
}

func unused(repo *git.Repo, root string) error {
	if _, err := os.Lstat(filepath.Join(root, "state", "rig.json")); err == nil {
		if id, err := rememberedID(filepath.Dir(root)); err != nil || id == "" {
			return errors.Join(err, fmt.Errorf("%s: %w: its files came with the repository", filepath.Dir(root), ErrUntrusted))
		}
		return state.Conflictf("init", "there is already a rig in %s", filepath.Dir(root))
	}
	if dir := recorded(repo); dir != "" {
		if _, err := os.Lstat(filepath.Join(dir, DirName, "state", "rig.json")); err == nil {
			return state.Conflictf("init", "this repository already has a rig, in %s", dir)
		}
	}
	if info, err := os.Lstat(root); err == nil && !info.IsDir() {
		return state.Conflictf("init", "%s is in the way and is not a folder", root)
	}
	return nil
}

func initDefinition(path string, opts InitOptions) (*definition.Definition, error) {
	_, err := os.Lstat(path)
	switch {
	case err == nil && opts.TemplateGiven:
		return nil, state.Conflictf("init", "%s exists: edit it, or run init without options to use it as it is", path)
	case errors.Is(err, fs.ErrNotExist):
		if err := state.ReplaceOutside(path, definition.Template(opts.Template)); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	}
	def, problems, err := LoadDefinition(path, definition.Options{ForceCount: true})
	if err != nil {
		return nil, err
	}
	if bad := problems.Errors(); len(bad) > 0 {
		return nil, &DefinitionError{bad}
	}
	return def, nil
}

// excludeLines returns the rules of the live tree; without the last one if the
// person commits state/ themselves.
func excludeLines(trackState bool) []string {
	lines := []string{"/.chipset/run/", "/.chipset/logs/", "/.chipset/worktrees/", stateRule}
	if trackState {
		return lines[:3]
	}
	return lines
}

// exclude keeps the live tree out of everything that git does in the checkout: a
// stash, a clean or another branch must not remove it.
func exclude(repo *git.Repo, trackState bool) error {
	return addExcludes(repo, "the live state of the rig", excludeLines(trackState))
}

// Exclude makes git ignore untracked paths of the checkout and of every worktree. Durable when it returns nil.
func (r *Rig) Exclude(ctx context.Context, paths []string) error {
	var lines []string
	for _, path := range paths {
		lines = append(lines, "/"+strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, " ", `\ `).Replace(path))
	}
	lock, err := r.Tree.Lock(ctx, state.LockGit, "exclude")
	if err != nil {
		return err
	}
	defer lock.Unlock()
	return addExcludes(r.Git, "what worktrees get from the checkout", lines)
}

// TrackState removes the state tree from git's exclude file, so that git add sees it. Durable when it returns nil.
func (r *Rig) TrackState(ctx context.Context) error {
	lock, err := r.Tree.Lock(ctx, state.LockGit, "exclude")
	if err != nil {
		return err
	}
	defer lock.Unlock()
	path := r.Git.ExcludePath()
	data, err := state.ReadOutside(path, maxGitFile)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	kept := slices.DeleteFunc(strings.SplitAfter(string(data), "\n"), func(line string) bool { return strings.TrimSpace(line) == stateRule })
	return state.ReplaceOutside(path, []byte(strings.Join(kept, "")))
}

// stateRule excludes the state tree.
const stateRule = "/.chipset/state/"

// addExcludes adds the missing rules to the ignore rules of this clone.
func addExcludes(repo *git.Repo, why string, lines []string) error {
	path := repo.ExcludePath()
	data, err := state.ReadOutside(path, maxGitFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text := string(data)
	present := map[string]bool{}
	for line := range strings.SplitSeq(text, "\n") {
		present[strings.TrimSpace(line)] = true
	}
	var add strings.Builder
	for _, line := range lines {
		if !present[line] {
			add.WriteString(line + "\n")
		}
	}
	if add.Len() == 0 {
		return nil
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if err := state.MkdirOutside(filepath.Dir(path)); err != nil {
		return err
	}
	return state.ReplaceOutside(path, []byte(text+"# chipset: "+why+"\n"+add.String()))
}

// Sync makes the registered agents those of a definition. New ones get a hook and
// then an identity, because a registered agent without a hook counts as corrupt.
// Agents that are no longer named are retired, and retired ones that are named
// again are revived. Durable when it returns nil.
func (r *Rig) Sync(ctx context.Context, def *definition.Definition) error {
	now := r.Clock.Now()
	named := map[state.AgentID]bool{state.Human: true}
	if err := r.register(ctx, state.Human, agent.Human, def.Rig.Name, nil); err != nil {
		return err
	}
	for _, a := range def.Agents() {
		id, err := state.ParseAgentID(a.ID)
		if err != nil {
			return err
		}
		named[id] = true
		if err := r.register(ctx, id, agent.Role(a.Role), def.Rig.Name, a.Skills); err != nil {
			return fmt.Errorf("agent %s: %w", id, err)
		}
	}
	return r.retireUnnamed(ctx, named, now)
}

func (r *Rig) register(ctx context.Context, id state.AgentID, role agent.Role, rigName string, skills []string) error {
	now := r.Clock.Now()
	known, err := r.Tree.Exists(r.Agents.Path(string(id)))
	if err != nil {
		return err
	}
	if !known {
		if err := r.Hooks.Ensure(ctx, id, now); err != nil {
			return err
		}
	}
	_, err = r.Agents.Register(ctx, id, role, rigName, skills, now)
	return err
}

// RegisterNamed registers one agent that the rig's definition names, or the
// person, and leaves all others as they are. Durable when it returns nil.
// Errors: state.ErrNotFound for an agent that is not named.
func (r *Rig) RegisterNamed(ctx context.Context, id state.AgentID) error {
	lock, err := r.Tree.Lock(ctx, state.LockRecord, "definition")
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if id == state.Human {
		return r.register(ctx, id, agent.Human, r.Def.Rig.Name, nil)
	}
	for _, a := range r.Def.Agents() {
		if a.ID == string(id) {
			return r.register(ctx, id, agent.Role(a.Role), r.Def.Rig.Name, a.Skills)
		}
	}
	return fmt.Errorf("%s in %s: %w", id, DefinitionName, state.ErrNotFound)
}

func (r *Rig) retireUnnamed(ctx context.Context, named map[state.AgentID]bool, now state.Time) error {
	all, _, err := r.Agents.All()
	if err != nil {
		return err
	}
	for _, a := range all {
		// A helper belongs to its parent, and is never in the definition.
		if named[a.ID] || a.Status == agent.Retired || a.Parent != "" {
			continue
		}
		if _, alive := r.Alive(a.ID); alive {
			continue // it is still running; the next start retires it
		}
		if err := r.reportUnread(ctx, &a); err != nil {
			return err
		}
		if err := r.Agents.Retire(ctx, a.ID, "no longer in the definition", now); err != nil {
			return err
		}
	}
	return nil
}

// reportUnread tells the person about mail that an agent will not read because it
// is about to be retired. It is sent before the retirement, because after a crash
// nobody would send it; its id keeps it from being sent twice.
func (r *Rig) reportUnread(ctx context.Context, a *agent.Agent) error {
	unread, _, err := r.Mailbox(a.ID).Unread()
	if err != nil || len(unread) == 0 {
		return err
	}
	var body strings.Builder
	fmt.Fprintf(&body, "The definition no longer names %s; these stay unread in its mailbox:\n\n", a.ID)
	for _, e := range unread[:min(len(unread), maxReported)] {
		fmt.Fprintf(&body, "- %s: %.100q\n", e.Name, e.Subject)
	}
	if n := len(unread) - maxReported; n > 0 {
		fmt.Fprintf(&body, "- and %d more\n", n)
	}
	m := mail.Message{From: r.Mayor(), To: state.Human, Type: mail.Coordination, Body: body.String(),
		Subject: fmt.Sprintf("%s is retired with %d unread messages", a.ID, len(unread)), ID: "retired-" + string(a.ID) + "-" + a.UpdatedAt.Stamp()}
	_, err = r.Sender.Send(ctx, m)
	if errors.Is(err, state.ErrTooLarge) {
		m.Body = "chipset mail inbox " + string(a.ID) + " --unread lists them.\n"
		_, err = r.Sender.Send(ctx, m)
	}
	return err
}

// maxReported bounds how many messages are listed.
const maxReported = 20

// Prepare makes a rig ready to run: it completes an interrupted init, and makes the
// registered agents those of def.
func (r *Rig) Prepare(ctx context.Context, def *definition.Definition) error {
	// First, because everything else needs these folders for its locks.
	if err := r.clearWays(ctx); err != nil {
		return err
	}
	// Without a journal a power cut can leave state files with a second name, and
	// such files are not read.
	if _, err := r.Tree.BreakAllHardLinks(r.Git.CommonDir()); err != nil {
		return err
	}
	if recorded(r.Git) != r.Dir {
		if err := r.Settle(); err != nil {
			return err
		}
	}
	if err := r.freeRefFolders(ctx); err != nil {
		return err
	}
	// Git takes the empty files that a power cut leaves for the objects themselves,
	// and a worker that makes the same object again would build on nothing.
	if err := repair.RemoveEmptyObjects(r.Git); err != nil {
		return err
	}
	lock, err := r.Tree.Lock(ctx, state.LockRecord, "definition")
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := r.keepDefinition(); err != nil {
		return err
	}
	return r.Sync(ctx, def)
}

// SnapshotRefs is the folder of refs on which snapshots of the state tree stand until their branch holds them.
const SnapshotRefs = "refs/chipset/snapshot/"

// WorkRefs is the folder of the workers' branches.
const WorkRefs = "refs/heads/polecat/"

// RefFolders returns the folders of refs that the rig makes in the repository.
func RefFolders() []string {
	return []string{WorkRefs, "refs/chipset/", "refs/chipset/salvage/", "refs/chipset/landed/", SnapshotRefs}
}

// freeRefFolders sets aside what a power cut left in place of the rig's refs.
func (r *Rig) freeRefFolders(ctx context.Context) error {
	paths, err := repair.Obstacles(ctx, r.Git, RefFolders()...)
	for _, path := range paths {
		_, asideErr := repair.SetAside(r.Git, path)
		err = errors.Join(err, asideErr)
	}
	return err
}

// keepDefinition keeps a copy of chipset.yaml where no stash or clean of the
// checkout can remove it.
func (r *Rig) keepDefinition() error {
	data, err := state.ReadOutside(r.Tree.Abs(DefinitionName), definition.MaxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if kept, err := r.Tree.Read(definitionCopy, definition.MaxSize); err == nil && bytes.Equal(kept, data) {
		return nil
	}
	return r.Tree.Replace(definitionCopy, data)
}
