package git

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
)

// Hint is what whoever made a linked worktree remembers of it. All of it may be empty.
type Hint struct {
	Branch Branch // that was checked out
	Base   Hash   // where the branch began
	// Own: the folder is the rig's, so that it is a worktree also when neither git nor a file .git in it says so.
	Own bool
}

// Wound is one of git's own files of a linked worktree that a power cut tore, or that somebody removed.
type Wound struct {
	Path   string // absolute
	Reason string
	// Unknown: git had no record of the worktree at all, so nothing but its files tells what it holds.
	Unknown bool
	// Lost: it is HEAD, or the branch or commit that it leads to, so what was committed last may be gone.
	Lost bool
}

func (w Wound) String() string { return w.Path + ": " + w.Reason }

// wounds is what is torn of one worktree.
type wounds struct {
	r           *Repo
	path, admin string // admin is "" when there is no registration at all
	list        []Wound
	// Which of them it is.
	gitdir, commondir, head, index, link bool
	// broken is the branch of HEAD if that is what is torn.
	broken Branch
}

func (s *wounds) add(which *bool, path, reason string) {
	*which = true
	s.list = append(s.list, Wound{Path: path, Reason: reason, Lost: which == &s.head})
}

// Wounds tells what is torn of the linked worktree at path: the file .git in it, and of its registration HEAD,
// commondir, gitdir and the index. A path where nothing stands, or where nothing was ever checked out, has none, and
// so has a folder of which neither git nor the hint knows, or to which a link leads: it is somebody's own.
func (r *Repo) Wounds(ctx context.Context, path string, hint Hint) ([]Wound, error) {
	s, err := r.examine(ctx, path, hint)
	if err != nil {
		return nil, fmt.Errorf("examine worktree %s: %w", path, err)
	}
	return s.list, nil
}

// Mend makes the linked worktree at path whole again, so that what it holds can be saved, and returns what was
// torn. It touches no file of the work itself. HEAD is put on the commit of which its reflog
// tells, else on what the hint says, else on HEAD of the main worktree: the work is then a change against
// that. A torn index is kept beside the new one. It may be repeated after a kill. Nobody may work in the worktree.
func (r *Repo) Mend(ctx context.Context, path string, hint Hint) ([]Wound, error) {
	s, err := r.examine(ctx, path, hint)
	if err == nil && len(s.list) > 0 {
		r.worktrees.Lock()
		err = s.mend(ctx, hint)
		r.worktrees.Unlock()
	}
	if err != nil {
		return nil, fmt.Errorf("mend worktree %s: %w", path, err)
	}
	return s.list, nil
}

func (r *Repo) examine(ctx context.Context, path string, hint Hint) (*wounds, error) {
	s := &wounds{r: r}
	if elsewhere(path) {
		return s, nil
	}
	real, err := realPath(path)
	if err != nil {
		return s, err
	}
	entries, err := os.ReadDir(real)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != ".git" }) {
		s.examineGone(real)
		return s, nil // the next preparation makes it anew
	}
	if err != nil || real == r.top {
		return s, err
	}
	s.path = real
	if s.admin = r.adminFor(real); s.admin == "" {
		link, err := os.Lstat(filepath.Join(real, ".git"))
		if err == nil && link.IsDir() || (err != nil || !link.Mode().IsRegular()) && hint == (Hint{}) {
			return s, nil
		}
		s.add(&s.gitdir, filepath.Join(r.common, "worktrees", filepath.Base(real)), "git has no record of this worktree")
		s.list[0].Unknown, s.list[0].Lost = true, true
		s.commondir, s.head, s.index, s.link = true, true, true, true
		return s, nil
	}
	if link, err := registeredLink(s.admin); err != nil || !sameLink(link, real) {
		s.add(&s.gitdir, filepath.Join(s.admin, "gitdir"), "does not lead to "+real)
	}
	if common, err := readPlain(filepath.Join(s.admin, "commondir")); err != nil || !r.isCommon(s.admin, common) {
		s.add(&s.commondir, filepath.Join(s.admin, "commondir"), "does not lead to "+r.common)
	}
	if err := s.examineHead(ctx); err != nil {
		return s, err
	}
	if reason := tornIndex(filepath.Join(s.admin, "index")); reason != "" {
		s.add(&s.index, filepath.Join(s.admin, "index"), reason)
	}
	link := filepath.Join(real, ".git")
	if info, err := os.Lstat(link); err == nil && info.IsDir() {
		return s, nil // a repository of a person's own, which nothing here may overwrite
	}
	if !linksTo(real, s.admin) {
		s.add(&s.link, link, "does not lead to "+s.admin)
	}
	return s, nil
}

// examineGone looks at the registration that a folder left behind: without its commondir git refuses every
// command about worktrees.
func (s *wounds) examineGone(real string) {
	s.path, s.admin = real, s.r.adminFor(real)
	if s.admin == "" {
		return
	}
	if common, err := readPlain(filepath.Join(s.admin, "commondir")); err != nil || !s.r.isCommon(s.admin, common) {
		s.add(&s.commondir, filepath.Join(s.admin, "commondir"), "does not lead to "+s.r.common)
	}
}

// adminFor finds the registration of a worktree by three ways, because each may be torn: from the
// registry, from the worktree, and by its name.
func (r *Repo) adminFor(real string) string {
	if admin, err := r.gitDirOf(real); err == nil {
		return admin
	}
	registry := filepath.Join(r.common, "worktrees")
	candidates := []string{filepath.Join(registry, filepath.Base(real))}
	if text, err := readPlain(filepath.Join(real, ".git")); err == nil {
		if target, ok := strings.CutPrefix(text, "gitdir: "); ok && filepath.Dir(filepath.Clean(target)) == registry {
			candidates = append([]string{filepath.Clean(target)}, candidates...)
		}
	}
	for _, admin := range candidates {
		if info, err := os.Lstat(admin); err != nil || !info.IsDir() {
			continue
		}
		link, err := registeredLink(admin)
		if err != nil || !filepath.IsAbs(link) || filepath.Base(link) != ".git" || !linksTo(filepath.Dir(link), admin) {
			return admin // it leads to nobody else
		}
	}
	return ""
}

func sameLink(link, real string) bool {
	at, err := realPath(filepath.Dir(link))
	return err == nil && at == real && filepath.Base(link) == ".git"
}

func (r *Repo) isCommon(admin, common string) bool {
	if !filepath.IsAbs(common) {
		common = filepath.Join(admin, common)
	}
	real, err := realPath(common)
	return err == nil && real == r.common
}

// writeCommondir makes a registration lead to the repository that holds it.
func writeCommondir(admin string) error {
	return writeGitFile(filepath.Join(admin, "commondir"), "../..\n")
}

// examineHead finds a HEAD that is torn, or leads to a commit that is not there. A branch without a commit yet is
// somebody's choice, and whole.
func (s *wounds) examineHead(ctx context.Context) error {
	file := filepath.Join(s.admin, "HEAD")
	text, err := readPlain(file)
	name, symbolic := strings.CutPrefix(text, "ref: ")
	h := Hash(text)
	switch {
	case err != nil || symbolic && !validRefName(name) || !symbolic && (h.check() != nil || h.IsZero()):
		s.add(&s.head, file, "names neither a branch nor a commit")
		return nil
	case !symbolic:
		whole, err := s.r.wholeCommit(ctx, h)
		if err == nil && !whole {
			s.add(&s.head, file, "names the commit "+h.Short()+", which is not there")
		}
		return err
	}
	branch, _ := strings.CutPrefix(name, "refs/heads/")
	b, err := ParseBranch(branch)
	if err != nil {
		return nil //nolint:nilerr // a ref of another kind, which git itself reads
	}
	reason, err := s.r.brokenRef(ctx, b.Ref())
	if err == nil && reason != "" {
		s.broken = b
		s.add(&s.head, filepath.Join(s.r.common, filepath.FromSlash(string(b.Ref()))), reason)
	}
	return err
}

// wholeCommit reports whether a commit and its tree are there and can be read.
func (r *Repo) wholeCommit(ctx context.Context, h Hash) (bool, error) {
	if o, found, err := r.content(ctx, string(h)+"^{tree}"); err == nil {
		return found && o.kind == "tree", nil
	}
	_, err := r.read(ctx, "cat-file", "-e", string(h)+"^{tree}")
	if exited(err, 1, 128) {
		return false, nil
	}
	return err == nil, err
}

// brokenRef says why a branch can't be used: its file is torn, or its commit is not there. One that does not exist
// is not broken.
func (r *Repo) brokenRef(ctx context.Context, ref Ref) (string, error) {
	text, err := readPlain(filepath.Join(r.common, filepath.FromSlash(string(ref))))
	h := Hash(text)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		out, err := r.read(ctx, "for-each-ref", "--format=%(objectname)", string(ref))
		if err != nil || len(out) == 0 {
			return r.lostRef(ctx, ref)
		}
		h = Hash(line(out))
	case err == nil && strings.HasPrefix(text, "ref: "):
		return "", nil
	case err != nil || h.check() != nil || h.IsZero():
		return "holds no commit", nil
	}
	whole, err := r.wholeCommit(ctx, h)
	if err != nil || whole {
		return "", err
	}
	return "names the commit " + h.Short() + ", which is not there", nil
}

func (s *wounds) mend(ctx context.Context, hint Hint) error {
	if s.admin == "" {
		if err := s.register(); err != nil {
			return err
		}
	}
	if err := s.r.clearLocks(ctx, s.admin); err != nil {
		return err
	}
	if s.commondir {
		if err := writeCommondir(s.admin); err != nil {
			return err
		}
	}
	if s.gitdir {
		if err := writeGitFile(filepath.Join(s.admin, "gitdir"), filepath.Join(s.path, ".git")+"\n"); err != nil {
			return err
		}
	}
	if s.head {
		if err := s.mendHead(ctx, hint); err != nil {
			return err
		}
	}
	if s.link {
		if err := writeGitFile(filepath.Join(s.path, ".git"), "gitdir: "+s.admin+"\n"); err != nil {
			return err
		}
	}
	if s.index {
		return s.mendIndex(ctx)
	}
	return nil
}

// register makes the folder of a registration. A kill after it leaves one that adminFor finds by its name.
func (s *wounds) register() error {
	registry := filepath.Join(s.r.common, "worktrees")
	if err := os.MkdirAll(registry, 0o755); err != nil { //nolint:forbidigo // a folder of git's own
		return err
	}
	for n := 1; ; n++ {
		s.admin = filepath.Join(registry, filepath.Base(s.path))
		if n > 1 {
			s.admin += fmt.Sprint(n)
		}
		err := os.Mkdir(s.admin, 0o755) //nolint:forbidigo // a folder of git's own
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

// mendHead puts HEAD where its reflog says that it was, or where the hint says.
func (s *wounds) mendHead(ctx context.Context, hint Hint) error {
	last, _, err := s.r.lastWhole(ctx, filepath.Join(s.admin, "logs", "HEAD"))
	if err != nil {
		return err
	}
	if s.broken != "" {
		instead, err := s.r.fallback(ctx, hint.Base)
		if err != nil {
			return err
		}
		return s.r.MendRef(ctx, s.broken.Ref(), last, instead)
	}
	file := filepath.Join(s.admin, "HEAD")
	if hint.Branch != "" {
		if err := hint.Branch.check(); err != nil {
			return err
		}
		if reason, err := s.r.brokenRef(ctx, hint.Branch.Ref()); err != nil {
			return err
		} else if reason != "" {
			instead, err := s.r.fallback(ctx, hint.Base)
			if err != nil {
				return err
			}
			if err := s.r.MendRef(ctx, hint.Branch.Ref(), last, instead); err != nil {
				return err
			}
		}
		tip, found, err := s.r.ResolveRef(ctx, hint.Branch.Ref())
		if err != nil {
			return err
		}
		if found && (last == "" || last == tip) {
			return writeGitFile(file, "ref: "+string(hint.Branch.Ref())+"\n")
		}
	}
	if last == "" {
		if last, err = s.r.fallback(ctx, hint.Base); err != nil {
			return err
		}
	}
	return writeGitFile(file, string(last)+"\n")
}

// fallback is base if it is there, else HEAD of the main worktree.
func (r *Repo) fallback(ctx context.Context, base Hash) (Hash, error) {
	if base != "" && base.check() == nil {
		if whole, err := r.wholeCommit(ctx, base); err != nil || whole {
			return base, err
		}
	}
	h, found, err := r.ResolveCommit(ctx, "HEAD")
	if err == nil && !found {
		err = ErrNoCommits
	}
	return h, err
}

// MendRef puts a broken ref on the newest commit of which its reflog tells that is there, else on the first of
// instead that is. One that is not broken stays. ErrNoCommits is returned when nothing tells of one.
func (r *Repo) MendRef(ctx context.Context, ref Ref, instead ...Hash) error {
	if err := ref.check(); err != nil {
		return err
	}
	if reason, err := r.brokenRef(ctx, ref); err != nil || reason == "" {
		return err
	}
	// A torn object would keep the same commit from being written again.
	if err := r.DropEmptyObjects(); err != nil {
		return err
	}
	to, _, err := r.lastWhole(ctx, filepath.Join(r.common, "logs", filepath.FromSlash(string(ref))))
	if err != nil {
		return err
	}
	for _, h := range instead {
		if to != "" || h == "" || h.check() != nil {
			continue
		}
		whole, err := r.wholeCommit(ctx, h)
		if err != nil {
			return err
		}
		if whole {
			to = h
		}
	}
	if to == "" {
		return fmt.Errorf("mend %s: %w", ref, ErrNoCommits)
	}
	// git updates no ref whose file it can't read.
	file := filepath.Join(r.common, filepath.FromSlash(string(ref)))
	if err := writeGitFile(file, string(to)+"\n"); err != nil {
		return err
	}
	return r.Sync(ctx)
}

// DropBrokenRef removes a ref that names nothing and that nobody relies on. One that is not broken stays.
func (r *Repo) DropBrokenRef(ctx context.Context, ref Ref) error {
	if err := ref.check(); err != nil {
		return err
	}
	if reason, err := r.brokenRef(ctx, ref); err != nil || reason == "" {
		return err
	}
	// git deletes no ref whose file it can't read.
	if err := removeGitFile(filepath.Join(r.common, filepath.FromSlash(string(ref)))); err != nil {
		return err
	}
	if r.packed(ref) { // below a torn file a whole one may have been packed
		reason, err := r.brokenRef(ctx, ref)
		if err == nil && reason != "" {
			_, err = r.Run(ctx, Command{Args: []string{"update-ref", "-d", string(ref)}})
		}
		if err != nil {
			return err
		}
	}
	return r.Sync(ctx)
}

// mendIndex keeps the torn index beside a new one, which says what HEAD says. MERGE_HEAD and the like stay: they
// tell what else has to be saved.
func (s *wounds) mendIndex(ctx context.Context) error {
	file := filepath.Join(s.admin, "index")
	err := os.Rename(file, filepath.Join(s.admin, "chipset-torn-index")) //nolint:forbidigo // a file of git's own
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	w := s.r.In(s.path)
	p := place{dir: s.path, gitDir: s.admin, workTree: s.path}
	tree := "HEAD"
	if _, born, err := s.r.resolve(ctx, p, "HEAD"); err != nil {
		return err
	} else if !born {
		tree = "--empty"
	}
	_, err = w.repo.run(ctx, p, Command{Args: []string{"read-tree", tree}})
	return err
}

// readPlain reads the one line of a small regular file. A directory, which stands where refs below it were, or a
// file on the way count as absent.
func readPlain(path string) (string, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, syscall.ENOTDIR) || err == nil && info.IsDir() {
		return "", fs.ErrNotExist
	}
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > 4<<10 {
		return "", fs.ErrInvalid
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	text, whole := strings.CutSuffix(string(data), "\n")
	if !whole || strings.Contains(text, "\n") {
		return "", fs.ErrInvalid
	}
	return text, nil
}
