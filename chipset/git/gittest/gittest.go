// Package gittest makes repositories for tests, and runs git in them as a person
// does: without the settings and checks of package git.
package gittest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Isolate hides the user's configuration from git and from
// rigs, for this process and those that it starts. It is for TestMain, which calls
// restore before it exits. The variables that control the tests stay: CHIPSET_CI, CHIPSET_FULL, CHIPSET_SEED.
func Isolate() (restore func()) {
	home, err := os.MkdirTemp("", "chipset-test-home-")
	if err != nil {
		panic(err)
	}
	stays := map[string]bool{"CHIPSET_CI": true, "CHIPSET_FULL": true, "CHIPSET_SEED": true}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "GIT_") || strings.HasPrefix(name, "CHIPSET_") && !stays[name] || name == "EMAIL" {
			os.Unsetenv(name)
		}
	}
	for name, value := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": home, "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	return func() { os.RemoveAll(home) }
}

// Dir is a new folder, without links in its path, on a file system that syncs at no
// cost where there is one: such a test is of killed processes, not of power cuts.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "chipset-test-")
	if err != nil {
		dir = t.TempDir()
	} else {
		t.Cleanup(func() {
			err := os.RemoveAll(dir)
			for range 1000 { // a program that was killed with its terminal may write until it is gone
				if err == nil {
					return
				}
				err = os.RemoveAll(dir)
			}
			t.Error(err)
		})
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Repo is Dir with a repository in it, as Init makes it.
func Repo(t testing.TB) string {
	t.Helper()
	dir := Dir(t)
	Init(t, dir)
	return dir
}

// Init makes a repository of dir with one commit on main, which holds README. It
// configures nobody's identity.
func Init(t testing.TB, dir string) {
	t.Helper()
	Write(t, dir, "README", "hello\n")
	Run(t, dir, "init", "-q", "-b", "main", "--template=")
	Run(t, dir, "add", "README")
	Run(t, dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "first")
}

// Run runs git in dir and returns its trimmed output; a failure ends the test.
func Run(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Write puts a file below dir, and makes the folders on the way.
func Write(t testing.TB, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
