package git

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/transcript.txt")

// TestTranscript plays the life of an attempt verb by verb and compares everything that each verb changes (refs,
// reflogs, HEADs, indexes, files, git's own folder) with testdata/transcript.txt. The person has configured
// everything that could run, ask or fail: none of it may show.
func TestTranscript(t *testing.T) {
	f := newFixture(t)
	top := f.TopLevel()
	f.write(f.CommonDir(), "info/exclude", "/.chipset/worktrees/\n")
	f.commit(top, map[string]string{"keep.txt": "kept\n", "gone.txt": "gone\n", "tool": "#!/bin/sh\n"})
	far := filepath.Join(t.TempDir(), "far")
	f.git(top, "init", "-q", "--bare", "-b", "main", far)
	f.git(top, "remote", "add", "far", far)
	f.git(top, "push", "-q", "far", "main")
	base := f.head(top)
	f.git(top, "tag", "-a", "-m", "x", "v1")
	f.write(top, "a.txt", "stashed\n")
	f.git(top, "stash", "-q")
	f.write(top, "keep.txt", "the person's change\n")
	f.write(top, "notes", "the person's file\n")
	ran := f.personsConfig()

	path := filepath.Join(top, ".chipset", "worktrees", "alpha")
	w, landing := f.In(path), f.In(filepath.Join(top, ".chipset", "worktrees", "refinery"))
	d := &describer{fixture: f, far: far, trees: []*Worktree{f.In(top), w, landing}}
	d.before = d.describe()
	ctx := f.ctx

	d.verb("prepare", f.PrepareWorktree(ctx, path, "polecat/x", base))
	f.must(os.Chmod(filepath.Join(path, "tool"), 0o755))
	f.must(os.Remove(filepath.Join(path, "gone.txt")))
	f.write(path, "a.txt", "one\n2\nthree\n")
	f.write(path, "new/b.txt", "b\n")
	f.write(path, "ignored/cache", "c\n")
	f.write(path, ".chipset/x", "x\n")
	d.before = d.describe()
	saved, err := w.Salvage(ctx, SalvageRequest{Base: base, Ref: "refs/chipset/salvage/as-1", Message: "salvage", AgentID: "alpha"})
	d.verb("salvage", err)
	made, err := w.CommitAll(ctx, "fixup! change", "alpha")
	d.verb("commit", err)
	d.verb("commit again", second(w.CommitAll(ctx, "again", "alpha")))
	d.verb("make durable", f.MakeDurable(ctx, made.Hash, base))
	d.verb("inspect", f.Inspect(ctx, base, made.Hash))
	stat, err := f.DiffStat(ctx, base, made.Hash)
	d.say("diff: %s", stat)
	d.verb("diff", err)
	patch, err := f.Diff(ctx, base, made.Hash, "a.txt")
	d.say("%s", patch)
	d.verb("patch", err)
	d.verb("keep objects", f.KeepObjects(ctx, made.Hash))
	d.verb("release", f.ReleaseWorktree(ctx, path, base))
	if !f.PrepareIdle(ctx, path, "polecat/y", base) {
		t.Error("the worktree that was released is not idle")
	}
	d.verb("prepare idle", nil)

	onto := f.aside(base, "onto.txt", "onto\n")
	d.before = d.describe()
	d.verb("prepare detached", f.PrepareDetached(ctx, landing.Path(), onto))
	candidate, err := landing.Rebase(ctx, made.Hash, onto, "refinery")
	d.verb("rebase", err)
	conflicting := f.aside(base, "a.txt", "one\nother\nthree\n")
	d.before = d.describe()
	_, err = landing.Rebase(ctx, made.Hash, conflicting, "refinery")
	var conflict *ConflictError
	if !errors.As(err, &conflict) {
		t.Errorf("no conflict: %v", err)
	}
	d.verb("rebase with a conflict", nil)
	d.verb("check out", landing.CheckoutDetached(ctx, candidate))
	d.verb("advance", f.Advance(ctx, "main", base, onto))
	d.verb("advance again", f.Advance(ctx, "main", onto, candidate))
	d.verb("push", f.Push(ctx, "far", candidate, "main"))
	f.git(far, "branch", "other", string(base))
	f.git(far, "tag", "v2", string(base))
	d.before = d.describe()
	d.verb("fetch", second(f.Fetch(ctx, "far", "other")))
	d.verb("update", f.UpdateBranch(ctx, "polecat/x", candidate, made.Hash))
	d.verb("swap", f.SwapRef(ctx, "refs/chipset/new", candidate, "", saved.Ref))
	d.verb("delete", f.DeleteBranches(ctx, BranchDeletion{Branch: "polecat/x", Holds: candidate, Keep: "refs/chipset/landed/mr-1"}))
	d.verb("restore objects", second(f.RestoreObjects(ctx)))
	d.verb("release", f.ReleaseWorktree(ctx, path, ""))
	f.must(os.RemoveAll(path))
	d.before = d.describe()
	d.verb("forget", f.ForgetWorktree(path))

	if programs, err := os.ReadFile(ran); err == nil {
		t.Errorf("programs of the person's ran:\n%s", programs)
	}
	golden := filepath.Join("testdata", "transcript.txt")
	if *update {
		f.must(os.WriteFile(golden, []byte(d.out.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	f.must(err)
	if d.out.String() != string(want) {
		t.Errorf("the transcript differs from %s (rewrite it with -update):\n%s", golden, d.out.String())
	}
}

// second keeps the error of what returns two values.
func second[T any](_ T, err error) error { return err }

// aside makes a commit on parent that is on no branch and in no worktree.
func (f *fixture) aside(parent Hash, name, content string) Hash {
	f.Helper()
	dir := f.TempDir()
	f.write(dir, name, content)
	f.Setenv("GIT_INDEX_FILE", filepath.Join(dir, "index"))
	defer os.Unsetenv("GIT_INDEX_FILE")
	f.quiet(f.TopLevel(), "read-tree", string(parent))
	blob := f.quiet(f.TopLevel(), "hash-object", "-w", "--no-filters", filepath.Join(dir, name))
	f.quiet(f.TopLevel(), "update-index", "--add", "--cacheinfo", "100644,"+blob+","+name)
	return Hash(f.quiet(f.TopLevel(), "commit-tree", "-p", string(parent), "-m", "aside", f.quiet(f.TopLevel(), "write-tree")))
}

// quiet runs git as the test itself, without the programs that personsConfig configures.
func (f *fixture) quiet(dir string, args ...string) string {
	f.Helper()
	return f.git(dir, append([]string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"}, args...)...)
}

// personsConfig configures what a person may: hooks that fail, signatures that can't be made, programs, and
// settings that change what git does or prints.
func (f *fixture) personsConfig() (ran string) {
	f.Helper()
	dir := f.TempDir()
	ran = filepath.Join(dir, "ran")
	program := func(dir, name string) string {
		f.write(dir, name, "#!/bin/sh\necho \"$0 $*\" >>"+ran+"\nexit 1\n")
		f.must(os.Chmod(filepath.Join(dir, name), 0o755))
		return filepath.Join(dir, name)
	}
	for _, hook := range []string{"pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-rebase", "post-rewrite", "post-checkout",
		"pre-merge-commit", "post-merge", "pre-push", "reference-transaction", "post-index-change", "pre-auto-gc"} {
		program(f.CommonDir(), "hooks/"+hook)
	}
	failing := program(dir, "program")
	for _, line := range []string{
		"core.fsmonitor=" + failing, "core.editor=" + failing, "core.pager=" + failing, "sequence.editor=" + failing, "gpg.program=" + failing,
		"diff.external=" + failing, "core.commentChar=o", "core.abbrev=4", "core.quotePath=true", "core.untrackedCache=true", "core.logAllRefUpdates=true",
		"commit.gpgSign=true", "commit.cleanup=scissors", "commit.verbose=true", "commit.status=true", "commit.template=/nonexistent",
		"tag.gpgSign=true", "push.gpgSign=true", "log.showSignature=true", "log.date=relative", "log.decorate=full", "format.pretty=oneline",
		"merge.autoStash=true", "merge.ff=false", "merge.verifySignatures=true", "merge.log=true", "merge.stat=true", "merge.conflictStyle=diff3",
		"branch.main.mergeOptions=--no-ff --squash --no-commit --autostash --verify-signatures",
		"rebase.autoStash=true", "rebase.autoSquash=true", "rebase.updateRefs=true", "rebase.backend=apply", "rebase.rebaseMerges=true",
		"rebase.missingCommitsCheck=error", "rebase.stat=true", "rebase.instructionFormat=%ad",
		"rerere.enabled=true", "rerere.autoUpdate=true", "gc.auto=1", "gc.autoPackLimit=1", "maintenance.auto=true",
		"color.ui=always", "column.ui=always", "advice.detachedHead=true", "submodule.recurse=true", "worktree.guessRemote=true",
		"status.showStash=true", "status.branch=true", "status.short=true", "status.relativePaths=true", "status.showUntrackedFiles=no", "status.renames=copies",
		"diff.noprefix=true", "diff.renames=copies", "diff.orderFile=/nonexistent", "diff.ignoreSubmodules=all", "diff.context=0", "diff.mnemonicPrefix=true",
		"fetch.prune=true", "fetch.pruneTags=true", "fetch.writeCommitGraph=true", "fetch.recurseSubmodules=true", "remote.far.tagOpt=--tags", "remote.far.prune=true",
		"push.followTags=true", "push.default=nothing", "push.recurseSubmodules=check", "remote.far.push=+refs/heads/*:refs/heads/*",
		"branch.autoSetupMerge=always", "branch.autoSetupRebase=always", "checkout.guess=true", "clean.requireForce=true", "alias.commit=!false",
		"protocol.ext.allow=always", "push.autoSetupRemote=true",
	} {
		key, value, _ := strings.Cut(line, "=")
		f.git(f.TopLevel(), "config", "--add", key, value)
	}
	return ran
}

// describer writes down what changes.
type describer struct {
	*fixture
	far    string
	trees  []*Worktree
	before []string
	names  map[string]string // of commits
	out    strings.Builder
}

func (d *describer) say(format string, args ...any) { fmt.Fprintf(&d.out, format+"\n", args...) }

// verb writes down what a verb has changed since the last one.
func (d *describer) verb(name string, err error) {
	d.Helper()
	d.say("== %s", name)
	if err != nil {
		d.Errorf("%s: %v", name, err)
		d.say("error: %v", err)
	}
	now := d.describe()
	for _, line := range d.before {
		if !slices.Contains(now, line) {
			d.say("- %s", line)
		}
	}
	for _, line := range now {
		if !slices.Contains(d.before, line) {
			d.say("+ %s", line)
		}
	}
	d.before = now
}

// describe lists everything that stands, one line each, without what differs from run to run.
func (d *describer) describe() (all []string) {
	d.Helper()
	add := func(format string, args ...any) { all = append(all, d.plain(fmt.Sprintf(format, args...))) }
	for _, at := range []string{d.TopLevel(), d.far} {
		for _, ref := range strings.Split(d.quiet(at, "for-each-ref", "--format=%(refname) %(objectname)%(symref)"), "\n") {
			add("%s ref %s", filepath.Base(at), ref)
		}
	}
	for _, w := range d.trees {
		dir, err := w.GitDir()
		if errors.Is(err, ErrNotWorktree) {
			continue
		}
		d.must(err)
		name := filepath.Base(w.Path())
		if _, err := os.Lstat(w.Path()); err != nil {
			add("%s has no folder", name)
			continue
		}
		head, err := os.ReadFile(filepath.Join(dir, "HEAD"))
		d.must(err)
		add("%s HEAD %s", name, strings.TrimSpace(string(head)))
		for _, entry := range strings.Split(d.quiet(w.Path(), "ls-files", "-s", "-v"), "\n") {
			add("%s index %s", name, entry)
		}
		d.files(w.Path(), func(rel string, info fs.FileInfo) {
			if rel == ".git" || strings.HasPrefix(rel, ".git/") || strings.HasPrefix(rel, ".chipset/worktrees/") {
				return
			}
			data, err := os.ReadFile(filepath.Join(w.Path(), rel))
			d.must(err)
			add("%s file %s %s %q", name, rel, info.Mode(), data)
		})
	}
	d.files(d.CommonDir(), func(rel string, _ fs.FileInfo) {
		first, _, _ := strings.Cut(rel, "/")
		leftover := strings.Contains(rel, "tmp_") || strings.HasSuffix(rel, ".lock") || strings.Contains(rel, "new-")
		read := func() []byte {
			data, err := os.ReadFile(filepath.Join(d.CommonDir(), rel))
			d.must(err)
			return data
		}
		switch {
		case rel == "logs/HEAD" || rel == "logs/refs/heads/main" || rel == "logs/refs/stash":
			for _, line := range strings.Split(strings.TrimSpace(string(read())), "\n") {
				head, message, _ := strings.Cut(line, "\t")
				ids := strings.Fields(head)
				add("%s %s %s %q", rel, ids[0], ids[1], message)
			}
		case rel == "config" || rel == "packed-refs":
			add("git %s %x", rel, sha256.Sum256(read()))
		case leftover:
			add("git %s", rel)
		case slices.Contains([]string{"logs", "refs", "objects", "chipset-kept"}, first) || strings.Contains(rel, "/logs/") ||
			slices.Contains([]string{"AUTO_MERGE", "REBASE_HEAD", "ORIG_HEAD", "COMMIT_EDITMSG", "index"}, filepath.Base(rel)): // differs between versions of git
		default:
			add("git %s", rel)
		}
	})
	return all
}

func (d *describer) files(root string, each func(rel string, info fs.FileInfo)) {
	d.Helper()
	d.must(filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		rel, _ := filepath.Rel(root, path)
		each(filepath.ToSlash(rel), info)
		return err
	}))
}

// plain replaces the names of commits by what they hold, and what is drawn by a star.
func (d *describer) plain(line string) string {
	line = regexp.MustCompile(`\b[0-9a-f]{40}\b`).ReplaceAllStringFunc(line, func(h string) string {
		if Hash(h).IsZero() {
			return "nothing"
		}
		if d.names == nil {
			d.names = map[string]string{}
		}
		if _, known := d.names[h]; !known {
			d.names[h] = h[:7]
			if what, err := d.tryGit(d.TopLevel(), "-c", "core.fsmonitor=false", "log", "-1", "--no-show-signature", "--date=iso", "--no-decorate", "--no-color", "--abbrev=7", "--format=(%s by %an, %cn: %t)", h+"^{commit}", "--"); err == nil {
				d.names[h] = what
			}
		}
		return d.names[h]
	})
	line = strings.ReplaceAll(line, filepath.Dir(d.TopLevel()), "")
	return regexp.MustCompile(`(chipset-aside/[a-z0-9-]+-)[0-9]+/`).ReplaceAllString(line, "$1*/")
}
