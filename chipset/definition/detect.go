package definition

import (
	"encoding/json"
	"slices"
	"strings"
)

// DetectTest guesses a repository's test command from its files, or returns "". A
// Makefile comes first: whoever wrote a target named test meant exactly this. The
// paths passed to has and read are relative to the repository's root and
// slash-separated; read returns nil for what it can't read.
func DetectTest(has func(path string) bool, read func(path string) []byte) string {
	for _, makefile := range []string{"GNUmakefile", "makefile", "Makefile"} {
		if has(makefile) {
			if hasTestTarget(read(makefile)) {
				return "make test"
			}
			break // make reads the first of these names only
		}
	}
	switch {
	case has("go.mod"):
		return "go test ./..."
	case has("Cargo.toml"):
		return "cargo test"
	case has("package.json") && hasTestScript(read("package.json")):
		return "npm test"
	case has("pytest.ini"), has("pyproject.toml"), has("tests") && hasPython(has):
		return "python3 -m pytest -q"
	}
	return ""
}

// DetectTests guesses the test commands of folders that are projects of their own, each with its folder before it.
func DetectTests(folders []string, has func(path string) bool, read func(path string) []byte) (found []string) {
	for _, dir := range folders {
		test := DetectTest(func(p string) bool { return has(dir + "/" + p) }, func(p string) []byte { return read(dir + "/" + p) })
		if test != "" {
			found = append(found, "cd "+dir+" && "+test)
		}
	}
	return found
}

// hasPython reports whether a project is one in Python, by the files in its root: a
// folder named tests alone says nothing.
func hasPython(has func(path string) bool) bool {
	return slices.ContainsFunc([]string{"setup.py", "setup.cfg", "requirements.txt", "tests/conftest.py", "tests/__init__.py", "conftest.py"}, has)
}

// hasTestTarget reports whether there is a rule for the target test. Assignments such
// as test := x and indented lines of recipes don't count.
func hasTestTarget(makefile []byte) bool {
	for line := range strings.Lines(string(makefile)) {
		targets, rest, found := strings.Cut(line, ":")
		if !found || strings.HasPrefix(strings.TrimLeft(rest, ":"), "=") || strings.HasPrefix(line, "\t") {
			continue
		}
		for _, target := range strings.Fields(targets) {
			if target == "test" {
				return true
			}
			if strings.HasPrefix(target, "#") || strings.Contains(target, "=") {
				break
			}
		}
	}
	return false
}

// hasTestScript reports whether there is a test script other than the one of npm init,
// which only fails.
func hasTestScript(manifest []byte) bool {
	var parsed struct {
		Scripts map[string]any `json:"scripts"`
	}
	if json.Unmarshal(manifest, &parsed) != nil {
		return false
	}
	script, _ := parsed.Scripts["test"].(string)
	return strings.TrimSpace(script) != "" && !strings.Contains(script, "no test specified")
}

// DetectWorktree guesses what a worktree needs beside what git checks out. ignored are the files and folders that git
// ignores; has and read are those of DetectTest.
func DetectWorktree(ignored []string, has func(path string) bool, read func(path string) []byte) Worktree {
	w := Worktree{Submodules: has(".gitmodules"), LFS: strings.Contains(string(read(".gitattributes")), "filter=lfs")}
	if slices.Contains(ignored, ".env") {
		w.Copy = []string{".env"}
	}
	if !has("package.json") {
		return w
	}
	for _, manager := range [][2]string{{"package-lock.json", "npm ci"}, {"pnpm-lock.yaml", "pnpm install --frozen-lockfile"}, {"yarn.lock", "yarn install --frozen-lockfile"}} {
		if has(manager[0]) {
			w.Setup, w.SetupWhen = Command{Line: manager[1]}, manager[:1]
			return w
		}
	}
	if slices.Contains(ignored, "node_modules/") {
		w.Link = []string{"node_modules"}
	}
	return w
}
