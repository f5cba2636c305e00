package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git's own object names, no secret
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// object writes an object of any content, as hostile programs do.
func (f *fixture) object(kind, content string) Hash {
	f.Helper()
	whole := fmt.Sprintf("%s %d\x00%s", kind, len(content), content)
	sum := sha1.Sum([]byte(whole)) //nolint:gosec // git's own object names, no secret
	h := Hash(hex.EncodeToString(sum[:]))
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, err := z.Write([]byte(whole))
	f.must(errors.Join(err, z.Close()))
	f.must(os.MkdirAll(filepath.Dir(f.loose(h)), 0o755))
	f.must(os.WriteFile(f.loose(h), packed.Bytes(), 0o644))
	return h
}

// tree is a line of a tree for object.
func (f *fixture) tree(lines ...string) Hash { return f.object("tree", strings.Join(lines, "")) }

func entryLine(mode, name string, h Hash) string {
	raw, err := hex.DecodeString(string(h))
	if err != nil {
		panic(err)
	}
	return mode + " " + name + "\x00" + string(raw)
}

func (f *fixture) commitOf(tree, parent Hash) Hash {
	f.Helper()
	return f.object("commit", fmt.Sprintf("tree %s\nparent %s\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nmessage\n", tree, parent))
}

func TestInspectRefuses(t *testing.T) {
	f := newFixture(t)
	base := f.head(f.TopLevel())
	w := f.prepared()
	f.write(w.Path(), "unsaved", "work")
	file := f.object("blob", "content\n")
	plain := func(name string) Hash { return f.tree(entryLine("100644", name, file)) }
	modules := func(text string) Hash { return f.tree(entryLine("100644", ".gitmodules", f.object("blob", text))) }
	runs := f.object("blob", "[submodule \"x\"]\n\tpath = x\n\turl = -u./x\n")
	deep := plain("x")
	for range maxPath/2 + 2 {
		deep = f.tree(entryLine("40000", "d", deep))
	}
	tenfold := func(tree Hash, times int) Hash {
		for range times {
			var lines []string
			for _, name := range strings.Split("0123456789", "") {
				lines = append(lines, entryLine("40000", name, tree))
			}
			tree = f.tree(lines...)
		}
		return tree
	}
	bomb := tenfold(plain("x"), 10)
	zero := f.object("blob", strings.Repeat("0", 1<<19))
	zeros := tenfold(f.tree(entryLine("100644", "x", zero), entryLine("100644", "y", zero)), 4)
	long := plain("x")
	for range 12 {
		long = f.tree(entryLine("40000", strings.Repeat("n", 200), long))
	}
	for name, test := range map[string]struct {
		tree Hash
		want string
	}{
		".git":                    {plain(".git"), "is .git"},
		".GIT folder":             {f.tree(entryLine("40000", ".GiT", plain("config"))), "is .git"},
		"HFS":                     {plain(".g\u200cit"), "is .git"},
		"NTFS":                    {plain("GIT~1"), "is .git"},
		"NTFS below":              {plain("x\\.git\\config"), "is .git"},
		"dots":                    {f.tree(entryLine("40000", "..", plain("x"))), "leads elsewhere"},
		"slash":                   {plain("a/b"), "leads elsewhere"},
		"a long name":             {plain(strings.Repeat("n", 300)), "longer than a file name"},
		"a long path":             {long, "a path has"},
		"deep":                    {deep, "nested too deeply"},
		"a bomb":                  {bomb, "more than 1000000 files"},
		"a bomb of one file":      {zeros, "more than 8 GiB"},
		"a bad mode":              {f.tree(entryLine("100666", "x", file)), "mode"},
		"a padded mode":           {f.tree(entryLine("040000", "x", plain("y"))), "mode"},
		"unsorted":                {f.tree(entryLine("100644", "b", file), entryLine("100644", "a", file)), "not sorted"},
		"twice":                   {f.tree(entryLine("100644", "a", file), entryLine("100755", "a", file)), "two entries"},
		"a file and a folder":     {f.tree(entryLine("100644", "a", file), entryLine("100644", "a.b", file), entryLine("40000", "a", plain("x"))), "two entries"},
		"cut":                     {f.object("tree", "100644 a\x00short"), "malformed"},
		"a tree as file":          {f.tree(entryLine("100644", "x", plain("y"))), "is a tree"},
		"a file as tree":          {f.tree(entryLine("40000", "x", file)), "is a blob"},
		"zeros":                   {f.tree(entryLine("100644", "x", ZeroHash)), "zeros"},
		"a long link":             {f.tree(entryLine("120000", "x", f.object("blob", strings.Repeat("x", 5000)))), "a link"},
		"modules under two names": {f.tree(entryLine("100644", "-innocent", runs), entryLine("100644", ".gitmodules", runs)), "could run commands"},
		"linked modules":          {f.tree(entryLine("120000", ".gitmodules", file)), "symbolic link"},
		"ext":                     {modules("[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c 'touch /tmp/x'\n"), "url = ext::"},
		"an option":               {modules("[submodule \"x\"]\n\tpath = x\n\turl = -u./x\n"), "url = -u"},
		"an update":               {modules("[submodule \"x\"]\n\tpath = x\n\turl = x\n\tupdate = !touch x\n"), "update = !"},
		"a way out":               {modules("[submodule \"../../x\"]\n\tpath = x\n\turl = x\n"), "could run"},
		"no config":               {modules("[submodule"), "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			for where, head := range map[string]Hash{"at the tip": f.commitOf(test.tree, base), "below it": f.commitOf(plain("later"), f.commitOf(test.tree, base))} {
				err := f.Inspect(f.ctx, base, head)
				var unfit *UnfitError
				if !errors.As(err, &unfit) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s: %v", where, err)
				}
				if where != "at the tip" {
					continue
				}
				// What a worker has beside it is saved all the same.
				f.git(w.Path(), "update-ref", "--no-deref", "HEAD", string(head))
				saved, err := w.Salvage(f.ctx, SalvageRequest{Base: base, Ref: salvageRef, Message: "m", AgentID: "a"})
				if err != nil || f.git(f.TopLevel(), "show", string(saved.Hash)+":unsaved") != "work" {
					t.Errorf("%s: %+v %v", where, saved, err)
				}
				// A commit that git can't read is not kept with it: git would end over the ref ever after.
				if kept := strings.Contains(f.git(f.TopLevel(), "cat-file", "-p", string(saved.Hash)), "parent "+string(head)); kept == unfit.Unreadable {
					t.Errorf("the commit is kept: %v", kept)
				}
			}
		})
	}
	said := func(author, message string) Hash {
		return f.object("commit", fmt.Sprintf("tree %s\nparent %s\nauthor %s <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\n%s\n", plain("x"), base, author, message))
	}
	for _, message := range []string{"a \x1b]0;title\a", "a \u202etxt.exe", "a \u2066b", "a\rb", "a \u009b2J", "a \x7f"} {
		for _, head := range []Hash{said("A", message), said("A", "subject\n\n"+message), said(strings.ReplaceAll(message, "\r", "\v"), "m")} {
			if err := f.Inspect(f.ctx, base, head); err == nil || !strings.Contains(err.Error(), "control characters") {
				t.Errorf("%q: %v", message, err)
			}
		}
	}
	if err := f.Inspect(f.ctx, base, said("Ångström 👩\u200d💻", "שלום\u200e ❤\ufe0f\r\n\r\n\ttext\r")); err != nil {
		t.Errorf("an honest message: %v", err)
	}
	for name, content := range map[string]string{
		"no author": fmt.Sprintf("tree %s\nparent %s\ncommitter A <a@b> 1 +0000\n\nm\n", plain("x"), base),
		"no date":   fmt.Sprintf("tree %s\nparent %s\nauthor A <a@b>\ncommitter A <a@b> 1 +0000\n\nm\n", plain("x"), base),
		"a zero":    fmt.Sprintf("tree %s\nparent %s\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nm\x00\n", plain("x"), base),
	} {
		if err := f.Inspect(f.ctx, base, f.object("commit", content)); err == nil || !strings.Contains(err.Error(), "malformed") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What git itself made passes, also beside what was there before; what is missing is not the work's fault.
func TestInspectAccepts(t *testing.T) {
	f := newFixture(t)
	file := f.object("blob", "content\n")
	odd := f.commitOf(f.tree(entryLine("100644", ".GIT", file), entryLine("100644", "a", file)), f.head(f.TopLevel()))
	beside := f.commitOf(f.tree(entryLine("100644", ".GIT", file), entryLine("100644", "b", file)), odd)
	f.must(f.Inspect(f.ctx, odd, beside))

	base := f.head(f.TopLevel())
	f.git(f.TopLevel(), "checkout", "-q", "-b", "side")
	f.write(f.TopLevel(), "dir/sub/x", "x")
	f.write(f.TopLevel(), "dir.txt", "x")
	f.must(os.Symlink("a.txt", filepath.Join(f.TopLevel(), "link")))
	f.write(f.TopLevel(), ".gitmodules", "[submodule \"x\"]\n\tpath = mods/x\n\turl = https://example.org/x.git\n\tupdate = rebase\n")
	side := f.commit(f.TopLevel(), nil)
	f.git(f.TopLevel(), "checkout", "-q", "main")
	f.commit(f.TopLevel(), map[string]string{"a.txt": "two\n"})
	f.git(f.TopLevel(), "merge", "-q", "--no-edit", "side")
	f.must(f.Inspect(f.ctx, base, side))
	f.must(f.Inspect(f.ctx, base, f.head(f.TopLevel())))

	missing := f.commitOf(f.tree(entryLine("100644", "x", Hash(strings.Repeat("12", 20)))), base)
	f.wantErr(f.Inspect(f.ctx, base, missing), ErrTorn)
}

// A commit whose history has a hole can't land, and nothing may keep it.
func TestInspectOfMissingCommits(t *testing.T) {
	f := newFixture(t)
	base := f.head(f.TopLevel())
	file := f.tree(entryLine("100644", "x", f.object("blob", "content\n")))
	gone := f.commitOf(file, base)
	head := f.commitOf(f.tree(entryLine("100644", "y", f.object("blob", "content\n"))), gone)
	f.must(os.Remove(f.loose(gone)))
	var bad *UnfitError
	if err := f.Inspect(t.Context(), base, head); !errors.As(err, &bad) || !bad.Unreadable || !strings.Contains(bad.Reason, "objects of the worktree are missing") {
		t.Errorf("a hole in what is new: %v", err)
	}
}

// A commit may name the encoding of its message. What git shows of it counts.
func TestInspectDecodesMessages(t *testing.T) {
	f := newFixture(t)
	base := f.head(f.TopLevel())
	tree := f.git(f.TopLevel(), "rev-parse", string(base)+"^{tree}")
	for message, want := range map[string]bool{"a\x9b2J": true, "caf\xe9": false} {
		head := f.object("commit", "tree "+tree+"\nparent "+string(base)+"\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\nencoding ISO-8859-1\n\n"+message+"\n")
		var unfit *UnfitError
		if err := f.Inspect(f.ctx, base, head); errors.As(err, &unfit) != want {
			t.Errorf("%q: %v", message, err)
		}
	}
}
