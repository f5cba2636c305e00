package main

import (
	"os"
	"strings"
	"testing"
)

// TestPagerAndColours looks at what a real terminal shows: a pager where there may be one, the width,
// and colours unless the person wants none.
func TestPagerAndColours(t *testing.T) {
	dir, chipset := newTerminalRig(t)
	id := chipset("work", "add", "Add subtraction, and say in the README how it is to be used, with an example")
	chipset("work", "cancel", id)
	s := newScreen(t, 60, 30, dir, []string{"HOME=" + os.Getenv("HOME"), "TERM=xterm-256color", "PS1=$ ", "PAGER=sed s/^/paged:/"}, "sh")
	try := func(command, mark string) (plain, coloured string) {
		t.Helper()
		s.keys("clear; "+command+"; echo "+mark[:1]+"''"+mark[1:], "Enter")
		plain = s.until(mark, "!clear;")
		return plain, s.tmux("capture-pane", "-p", "-e", "-t", "x")
	}
	plain, coloured := try("chipset work list", "first")
	if !strings.Contains(plain, "paged:ID") || !strings.Contains(plain, "…") || !strings.Contains(coloured, "\x1b[2m") {
		t.Errorf("with a pager:\n%s\n%q", plain, coloured)
	}
	for command, why := range map[string]string{"chipset work list --no-pager": "--no-pager", "TERM=dumb chipset work list": "a dumb terminal",
		"chipset version": "a line", "PAGER=no-such-program chipset work list": "a pager that is not there"} {
		if plain, _ := try(command, "second"); strings.Contains(plain, "paged:") || strings.Contains(plain, "no-such-program:") {
			t.Errorf("%s goes into the pager:\n%s", why, plain)
		}
	}
	for _, command := range []string{"NO_COLOR=1 chipset work list", "TERM=dumb chipset work list", "NO_COLOR=1 chipset status"} {
		if _, coloured := try(command, "third"); strings.Contains(coloured, "\x1b[2m") || strings.Contains(coloured, "\x1b[1m") {
			t.Errorf("%s has colours:\n%q", command, coloured)
		}
	}
	if plain, _ := try("PAGER='head -n 1' chipset log", "fourth"); strings.Contains(plain, "chipset:") {
		t.Errorf("a pager that is left early:\n%s", plain)
	}
}
