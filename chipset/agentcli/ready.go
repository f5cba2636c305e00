package agentcli

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/state/fault"
)

// Account says how to find out, without asking the service, whether somebody is logged in.
type Account struct {
	// Keys are environment variables; any one of them is enough.
	Keys []string
	// Other reports whether the settings in a folder (the first of Home.Own) name another way to log in. nil: there is none.
	Other func(settings string) bool
	// Status are the arguments that make the program report whether somebody is logged in, LoggedOut what it prints
	// if nobody is. Without them nobody is logged in unless there is a key or another way.
	Status    []string
	LoggedOut string
	// Login is the command line that logs a person in.
	Login string
}

// Readiness says whether a client can start as a preset says.
type Readiness struct {
	// Path is the program, Version the version that it prints, both "" if not known.
	Path, Version string
	// Fault is why it can't start, zero if nothing is known to prevent it.
	Fault fault.Fault
	// Mend is a command line that mends it, or "".
	Mend string
}

// Surroundings are the home, environment and permission that a client starts with.
type Surroundings struct {
	Home    string
	Environ []string
	// Permission is ask, edit, full or "".
	Permission string
}

func (s *Surroundings) lookup(name string) string {
	for _, entry := range slices.Backward(s.Environ) {
		if value, is := strings.CutPrefix(entry, name+"="); is {
			return value
		}
	}
	return ""
}

// Ready checks whether a preset can start: its program exists, knows the options on its command line, and somebody is
// logged in. No model is asked. A check that does not finish within the deadline counts as passed.
func Ready(ctx context.Context, c *Client, p Preset, s Surroundings, deadline time.Duration) Readiness {
	program := p.Command[0]
	if strings.Contains(program, "/") && !filepath.IsAbs(program) || p.Env["PATH"] != "" {
		return Readiness{} // found where it runs, or not
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return Readiness{Fault: fault.New(fault.ClientMissing, fmt.Sprintf("%s: %s", fault.ClientMissing.Phrase(), program)), Mend: "chipset runtime list"}
	}
	r := Readiness{Path: path}
	if filepath.Base(program) != c.Preset.Command[0] || p.Prompt == PromptScript {
		return r // a wrapper, which may take other arguments
	}
	for name, value := range p.Env {
		s.Environ = append(slices.Clip(s.Environ), name+"="+value)
	}
	answers := make(chan func(), 3)
	go func() {
		version, _ := ask(ctx, path, []string{"--version"}, s.Environ, deadline)
		answers <- func() { r.Version = versionIn(version) }
	}()
	go func() {
		option := c.unknownOption(ctx, path, p, s, deadline)
		answers <- func() {
			if option != "" && r.Fault.IsZero() {
				r.Fault = fault.New(fault.FlagsRefused, fmt.Sprintf("%s: %s has no option %s", fault.FlagsRefused.Phrase(), c.About.Title, option))
				r.Mend = "chipset runtime show " + p.Name
			}
		}
	}()
	go func() {
		out := c.loggedOut(ctx, path, s, deadline)
		answers <- func() {
			if out {
				r.Fault = fault.New(fault.NotLoggedIn, fmt.Sprintf("%s: %s, or a key in $%s", fault.NotLoggedIn.Phrase(), c.Account.Login, c.Account.Keys[0]))
				r.Mend = c.Account.Login
			}
		}
	}()
	for range cap(answers) {
		(<-answers)()
	}
	if ctx.Err() != nil {
		return Readiness{Path: path}
	}
	return r
}

// unknownOption returns the first long option on the command line that the program's help does not name, or "".
func (c *Client) unknownOption(ctx context.Context, path string, p Preset, s Surroundings, deadline time.Duration) string {
	if len(c.Help) == 0 {
		return ""
	}
	help, err := ask(ctx, path, c.Help, s.Environ, deadline)
	if err != nil || !strings.Contains(help, "--help") {
		return ""
	}
	argv := slices.Concat(p.Command, p.Permissions[s.Permission])
	kit := Kit{Chipset: path, Permission: s.Permission, Session: "s", Files: "/f", Hooks: true, MCP: true}
	given := c.Start(argv, kit).Argv
	for _, arg := range given {
		option, _, _ := strings.Cut(arg, "=")
		if strings.HasPrefix(option, "--") && !regexp.MustCompile(regexp.QuoteMeta(option)+`([^A-Za-z0-9-]|$)`).MatchString(help) {
			return option
		}
	}
	return ""
}

// Settings is the folder of its settings.
func (c *Client) Settings(s Surroundings) string {
	moved := s.lookup(c.Home.Moved)
	switch {
	case c.Home.Moved == "" || moved == "":
		return filepath.Join(s.Home, c.Home.Own[0])
	case c.Home.MovedAbove:
		return filepath.Join(moved, c.Home.Own[0])
	}
	return moved
}

// loggedOut reports whether it is certain that nobody is logged in.
func (c *Client) loggedOut(ctx context.Context, path string, s Surroundings, deadline time.Duration) bool {
	a := c.Account
	if a == nil || slices.ContainsFunc(a.Keys, func(key string) bool { return s.lookup(key) != "" }) {
		return false
	}
	if a.Other != nil && a.Other(c.Settings(s)) {
		return false
	}
	if len(a.Status) == 0 {
		return true
	}
	said, _ := ask(ctx, path, a.Status, s.Environ, deadline) // its exit code says the same, and that it does not know the command
	return strings.Contains(said, a.LoggedOut)
}
