package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/tools/txtar"

	"github.com/gastown-chipset/chipset/chipset/git/gittest"
)

// tmuxScreen is a real terminal with a command in it.
type tmuxScreen struct {
	*testing.T
	socket string
}

// newScreen starts a command in tmux, in a folder.
func newScreen(t *testing.T, width, height int, dir string, env []string, command ...string) *tmuxScreen {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("CHIPSET_CI") != "" {
			t.Fatal(err)
		}
		t.Skip("tmux is not installed")
	}
	s := &tmuxScreen{t, filepath.Join(t.TempDir(), "tmux")}
	args := []string{"-f", "/dev/null", "new-session", "-d", "-s", "x", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), "-c", dir}
	for _, e := range env {
		args = append(args, "-e", e)
	}
	s.tmux(append(args, command...)...)
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", s.socket, "kill-server").Run() })
	return s
}

func (s *tmuxScreen) tmux(args ...string) string {
	s.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", s.socket}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("tmux %s: %v\n%s", args, err, out)
	}
	return string(out)
}

// text is what the screen shows.
func (s *tmuxScreen) text() string { s.Helper(); return s.tmux("capture-pane", "-p", "-t", "x") }

// until waits until the screen shows all of some texts, and none that begins with "!".
func (s *tmuxScreen) until(wants ...string) string {
	s.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		text, missing := s.text(), ""
		for _, want := range wants {
			if not, is := strings.CutPrefix(want, "!"); is == strings.Contains(text, strings.TrimPrefix(not, "!")) {
				missing = want
			}
		}
		if missing == "" {
			return text
		}
		if time.Now().After(deadline) {
			s.Fatalf("no %q on the screen:\n%s", missing, text)
		}
	}
}

func (s *tmuxScreen) keys(keys ...string) {
	s.Helper()
	s.tmux(append([]string{"send-keys", "-t", "x"}, keys...)...)
}

// newTerminalRig makes a rig, and returns its folder and a function that runs a command in it.
func newTerminalRig(t testing.TB) (string, func(args ...string) string) {
	t.Helper()
	return newTerminalRigOf(t, 2)
}

// newTerminalRigOf makes a rig with so many polecats.
func newTerminalRigOf(t testing.TB, polecats int) (string, func(args ...string) string) {
	t.Helper()
	restore := gittest.Isolate()
	t.Cleanup(restore)
	dir := gittest.Repo(t)
	chipset := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("chipset", args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("chipset %s: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	chipset("init", "--worker", "sh", "--polecats", fmt.Sprint(polecats), "--test", "true")
	return dir, chipset
}

// TestUpInATerminal: the story goes by above two lines that stay, and that are gone at the
// end.
func TestUpInATerminal(t *testing.T) {
	dir, chipset := newTerminalRig(t)
	s := newScreen(t, 100, 20, dir, []string{"HOME=" + os.Getenv("HOME"), "TERM=xterm-256color", "PS1=$ "}, "sh")
	s.keys("chipset up", "Enter")
	s.until("no work yet: chipset work add", "0 of 2 at work", "nothing waits for you", "chipset board shows more")
	chipset("work", "add", "Wait for me", "-d", "while [ ! -e go ]; do sleep 0.1; done; echo done > file; git add file; git commit -qm done")
	text := s.until("1 of 2 at work", "0 ready")
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if n := strings.Count(text, "at work"); n != 1 || !strings.Contains(lines[len(lines)-2], "1 of 2 at work") {
		t.Errorf("the footer stands %d times on the screen:\n%s", n, text)
	}
	s.keys("C-c")
	s.until("taking no new work")
	chipset("down", "--now")
	text = s.until("0 beads landed", "!chipset board shows more")
	if strings.Contains(text, "of 2 at work") || strings.Contains(text, "of 1 at work") {
		t.Errorf("the footer is left behind:\n%s", text)
	}
}

// TestBoardInATerminal types into a real terminal, and looks at what it shows and at what
// became of the rig.
func TestBoardInATerminal(t *testing.T) {
	dir, chipset := newTerminalRig(t)
	first := chipset("work", "add", "Add subtraction")
	chinese := chipset("work", "add", "用中文写一份很长的文档，说明这个系统是如何工作的，以及为什么这样工作")
	chipset("work", "add", "اكتب الوثائق بالعربية")
	chipset("work", "add", "An \x1b[31mevil\x07 title")
	chipset("work", "edit", chinese, "--blocked-by", first)

	path, err := exec.LookPath("chipset")
	if err != nil {
		t.Fatal(err)
	}
	s := newScreen(t, 80, 24, dir, []string{"HOME=" + os.Getenv("HOME"), "TERM=xterm-256color"}, path, "board")
	text := s.until("down", "nothing needs you", "2 Agents", "0 of 5 running", "3 Work", "Add subtraction", "◂ "+first, "An [31mevil title", "4 Queue")
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if begin := strings.TrimSpace(line); i > 0 && i < 23 && !strings.ContainsAny(begin[:3], "╭│╰") {
			t.Errorf("line %d has no frame: %q", i, line)
		}
	}

	// It follows what others do, filters as one types, and has a help.
	added := chipset("work", "add", "Born while you look")
	s.until("Born while you look")
	s.keys("/", "born")
	s.until("3 Found", "○ "+added, "bead.added "+added, "!Add subtraction")
	s.keys("Escape")
	s.until("Add subtraction")
	s.keys("?")
	s.until("cancel a bead", "any key closes")
	s.keys("x")

	// An act asks first, and is done by the command.
	s.keys("/", "born", "Enter")
	s.until("3 Found")
	s.keys("c")
	s.until("Cancel "+added+" Born while you look?", "It will not be done.")
	s.keys("y")
	s.until("✓ work cancel " + added)
	if got := chipset("work", "show", added); !strings.Contains(got, "cancelled") {
		t.Errorf("after cancel:\n%s", got)
	}

	// Any command, run by its own code; a large screen; the end.
	s.keys("Escape")
	s.until("3 Work")
	s.keys(":", "work list", "Enter")
	s.until("work list", "STATUS", "cancelled")
	s.tmux("resize-window", "-t", "x", "-x", "250", "-y", "70")
	s.until("chipset up starts it", "5 work list")
	s.keys("Escape")
	s.until("!5 work list")
	s.keys("3")
	s.until("story transcript diff mail", "用中文写一份很长的文档，说明这个系统是如何工作的，以及为什么这样工作")
	s.keys("q")
	deadline := time.Now().Add(time.Minute)
	for exec.Command("tmux", "-S", s.socket, "has-session", "-t", "x").Run() == nil {
		if time.Now().After(deadline) {
			t.Fatal("q does not leave the board")
		}
	}
}

// straight reports the lines of a screen that a frame does not close at its right edge.
func straight(text string, width int) (crooked []string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if i > 0 && i < len(lines)-1 && (ansi.StringWidth(line) != width || !strings.HasSuffix(line, "│") && !strings.HasSuffix(line, "╮") && !strings.HasSuffix(line, "╯")) {
			crooked = append(crooked, line)
		}
	}
	return crooked
}

// TestBoardOnEveryTerminal: with 16 colours and with none, small and large, with titles in
// Chinese and Arabic. What a terminal is sent is what it can show.
func TestBoardOnEveryTerminal(t *testing.T) {
	dir, chipset := newTerminalRig(t)
	first := chipset("work", "add", "Add subtraction", "-p", "P1")
	chipset("work", "add", "用中文写一份很长的文档，说明这个系统是如何工作的，以及为什么这样工作", "--blocked-by", first)
	chipset("work", "add", "اكتب الوثائق بالعربية واشرح كيف يعمل هذا النظام", "--blocked-by", first)
	last := chipset("work", "add", "👩‍👩‍👧 families and flags 🇩🇪 é")
	path, err := exec.LookPath("chipset")
	if err != nil {
		t.Fatal(err)
	}
	large := regexp.MustCompile(`\x1b\[[0-9;]*[34]8;[25];`)
	colours := regexp.MustCompile(`\x1b\[(?:[0-9]+;)*(?:3[0-7]|9[0-7])[;m]`)
	for _, size := range [][2]int{{80, 24}, {250, 70}} {
		for name, env := range map[string][]string{"16 colours": {"TERM=xterm"}, "no colours": {"TERM=xterm-256color", "NO_COLOR=1"}} {
			t.Run(fmt.Sprintf("%s %dx%d", name, size[0], size[1]), func(t *testing.T) {
				s := newScreen(t, size[0], size[1], dir, append(env, "HOME="+os.Getenv("HOME")), path, "board")
				text := s.until("3 Work", "Add subtraction", "用中文", "اكتب", "families")
				if bad := straight(text, size[0]); len(bad) > 0 {
					t.Errorf("not straight:\n%s\nof\n%s", strings.Join(bad, "\n"), text)
				}
				sent := s.tmux("capture-pane", "-p", "-e", "-t", "x")
				if large.MatchString(sent) {
					t.Errorf("more than 16 colours:\n%q", large.FindString(sent))
				}
				if has := colours.MatchString(sent); has != (name == "16 colours") {
					t.Errorf("colours: %v", has)
				}

				// A click selects, the wheel moves, the graph and the help are straight, too.
				row := strings.Count(text[:strings.Index(text, last)], "\n") + 1
				s.keys("-l", fmt.Sprintf("\x1b[<0;6;%dM\x1b[<0;6;%dm", row, row))
				s.until("▸ ○ " + last)
				s.keys("-l", fmt.Sprintf("\x1b[<64;6;%dM", row))
				s.until("▸ ○ " + first)
				s.keys(",")
				s.until("○─╮ " + first)
				if bad := straight(s.text(), size[0]); len(bad) > 0 {
					t.Errorf("the graph is not straight:\n%s", strings.Join(bad, "\n"))
				}
				s.keys("?")
				s.until("any key closes")
				if bad := straight(s.text(), size[0]); len(bad) > 0 {
					t.Errorf("under the help:\n%s", strings.Join(bad, "\n"))
				}
			})
		}
	}
}

// TestEditInATerminal: the bead opens in the person's editor, and what is written there goes
// through the command.
func TestEditInATerminal(t *testing.T) {
	dir, chipset := newTerminalRig(t)
	id := chipset("work", "add", "Ad subtracton", "-d", "For integers.")
	editor := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nsed -i -e '1s/.*/Add subtraction/' -e '3s/integers/all numbers/' \"$1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	path, err := exec.LookPath("chipset")
	if err != nil {
		t.Fatal(err)
	}
	s := newScreen(t, 100, 30, dir, []string{"HOME=" + os.Getenv("HOME"), "TERM=xterm-256color", "EDITOR=" + editor}, path, "board")
	s.until("Ad subtracton")
	s.keys("3", "e")
	s.until("✓ work edit "+id, "Add subtraction", "!Ad subtracton")
	if got := chipset("work", "show", id); !strings.Contains(got, "Add subtraction") || !strings.Contains(got, "For all numbers.") {
		t.Errorf("after e:\n%s", got)
	}
}

// TestAttachFromTheBoard: one key gives the terminal to the client of a worker's session.
// When the person leaves the client, the board is there again, and the rig goes on.
func TestAttachFromTheBoard(t *testing.T) {
	dir, chipset := newTerminalRig(t)
	story, err := txtar.ParseFile("testdata/attach.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range story.Files {
		switch f.Name {
		case "client.sh":
			gittest.Write(t, dir, f.Name, string(f.Data))
			gittest.Run(t, dir, "add", f.Name)
			gittest.Run(t, dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "client")
		case "chipset.yaml":
			gittest.Write(t, dir, ".chipset/"+f.Name, string(f.Data))
		}
	}
	id := chipset("work", "add", "Write it")
	up := exec.Command("chipset", "up", "--until-idle", "--timeout", "60s")
	up.Dir = dir
	var said bytes.Buffer
	up.Stdout, up.Stderr = &said, &said
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- up.Wait() }()
	t.Cleanup(func() { _ = up.Process.Kill() })
	path, err := exec.LookPath("chipset")
	if err != nil {
		t.Fatal(err)
	}
	s := newScreen(t, 100, 30, dir, []string{"HOME=" + os.Getenv("HOME"), "TERM=xterm-256color"}, path, "board")
	s.until("working")
	s.keys("2", "Home")
	s.until("▸ ● polecat-alpha", "a attach")
	for begun := false; !begun && len(ended) == 0; {
		begun = strings.Contains(chipset("status", "--json"), `"client_session"`)
	}
	s.keys("a")
	s.until("the client is on a terminal")
	gittest.Write(t, dir, ".chipset/worktrees/polecat-alpha/seen", "")
	s.until("Agents", "!the client is on a terminal")
	gittest.Write(t, dir, "go", "")
	if err := <-ended; err != nil {
		t.Fatalf("up: %v\n%s", err, &said)
	}
	if got := chipset("diff", id); !strings.Contains(got, "+begun\n+by hand\n+the rest") {
		t.Errorf("landed:\n%s\nup said:\n%s", got, &said)
	}
}
