package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
)

func TestMain(m *testing.M) {
	cobra.EnableCommandSorting = false
	testscript.Main(m, map[string]func(){"chipset": main})
}

// TestScripts drives the real command line, a feature a script: its first line says
// what the feature promises. Every script begins in a fresh git repository with one
// commit on main, and they run in parallel.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup:               setupRepository,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"rig":       makeRig,
			"bead":      addBead,
			"capture":   capture,
			"exitcode":  exitcode,
			"countline": countLines,
		},
	})
}

func setupRepository(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	repo := filepath.Join(env.WorkDir, "my-rig")
	for _, dir := range []string{home, repo} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	config := "[user]\n\tname = Test\n\temail = test@example.com\n[init]\n\tdefaultBranch = main\n[commit]\n\tgpgsign = false\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o644); err != nil {
		return err
	}
	// The scripts have no terminal, and decide as the person.
	token := filepath.Join(home, ".config", "chipset", "person-token")
	if err := os.MkdirAll(filepath.Dir(token), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(token, []byte("of the scripts\n"), 0o600); err != nil {
		return err
	}
	env.Setenv("CHIPSET_PERSON_TOKEN", "of the scripts")
	env.Setenv("HOME", home)
	env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	env.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, ".gitconfig"))
	env.Setenv("TZ", "UTC")
	env.Setenv("GORACE", "atexit_sleep_ms=0") // else every command of a race build waits for a second at its end
	for _, args := range [][]string{{"init", "-q"}, {"commit", "-q", "--allow-empty", "-m", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = repo, env.Vars
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %v: %w: %s", args, err, out)
		}
	}
	env.Cd = repo
	return nil
}

// makeRig is the command "rig N": it makes a rig with N polecats, a worker that
// runs its bead as a shell script, and a test that always passes.
func makeRig(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: rig POLECATS")
	}
	ts.Check(ts.Exec("chipset", "init", "--worker", "sh", "--test", "true", "--polecats", args[0]))
}

// addBead is the command "bead NAME TITLE [OPTION…]": it adds a bead and puts its
// ID into the variable NAME.
func addBead(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: bead NAME TITLE [OPTION…]")
	}
	ts.Check(ts.Exec("chipset", append([]string{"work", "add"}, args[1:]...)...))
	capture(ts, false, args[:1])
}

// capture NAME puts the last standard output, trimmed, into a variable.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: capture NAME")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// exitcode N chipset ARG… runs the command line and wants this exit code. Its
// output is shown in the log of the test and kept for stdout and stderr.
func exitcode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode N chipset ARG…")
	}
	script := `"$@"; code=$?; [ "$code" = "` + args[0] + `" ] || { echo "exit code $code, expected ` + args[0] + `" >&2; exit 1; }`
	if err := ts.Exec("sh", append([]string{"-c", script, "sh"}, args[1:]...)...); err != nil {
		ts.Fatalf("%v: %v", args, err)
	}
}

// countline N TEXT wants exactly N lines of the last standard output to hold TEXT.
func countLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: countline N TEXT")
	}
	n := 0
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		if strings.Contains(line, args[1]) {
			n++
		}
	}
	if fmt.Sprint(n) != args[0] {
		ts.Fatalf("%d lines hold %q, expected %s", n, args[1], args[0])
	}
}
