package repair

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/internal/gitfile"
)

// Known is what the caller knows about a linked worktree. All fields may be empty.
type Known struct {
	Branch git.Branch // that was checked out
	Base   git.Hash   // where the branch began
	// Own is true if the folder is the rig's: it counts as a worktree even if neither git nor a file .git in it says so.
	Own bool
}

// Damage is a file of git's for a linked worktree that is torn, missing or garbage.
type Damage struct {
	Path   string // absolute
	Reason string
	// Unknown is true if git had no registration of the worktree at all, so only its files show what it holds.
	Unknown bool
	// Lost is true for HEAD, and the branch or commit that it names: the last commits may be lost.
	Lost bool
}

func (d Damage) String() string { return d.Path + ": " + d.Reason }

// worktree is a linked worktree and its damage.
type worktree struct {
	repo  *git.Repo
	path  string // without symlinks
	admin string // its folder below .git/worktrees, or ""
	// replaced is true if a worker made a repository of its own there.
	replaced bool
	gone     bool   // the folder is missing, or holds no work
	head     string // the content of HEAD, if it can be used, perhaps after its branch is restored
	damage   []Damage
}

func (w *worktree) add(reason string, path ...string) {
	w.damage = append(w.damage, Damage{Path: filepath.Join(path...), Reason: reason})
}

func (w *worktree) lost(reason string, path ...string) {
	w.add(reason, path...)
	w.damage[len(w.damage)-1].Lost = true
}

// CheckWorktree lists the damage of the linked worktree at path: in the file .git in it, and in its folder below
// .git/worktrees. For a missing path, and one where nothing was ever checked out, that is at most a registration that
// stops git. A folder that neither git nor known tells about, one with a repository of its own where git never had a
// worktree, and the target of a link have no damage: they are somebody's own.
func CheckWorktree(ctx context.Context, r *git.Repo, path string, known Known) ([]Damage, error) {
	w, err := examine(ctx, r, path, known)
	if err != nil {
		return nil, fmt.Errorf("check worktree %s: %w", path, err)
	}
	return w.damage, nil
}

// Worktree makes the linked worktree at path usable again, and returns its damage. It sets the registration aside
// and makes a new one; a repository in the place of .git is set aside too. No file of the work is changed: they become changes against HEAD, which is the old one if it can be
// read, else the newest commit in the reflog, else known.Base, else HEAD of the main worktree. It is durable
// when it returns nil, and may be repeated after a kill. Nobody may work in the worktree meanwhile.
func Worktree(ctx context.Context, r *git.Repo, path string, known Known) ([]Damage, error) {
	w, err := examine(ctx, r, path, known)
	if err == nil && len(w.damage) > 0 {
		err = w.remake(ctx, known)
	}
	if err != nil {
		return nil, fmt.Errorf("repair worktree %s: %w", path, err)
	}
	return w.damage, nil
}

// Relink makes the linked worktree at path and its registration point to each other again, after the repository was moved
// or copied together with the worktree. It writes nothing outside the two, wherever their old links
// point. It is durable when it returns nil. A folder without a registration of its name is left alone.
func Relink(r *git.Repo, path string) error {
	w := &worktree{repo: r}
	var err error
	if w.path, err = gitfile.RealPath(path); err != nil {
		return err
	}
	target, err := gitfile.LinkTarget(w.path)
	if err != nil {
		return nil //nolint:nilerr // torn, or not a worktree: that is for Worktree
	}
	admin := filepath.Join(w.registry(), filepath.Base(target))
	link, err := gitfile.ReadLine(filepath.Join(admin, "gitdir"))
	if err != nil || filepath.Base(filepath.Dir(link)) != filepath.Base(w.path) || w.leadsElsewhere(admin) && !w.isLink(link) {
		return nil //nolint:nilerr // as above
	}
	if !gitfile.LinksTo(w.path, admin) {
		err = gitfile.Write(filepath.Join(w.path, ".git"), "gitdir: "+admin+"\n")
	}
	if err == nil && !w.isLink(link) {
		err = gitfile.Write(filepath.Join(admin, "gitdir"), filepath.Join(w.path, ".git")+"\n")
	}
	return err
}

func examine(ctx context.Context, r *git.Repo, path string, known Known) (*worktree, error) {
	w := &worktree{repo: r}
	if info, err := os.Lstat(path); err == nil && !info.IsDir() {
		return w, nil
	}
	var err error
	if w.path, err = gitfile.RealPath(path); err != nil || w.path == r.TopLevel() {
		return w, err
	}
	entries, err := os.ReadDir(w.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return w, err
	}
	w.gone = !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != ".git" })
	if w.admin, err = w.findAdmin(); err != nil {
		return w, err
	}
	link, linkErr := os.Lstat(filepath.Join(w.path, ".git"))
	switch {
	case linkErr == nil && link.IsDir() && (w.admin == "" || known == (Known{})):
		return w, nil // somebody's own
	case linkErr == nil && link.IsDir(): // made in a worktree of this repository, in the place of its file .git
		w.replaced = true
		w.add("is a repository of its own", w.path, ".git")
	case w.admin == "" && (w.gone || linkErr != nil && known == (Known{})):
		return w, nil // nothing to save, or not the rig's
	case w.admin == "":
		w.lost("git has no record of this worktree", w.registry(), filepath.Base(w.path))
		w.damage[0].Unknown = true
		return w, nil
	}
	if common, err := gitfile.ReadLine(filepath.Join(w.admin, "commondir")); err != nil || !w.isCommon(common) {
		w.add("does not lead to "+r.CommonDir(), w.admin, "commondir")
	}
	if w.gone {
		return w, w.examineGone(ctx)
	}
	return w, w.examineAdmin(ctx)
}

// examineGone looks only for what keeps git from reading the registration, because the next preparation makes a new one. If
// nothing was ever checked out, nothing is lost with it.
func (w *worktree) examineGone(ctx context.Context) error {
	if err := w.examineHead(ctx); err != nil {
		return err
	}
	history, complete, err := reflog(filepath.Join(w.admin, "logs", "HEAD"))
	for i := range w.damage {
		w.damage[i].Lost = w.damage[i].Lost && (!complete || len(history) > 1)
	}
	return err
}

func (w *worktree) examineAdmin(ctx context.Context) error {
	if link, err := gitfile.ReadLine(filepath.Join(w.admin, "gitdir")); err != nil || !w.isLink(link) {
		w.add("does not lead to "+w.path, w.admin, "gitdir")
	}
	if err := w.examineHead(ctx); err != nil {
		return err
	}
	reason := tornIndex(filepath.Join(w.admin, "index"))
	if reason == unsummed {
		if _, err := w.repo.In(w.path).Run(ctx, git.Command{Args: []string{"ls-files", "--stage"}, Read: true}); err == nil {
			reason = ""
		}
	}
	if reason != "" {
		w.add(reason, w.admin, "index")
	}
	logs, logsErr := os.Lstat(filepath.Join(w.admin, "logs"))
	reflog, reflogErr := os.Lstat(filepath.Join(w.admin, "logs", "HEAD"))
	if logsErr == nil && !logs.IsDir() || reflogErr == nil && !reflog.Mode().IsRegular() {
		w.add("git can't write it", w.admin, "logs", "HEAD")
	}
	if !gitfile.LinksTo(w.path, w.admin) {
		w.add("does not lead to "+w.admin, w.path, ".git")
	}
	return nil
}

func (w *worktree) registry() string { return filepath.Join(w.repo.CommonDir(), "worktrees") }

// findAdmin finds the worktree's registration in three ways, because each may be torn: in git's registry, by the worktree's file
// .git, and by its name. If there is none, it completes a repair that was killed.
func (w *worktree) findAdmin() (string, error) {
	// There may be a file in the place of the registry.
	if admin, err := w.repo.In(w.path).GitDir(); err == nil || !errors.Is(err, git.ErrNotWorktree) && !errors.Is(err, syscall.ENOTDIR) {
		return admin, err
	}
	candidates := []string{filepath.Join(w.registry(), filepath.Base(w.path))}
	if target, err := gitfile.LinkTarget(w.path); err == nil && filepath.Dir(target) == w.registry() {
		candidates = append([]string{target}, candidates...)
	}
	for _, admin := range candidates {
		if info, err := os.Lstat(admin); err == nil && info.IsDir() && !w.leadsElsewhere(admin) {
			return admin, nil
		}
	}
	if link, err := gitfile.ReadLine(filepath.Join(w.fresh(), "gitdir")); err != nil || !w.isLink(link) {
		return "", nil //nolint:nilerr // no repair was killed
	}
	return candidates[len(candidates)-1], w.replaceAdmin(candidates[len(candidates)-1])
}

// leadsElsewhere reports whether a registration belongs to another worktree that points to it.
func (w *worktree) leadsElsewhere(admin string) bool {
	link, err := gitfile.ReadLine(filepath.Join(admin, "gitdir"))
	return err == nil && filepath.IsAbs(link) && filepath.Base(link) == ".git" && gitfile.LinksTo(filepath.Dir(link), admin)
}

func (w *worktree) isLink(link string) bool {
	at, err := gitfile.RealPath(filepath.Dir(link))
	return err == nil && at == w.path && filepath.Base(link) == ".git"
}

func (w *worktree) isCommon(common string) bool {
	if !filepath.IsAbs(common) {
		common = filepath.Join(w.admin, common)
	}
	real, err := gitfile.RealPath(common)
	return err == nil && real == w.repo.CommonDir()
}

// examineHead finds a HEAD that is torn, or whose branch or commit is missing. A branch without commits is
// not damage.
func (w *worktree) examineHead(ctx context.Context) error {
	file := filepath.Join(w.admin, "HEAD")
	text, err := gitfile.ReadLine(file)
	name, symbolic := strings.CutPrefix(text, "ref: ")
	if err == nil && symbolic {
		var ref git.Ref
		if ref, err = git.ParseRef(name); err == nil {
			w.head = text
			reason, err := brokenReason(ctx, w.repo, ref)
			if reason != "" {
				w.lost(reason, w.repo.CommonDir(), filepath.FromSlash(name))
			}
			return err
		}
	}
	h, notHash := git.ParseHash(text)
	if notHash != nil || h.IsZero() { // nothing that could be read is no hash either
		w.lost("names neither a branch nor a commit", file)
		return nil
	}
	whole, err := w.repo.HasCommit(ctx, h)
	if err == nil && !whole {
		w.lost("names the commit "+h.Short()+", which is not there", file)
	}
	w.head = text
	if !whole {
		w.head = ""
	}
	return err
}

// remake sets the registration aside and makes a new one, but none for a folder without work.
func (w *worktree) remake(ctx context.Context, known Known) error {
	if err := w.makeRegistry(); err != nil {
		return err
	}
	if w.replaced {
		kept, err := SetAside(w.repo, filepath.Join(w.path, ".git"))
		if err != nil {
			return err
		}
		w.add("is kept as "+kept, w.path, ".git")
	}
	if w.gone {
		return w.forget(ctx)
	}
	admin := w.admin
	if admin == "" {
		admin = filepath.Join(w.registry(), filepath.Base(w.path))
		for n := 1; w.leadsElsewhere(admin); n++ {
			admin = filepath.Join(w.registry(), filepath.Base(w.path)+fmt.Sprint(n))
		}
	}
	head, err := w.newHead(ctx, known)
	if err != nil {
		return err
	}
	if err := w.writeFresh(head); err != nil {
		return err
	}
	// The new registration is complete, so a kill from here on loses nothing.
	if err := w.setAside(admin); err != nil {
		return err
	}
	if err := w.replaceAdmin(admin); err != nil {
		return err
	}
	if err := gitfile.Write(filepath.Join(w.path, ".git"), "gitdir: "+admin+"\n"); err != nil {
		return err
	}
	return w.readTree(ctx)
}

// forget sets aside the registration of a folder without work. If its newest commit is on no ref, it gets a
// salvage ref.
func (w *worktree) forget(ctx context.Context) error {
	last, _, err := newestCommit(ctx, w.repo, filepath.Join(w.admin, "logs", "HEAD"))
	if err != nil {
		return err
	}
	if last != "" {
		held, err := w.repo.Run(ctx, git.Command{Args: []string{"for-each-ref", "--count=1", "--contains", string(last)}, Read: true})
		if err != nil {
			return err
		}
		ref := git.Ref("refs/chipset/salvage/worktree-" + filepath.Base(w.admin) + "-" + last.Short())
		if len(held) == 0 {
			err = w.repo.UpdateRef(ctx, ref, last, "")
		}
		if err != nil {
			return err
		}
	}
	if err := gitfile.Remove(filepath.Join(w.path, ".git")); err != nil && !errors.Is(err, syscall.ENOTDIR) {
		return err
	}
	return w.setAside(w.admin)
}

// fresh returns where the new registration is built, so that git sees it complete or not at all.
func (w *worktree) fresh() string {
	return filepath.Join(w.repo.CommonDir(), "chipset-aside", "new-"+filepath.Base(w.path))
}

// operations returns the files with commits that an operation in progress has besides HEAD.
func operations() []string {
	return []string{"MERGE_HEAD", "rebase-merge/orig-head", "rebase-apply/orig-head"}
}

func (w *worktree) writeFresh(head string) error {
	if err := os.RemoveAll(w.fresh()); err != nil { //nolint:forbidigo // left by a repair that was killed
		return err
	}
	files := map[string]string{"HEAD": head, "commondir": "../.."}
	for _, name := range operations() {
		h, err := gitfile.ReadLine(filepath.Join(w.admin, name))
		if _, notHash := git.ParseHash(h); w.admin != "" && err == nil && notHash == nil {
			files[name] = h
		}
	}
	for name, text := range files {
		if err := gitfile.Write(filepath.Join(w.fresh(), filepath.FromSlash(name)), text+"\n"); err != nil {
			return err
		}
	}
	// Last, because it marks the registration as complete.
	return gitfile.Write(filepath.Join(w.fresh(), "gitdir"), filepath.Join(w.path, ".git")+"\n")
}

func (w *worktree) setAside(admin string) error {
	kept, err := SetAside(w.repo, admin)
	if kept != "" {
		w.add("what it held is kept as "+kept, admin)
	}
	return err
}

// makeRegistry makes the folder of git's registrations if necessary. A file in its place is set aside.
func (w *worktree) makeRegistry() error {
	if _, isFile, err := regularFile(w.registry()); err != nil {
		return err
	} else if isFile {
		if _, err := SetAside(w.repo, w.registry()); err != nil {
			return err
		}
	}
	return os.MkdirAll(w.registry(), 0o755) //nolint:forbidigo // a folder of git's own
}

func (w *worktree) replaceAdmin(admin string) error {
	if err := w.makeRegistry(); err != nil {
		return err
	}
	if err := os.Rename(w.fresh(), admin); err != nil { //nolint:forbidigo // a folder of git's own
		return err
	}
	return errors.Join(gitfile.SyncDir(w.registry()), gitfile.SyncDir(w.repo.CommonDir()))
}

// newHead returns the content of the new HEAD. It restores a broken branch first.
func (w *worktree) newHead(ctx context.Context, known Known) (string, error) {
	if w.head != "" && !slices.ContainsFunc(w.damage, func(d Damage) bool { return d.Lost }) {
		return w.head, nil
	}
	last := git.Hash("")
	var err error
	if w.admin != "" {
		if last, _, err = newestCommit(ctx, w.repo, filepath.Join(w.admin, "logs", "HEAD")); err != nil {
			return "", err
		}
	}
	instead, err := w.fallback(ctx, known.Base)
	if err != nil {
		return "", err
	}
	ref := git.Ref(strings.TrimPrefix(w.head, "ref: "))
	if w.head == "" && known.Branch != "" {
		ref = known.Branch.Ref()
	}
	if ref != "" {
		if err := RestoreRef(ctx, w.repo, ref, last, instead); err != nil {
			return "", err
		}
		tip, found, err := w.repo.ResolveRef(ctx, ref)
		if err != nil {
			return "", err
		}
		if w.head != "" || found && (last == "" || last == tip) {
			return "ref: " + string(ref), nil
		}
	}
	if last == "" {
		last = instead
	}
	return string(last), nil
}

// fallback returns base if it exists, else HEAD of the main worktree.
func (w *worktree) fallback(ctx context.Context, base git.Hash) (git.Hash, error) {
	if _, err := git.ParseHash(string(base)); err == nil {
		if whole, err := w.repo.HasCommit(ctx, base); err != nil || whole {
			return base, err
		}
	}
	h, found, err := w.repo.ResolveCommit(ctx, "HEAD")
	if err == nil && !found {
		err = git.ErrNoCommits
	}
	return h, err
}

// readTree makes an index that matches HEAD.
func (w *worktree) readTree(ctx context.Context) error {
	wt, tree := w.repo.In(w.path), "HEAD"
	if _, born, err := wt.Head(ctx); err != nil {
		return err
	} else if !born {
		tree = "--empty"
	}
	_, err := wt.Run(ctx, git.Command{Args: []string{"read-tree", tree}})
	return err
}
