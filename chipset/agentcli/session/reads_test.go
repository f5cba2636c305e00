package session

import (
	"testing"
)

func TestOnlyReads(t *testing.T) {
	for _, line := range []string{
		"ls -la && cat go.mod", "rg -n 'func main' --type go | head -20", "git log --oneline -5; git diff HEAD~1", "grep -r foo . 2>/dev/null | wc -l",
		"find . -name '*.go' -not -path './vendor/*'", "sed -n '10,20p' main.go", "cd sub && git --no-pager show HEAD:main.go",
		"chipset request plan --body-file - --wait 90s <<'END'\nI write > a file\nEND", "for f in a b; do cat $f; done", "if [ -f x ]; then echo yes; fi",
		"cat <(git show HEAD:a)", "echo $(git rev-parse HEAD) 2>&1", "git branch -a", "sort a | uniq -c", `echo "a > b"`,
	} {
		if !onlyReads(line) {
			t.Errorf("only reads, and yet refused: %s", line)
		}
	}
	for _, line := range []string{
		"echo hello > greeting.txt", "cat a >> b", "rm -rf x", "touch a", "sed -i s/a/b/ x", "sed -n 'w out' x", "find . -delete", "find . -name x -exec rm {} +",
		"git commit -am x", "git checkout .", "git -c core.pager=sh log", "git diff --output=x", "git branch new", "tee x < y", "cat a | tee b",
		"python3 -c 'open(\"x\",\"w\")'", "sh -c 'rm x'", "eval rm x", "PATH=/tmp ls", "GIT_EXTERNAL_DIFF=rm git diff", "ls() { rm x; }; ls", "$(rm x)", "echo $(rm x)",
		"cat >| x", "echo x >&file", "echo x &> f", "X=-delete; find . $X", "sort -o x y", "uniq a b", "go generate ./...", "`rm x`", "ls; rm x", "ls | xargs rm",
		"rg --pre rm x", "export X=1", "exec 3> x", "echo 'unfinished", "awk '{print > \"x\"}' y", "cat <(rm x)",
	} {
		if onlyReads(line) {
			t.Errorf("may change something, and yet allowed: %s", line)
		}
	}
}

func FuzzOnlyReads(f *testing.F) {
	for _, s := range []string{"ls", "cat <<E\nx\nE", "a=$(b)", "((", "git -C"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if onlyReads("rm x\n" + line) {
			t.Errorf("%q hides what stands before it", line)
		}
	})
}
