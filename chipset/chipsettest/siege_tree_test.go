package chipsettest_test

import "strings"

// treeActs are branches that no git, or no file system, can check out, and those that leave out or go beyond their share.
func treeActs() []hostileAct {
	// commit makes the tree $t the work.
	const commit = "\ngit reset -q --soft $(git commit-tree -p HEAD -m evil $t)\n"
	const blob = "b=$(echo x | git hash-object -w --stdin)\n"
	const literally = `
entry() { printf '%s %s\0' "$1" "$2"; printf %s "$3" | sed 's/../\\x&/g' | xargs -0 printf; }
tree() { git hash-object -w -t tree --literally --stdin; }
`
	return []hostileAct{
		{name: "a tree with .git", worker: literally + blob + "t=$(entry 100644 .git $b | tree)" + commit, refused: "is .git"},
		{name: "a tree with .GIT", worker: literally + blob + "i=$(entry 100755 config $b | tree); t=$(entry 40000 .GIT $i | tree)" + commit, refused: "is .git"},
		{name: "a tree with git~1", worker: literally + blob + "t=$(entry 100644 git~1 $b | tree)" + commit, refused: "is .git"},
		{name: "a folder .GIT that is not committed", worker: "mkdir .GIT; echo x > .GIT/config; echo x > x", refused: "is .git"},
		{name: "a tree with ..", worker: literally + blob + "i=$(entry 100644 x $b | tree); t=$(entry 40000 .. $i | tree)" + commit, refused: "leads elsewhere"},
		{name: "a tree with a slash", worker: literally + blob + "t=$(entry 100644 ../../x $b | tree)" + commit, refused: "leads elsewhere"},
		{name: "a tree that is cut", worker: "t=$(printf '100644 x\\0short' | git hash-object -w -t tree --literally --stdin)" + commit, refused: "malformed"},
		{name: "a commit without an author", worker: "c=$(printf 'tree %s\\nparent %s\\n\\nm\\n' $(git rev-parse HEAD^{tree} HEAD) | git hash-object -w -t commit --literally --stdin); git update-ref HEAD $c",
			refused: "malformed"},
		{name: "a deep tree", worker: "git clone -q --bare . own\np=$(printf 'd/%.0s' $(seq 1500))x\n" +
			"printf 'commit refs/heads/polecat/deep\ncommitter a <a@b> 1 +0000\ndata 1\nm\nfrom %s\nM 100644 inline %s\ndata 1\nx\n' $(git rev-parse HEAD) $p | git -C own fast-import --quiet --force\n" +
			"git -C own pack-objects --all --stdout --quiet </dev/null | git unpack-objects -q\n" +
			"git update-ref HEAD $(git -C own rev-parse refs/heads/polecat/deep)\nrm -rf own", refused: "nested too deeply"},
		{name: "a bomb of trees", worker: literally + blob + "t=$(entry 100644 x $b | tree); for i in 1 2 3 4 5 6 7 8 9; do t=$(for n in 0 1 2 3 4 5 6 7 8 9; do entry 40000 $n $t; done | tree); done" + commit,
			refused: "more than 1000000 files"},
		{name: "folders too deep to be opened", worker: "echo x > x; n=$(printf %0150d 7); mkdir a; echo y > a/y; for i in $(seq 30); do mkdir b; mv a b/$n; mv b a; done",
			refused: "too deep"},
		{name: "a submodule that runs a command", worker: "printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = ext::sh -c evil\\n' > .gitmodules", refused: "could run commands"},
		{name: "a link for .gitmodules", worker: "ln -s README.md .gitmodules", refused: "symbolic link"},
		{name: "work below .chipset", worker: "mkdir -p .chipset/state; echo x > .chipset/state/x; git add -f .chipset; git commit -qm x", refused: ".chipset"},
		{name: "work below .Chipset", worker: "mkdir -p .Chipset/state; echo x > .Chipset/state/x", refused: ".chipset"},
		{
			name:    "work that a rename takes below .chipset",
			stopped: true,
			before: func(s *siege) {
				s.Write("conf/a.yaml", "one\ntwo\nthree\nfour\n")
				s.Git("add", "conf")
				s.Git("commit", "-qm", "conf")
			},
			worker: "sed -i s/two/2/ conf/a.yaml; cd \"$MAIN\"; git mv conf/a.yaml .chipset/a.yaml; git commit -qm moved", refused: "changes .chipset/",
		},
		{
			name: "a file that a filter of the person's can't check out",
			before: func(s *siege) {
				s.Write(".gitattributes", "*.secret filter=secret\n")
				s.Git("add", ".gitattributes")
				s.Git("commit", "-qm", "secrets")
				s.Git("config", "filter.secret.clean", "cat")
				s.Git("config", "filter.secret.smudge", "! grep bad")
				s.Git("config", "filter.secret.required", "true")
			},
			worker: "echo bad > x.secret", refused: "git can check out what it was to land on, but not its branch",
		},
		{name: "a hook for everybody", worker: "mkdir .husky; cp $PROGRAM .husky/pre-commit; echo x > x", waits: true},
		{name: "configuration of a client, in capitals", worker: "mkdir sub sub/.Claude; echo '{}' > sub/.Claude/settings.json", waits: true},
		{name: "a CI job through a link", worker: "mkdir w; echo x > w/ci.yml; mkdir .github; ln -s ../w .github/workflows", waits: true},
		{name: "a branch of another history", worker: "git checkout -q --orphan polecat/o; git commit -qm o", refused: "no history in common"},
		{
			name: "a branch that leaves out what it began on",
			before: func(s *siege) {
				s.Write("second.txt", "x\n")
				s.Git("add", "second.txt")
				s.Git("commit", "-qm", "second")
			},
			worker:  "git reset -q --hard HEAD^; echo x > x",
			refused: "does not descend",
		},
		{
			name:    "the target moved past the queue",
			stopped: true,
			worker:  "echo sly > sly; git add sly; git commit -qm 'a sly commit'; git update-ref refs/heads/main HEAD; git reset -q --hard HEAD^; echo x > x",
			told:    "never tested",
		},
		{
			name:    "the target moved by the person",
			persons: true,
			worker:  "cd \"$MAIN\"; echo mine > mine; git add mine; git commit -qm mine; cd -; echo x > x",
			after: func(s *siege) {
				if inbox := s.Chipset("mail", "inbox"); strings.Contains(inbox, "never tested") {
					s.Errorf("the person was told of a commit of their own:\n%s", inbox)
				}
			},
		},
	}
}
