package chipsettest_test

import (
	"os"
	"path/filepath"
	"strings"
)

// gitActs are those that would have the rig's git run a program, wait forever, or see another history.
func gitActs() []hostileAct {
	const deletes = `rm_object() { h=$(git rev-parse "$1"); rm -f "$(git rev-parse --git-common-dir)/objects/$(echo $h | cut -c1-2)/$(echo $h | cut -c3-)"; }
for f in x y; do echo $f > $f; git add $f; git commit -qm $f; done; `
	const objects = `cd "$(git rev-parse --git-common-dir)/objects"; `
	const forges = `set -e; h=$(git rev-parse main:README.md); p=$(echo forged | git hash-object -w --stdin | git pack-objects -q "$TMPDIR/forged")
perl -MDigest::SHA=sha1 -e 'local $/; open F, "<", "$ARGV[0].idx" or die; $_ = <F>; $h = pack "H*", $ARGV[1];
	substr($_, 8, 1024) = join "", map { pack "N", $_ >= ord $h ? 1 : 0 } 0..255; substr($_, 1032, 20) = $h; $_ = substr $_, 0, -20;
	open G, ">", "$ARGV[0].idx.new" or die; print G $_, sha1($_); close G' "$TMPDIR/forged-$p" $h
cd "$(git rev-parse --git-common-dir)/objects"; `
	const common = `echo x > x; W=$PWD; B=$(git symbolic-ref HEAD); A=worktrees/$(basename "$(git rev-parse --git-dir)"); cd "$(git rev-parse --git-common-dir)"; mkdir -p logs/refs/heads/polecat; `
	packed := func(s *siege) { s.Git("gc", "-q") }
	untouched := func(s *siege) {
		if inbox, _ := s.Try("mail", "inbox", "--as", "human"); strings.Contains(inbox, "never tested") {
			s.Errorf("the rig itself has moved the target:\n%s", inbox)
		}
	}
	whole := func(s *siege) { s.Git("rev-list", "--objects", "--quiet", "main") }
	nested := func(name, config string) string {
		return "git init -q " + name + " && cd " + name + " && echo x > x && git add x && git -c user.name=x -c user.email=x commit -qm x && " + config + " && cd ..\n"
	}
	return []hostileAct{
		{name: "it deletes a commit that its last one descends from", worker: deletes + "rm_object HEAD~1", refused: "objects of the worktree are missing"},
		{name: "it deletes its last commit", worker: deletes + "rm_object HEAD", refused: "objects of the worktree are missing"},
		{name: "it deletes all objects of the repository", worker: objects + "rm -rf * || true; echo x > $OLDPWD/x", told: "deleted from the repository while polecat-alpha was working", after: whole},
		{name: "it deletes a file of an old commit", worker: deletes + "rm_object main:README.md", told: "deleted from the repository while polecat-alpha was working", after: whole},
		{name: "it overwrites the objects of the target", worker: objects + "chmod u+w ??/*; for f in ??/*; do echo > $f; done; echo x > $OLDPWD/x", told: "deleted from the repository while polecat-alpha was working", after: whole},
		{name: "it puts files in the place of the folders of objects", stopped: true, worker: objects + "for d in ??; do rm -rf $d; echo > $d; done; echo x > $OLDPWD/x", told: "deleted from the repository while polecat-alpha was working", after: whole},
		{name: "it puts a pipe in the place of an object", stopped: true, worker: objects + "set -e; f=$(ls ??/* | head -1); rm $f; mkfifo $f; echo x > $OLDPWD/x",
			told: "deleted from the repository while polecat-alpha was working", after: whole},
		{name: "it overwrites a pack", boxed: true, stopped: true, before: packed, worker: objects + "set -e; chmod u+w pack/*; for f in pack/*; do echo > $f; done; echo x > $OLDPWD/x", after: whole},
		{name: "a pack that holds another file under the name of one of the target", boxed: true, stopped: true,
			worker: forges + `cp "$TMPDIR/forged-$p.pack" pack/pack-$p.pack; cp "$TMPDIR/forged-$p.idx.new" pack/pack-$p.idx; echo x > $OLDPWD/x`, after: whole},
		{name: "a file of the target that is another, in a pack that it borrows", boxed: true, stopped: true,
			worker: forges + `mkdir "$TMPDIR/pack"; mv "$TMPDIR"/forged-* "$TMPDIR/pack"; mkdir -p info; echo "$TMPDIR" > info/alternates`, after: whole},
		{name: "its HEAD leads to the target", worker: "echo x > x; printf 'ref: refs/heads/main\\n' > \"$(git rev-parse --git-dir)/HEAD\"", after: untouched},
		{name: "its branch is another name of the target", after: untouched,
			worker: "echo x > x; printf 'ref: refs/heads/main\\n' > \"$(git rev-parse --git-common-dir)/$(git symbolic-ref HEAD)\""},
		{name: "a lock on the next bead's branch", worker: common + "echo > refs/heads/$NEXT.lock"},
		{name: "a folder for the lock of the next bead's branch", worker: common + "mkdir -p refs/heads/$NEXT.lock/x"},
		{name: "a folder for the next bead's branch", worker: common + "mkdir -p refs/heads/$NEXT; git rev-parse main > refs/heads/$NEXT/x"},
		{name: "no commit for the next bead's branch", worker: common + "echo junk > refs/heads/$NEXT"},
		{name: "a folder for the next bead's reflog", worker: common + "mkdir -p logs/refs/heads/$NEXT; echo > logs/refs/heads/$NEXT/x"},
		{name: "a pipe for the next bead's branch", stopped: true, worker: common + "mkfifo refs/heads/$NEXT"},
		{name: "a pipe for the next bead's reflog", stopped: true, worker: common + "mkfifo logs/refs/heads/$NEXT"},
		{name: "a pipe for the way to its worktree", stopped: true, worker: common + "rm -f $A/gitdir; mkfifo $A/gitdir"},
		{name: "an index of a terabyte", worker: common + "truncate -s 1T $A/index"},
		{name: "a branch of a terabyte", worker: common + "truncate -s 1T refs/heads/polecat/large"},
		{name: "folders for the locks of its worktree", worker: common + "mkdir -p $A/HEAD.lock/x $A/index.lock/x"},
		{name: "a folder for the lock of its branch", worker: common + "mkdir -p $B.lock/x"},
		{name: "folders without rights", worker: common + "chmod 0 refs/heads/polecat logs/refs/heads/polecat $A/logs $A \"$W\""},
		{name: "a repository of its own in the place of git's link", worker: "rm -rf .git; git init -q; git config core.fsmonitor $PROGRAM; echo x > x; git add -A; git -c user.name=x -c user.email=x commit -qm x"},
		{
			name:    "a filter in config.worktree",
			stopped: true,
			worker:  "git config extensions.worktreeConfig true; git config --worktree filter.x.clean $PROGRAM; echo '* filter=x' > .gitattributes; echo x > x",
		},
		{
			name:    "a monitor in config.worktree",
			stopped: true,
			worker:  "git config extensions.worktreeConfig true; git config --worktree core.fsmonitor $PROGRAM; git config --worktree core.hooksPath $PWD/h; mkdir h; cp $PROGRAM h/post-checkout; cp $PROGRAM h/pre-commit; echo x > x",
		},
		{
			name: "another repository by commondir",
			worker: "d=$(git rev-parse --git-dir); e=$(mktemp -d); git init -q $e; git -C $e config core.fsmonitor $PROGRAM; git -C $e config filter.x.clean $PROGRAM\n" +
				"echo x > x; echo $e/.git > \"$d/commondir\"",
			after: func(s *siege) { s.Git("fsck") },
		},
		{
			name: "a nested repository with a promisor",
			worker: nested("inner", "git config extensions.partialClone origin; git config remote.origin.promisor true; git config remote.origin.url \"$MAIN\"; "+
				"git config remote.origin.uploadpack $PROGRAM; rm -rf .git/objects/*") + "echo x > x",
		},
		{
			name: "a gitlink with a filter",
			worker: nested("sub", "git config filter.x.clean $PROGRAM; git config core.fsmonitor $PROGRAM; echo '* filter=x' > .gitattributes") +
				"git add sub; git commit -qm link; echo y > sub/x; echo y > y",
		},
		{
			name:    "hooks in the repository",
			stopped: true,
			worker: "h=$(git rev-parse --git-common-dir)/hooks; mkdir -p \"$h\"; for n in pre-commit post-checkout post-merge reference-transaction pre-rebase post-rewrite; do cp $PROGRAM \"$h/$n\"; done\n" +
				"echo x > x",
		},
		{
			name:    "a replaced commit",
			stopped: true,
			worker: "echo bad > x; git add x; git commit -qm bad; b=$(git rev-parse HEAD); t=$(git rev-parse HEAD^^{tree}); g=$(git commit-tree -p HEAD^ -m good $t)\n" +
				"git replace -f $b $g",
			after: func(s *siege) {
				if got := s.Git("--no-replace-objects", "show", "main:x"); got != "bad" {
					s.Errorf("what was committed is not what landed: %q", got)
				}
			},
		},
		{name: "a graft", stopped: true, worker: "echo x > x; git add x; git commit -qm x; i=$(git rev-parse --git-common-dir)/info; mkdir -p \"$i\"; git rev-parse HEAD > \"$i/grafts\"",
			after: func(s *siege) { s.Git("-c", "advice.graftFileDeprecated=false", "fsck") }},
		{name: "names of files that are options", worker: "for n in -rf --help -- '-c core.fsmonitor=x' '$(touch x)' ':!x' '*'; do echo x > \"./$n\"; done"},
		{name: "configuration of a client by a rename", worker: "mkdir .claude; git mv person.txt .claude/settings.json; git commit -qm x", waits: true},
		{name: "an encoding that its files don't have", worker: "echo '* working-tree-encoding=UTF-16' > .gitattributes; echo x > x", refused: "git can't take a file"},
		{name: "work below a twin of .chipset that HFS+ takes for it", worker: "mkdir .chip\u200cset; echo x > .chip\u200cset/x", refused: ".chip"},
		{name: "configuration of a client for HFS+", worker: "mkdir .clau\u200cde; echo x > .clau\u200cde/settings.json", waits: true},
		{name: "work below a twin of .chipset", worker: "mkdir .chip\u017fet; echo x > .chip\u017fet/x", refused: ".chip"},
		{name: "a pipe for .gitignore", worker: "echo x > x; mkfifo .gitignore", refused: ".gitignore is a named pipe"},
		{name: "a pipe for .gitattributes below", worker: "mkdir d; echo x > d/x; mkfifo d/.gitattributes", refused: "d/.gitattributes is a named pipe"},
		{name: "a pipe for .git", worker: "echo x > x; mkdir d; mkfifo d/.git", refused: "d/.git is a named pipe"},
		{name: "a pipe for the HEAD of a nested repository", worker: "git init -q n; rm n/.git/HEAD; mkfifo n/.git/HEAD; echo x > x", refused: "is a named pipe"},
		{name: "a pipe in the place of a file", worker: "rm README.md; mkfifo README.md; echo x > x", refused: "README.md is a named pipe"},
		{name: "a pipe and a socket elsewhere", worker: "mkfifo p; echo x > x"},
		{name: "a pipe for the index", stopped: true, worker: "echo x > x; i=$(git rev-parse --git-dir)/index; rm -f \"$i\"; mkfifo \"$i\""},
		{
			name: "a pipe that the test leaves",
			before: func(s *siege) {
				s.Write(".chipset/chipset.yaml", strings.Replace(s.definition(), `test: "true"`, `test: "sh test.sh"`, 1))
				s.Write("test.sh", "exit 0\n")
				s.Git("add", "test.sh")
				s.Git("commit", "-qm", "a test")
			},
			worker: "echo 'rm -f .gitattributes; mkfifo .gitattributes sub/.gitignore; exit 0' > test.sh; mkdir sub; echo x > sub/x",
		},
		{
			name: "ignored files that steer the next worker",
			before: func(s *siege) {
				s.Write(".gitignore", ".claude/settings.local.json\n.env\nCLAUDE.local.md\nnode_modules/\n")
				s.Git("add", ".gitignore")
				s.Git("commit", "-qm", "ignore")
			},
			worker: "mkdir .claude node_modules; echo x | tee .claude/settings.local.json .env CLAUDE.local.md node_modules/x > x",
			after: func(s *siege) {
				at := filepath.Join(s.Dir, ".chipset", "worktrees", "polecat-alpha")
				for name, stays := range map[string]bool{".claude/settings.local.json": false, ".env": false, "CLAUDE.local.md": false, "node_modules/x": true} {
					if _, err := os.Lstat(filepath.Join(at, name)); (err == nil) != stays {
						s.Errorf("%s: %v", name, err)
					}
				}
			},
		},
	}
}
