// Package agentcli is the contract between a rig and the command-line clients of
// coding agents. Everything specific to one client is in that client's folder below
// this one, and nowhere else; package clients lists them.
//
//	Preset ──Build──▶ argv ──Equip──▶ argv, environment, files ──▶ supervisor
//	                                                                  │ log
//	figures, session, how it ended  ◀──Reader──  lines of output  ◀───┘
//
//	chipset client-hook NAME EVENT ──Hooks.Input──▶ package session ──Hooks.Output──▶ client
//	chipset plugin install NAME    ──Plugin.Write─▶ files for a person's own sessions
//
// A Client only describes how its program is run; the supervisor of package process runs
// it. Package agentclitest holds the suite that every client passes, and stand-ins for
// the models.
//
// The formats are those of the versions that docs/clients.md names. They change, so
// readers are tolerant: they skip a line that they don't understand, and a client whose
// output is not understood at all is judged by its exit code, like any other command.
package agentcli

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// Client is what a rig knows of one program. Every Client sets Preset, About and Reader;
// any other field that is nil is a feature that the program lacks.
type Client struct {
	// Preset says how to run it: command line, prompt, permissions. Its name is the
	// client's name.
	Preset Preset
	// About describes it to a person who chooses a client.
	About About
	// Equip adds to argv what the rig hands over. It keeps an option that the author of the preset
	// has set. nil adds nothing.
	Equip func(argv []string, kit Kit) Equipped
	// Reader returns a reader of the output of one session, resumed runs included.
	Reader func() Reader
	// Passages turns a line of its output into text for a person, and reports whether the
	// line is in its format. nil means that it prints for people.
	Passages func(line []byte) ([]Passage, bool)
	// Loadable returns when a session that began at an instant can be loaded again; nil is at once.
	Loadable func(began time.Time) time.Time
	// Attended turns its headless command line into one for a person at a terminal; nil means that its sessions
	// can't be taken over.
	Attended func(argv []string) []string
	// Hooks describes how it asks the rig at the steps of a session.
	Hooks *Hooks
	// Plugin connects a person's own sessions with the rigs on the machine.
	Plugin *Plugin
	// Shell is the name of its tool that runs a command line, "" if not known. A permission
	// for Bash(npm publish) permits that command line in every client.
	Shell string
	// Help are the arguments that make it print the options of a headless run.
	Help []string
	// Account says how to find out whether somebody is logged in; nil if that is not known.
	Account *Account
	// Home lists the files that it keeps in its user's home.
	Home Home
	// OwnSandbox: it has a sandbox of its own, which the rig's replaces: with ask the worktree is read-only.
	OwnSandbox bool
	// Keys are the environment variables that it reads, its model's keys among them: names, or prefixes that end in *.
	Keys []string
	// Hosts are the hosts that it talks to: its model, its login, its telemetry. A variable of Keys that holds
	// an address adds that address's host.
	Hosts []string
	// Configures are patterns (* and ?) of the files and folders in a repository that configure or instruct it.
	Configures []string
	// Nested are the variables that it sets for its child processes. Every command that it
	// runs has the first of them.
	Nested []string
}

// About lists the abilities of a client that a rig uses.
type About struct {
	// Title is the program's own name.
	Title string
	// Tried is the version that was tested, "" if the adapter follows the documentation alone.
	Tried string
	// Stream: it prints turns, tools and tokens while it works. Cost: it prints its cost.
	Stream, Cost bool
	// Resume: an ended session can be continued with what it knows.
	Resume bool
	// MCP: the rig's tools can be handed over.
	MCP bool
	// AddMCP is the command line that adds the rig's tools to a person's own sessions,
	// "" if not known.
	AddMCP string
	// ExitCode says when its exit code misleads, "" if it never does.
	ExitCode string
}

// Home lists what a client keeps in its user's home. Paths are relative to that.
type Home struct {
	// Own are the files and folders with its configuration, keys and sessions. Only workers that run this client may
	// read them.
	Own []string
	// Changed are the folders that it must be able to write while it works. Nothing in them makes a later
	// session run a command.
	Changed []string
	// Moved is the variable that names another folder instead of the first of Own; with MovedAbove, its parent.
	Moved      string
	MovedAbove bool
	// Stand: it makes files beside its configuration, which it must not change. In a sandbox Moved names a folder of
	// the session's own with links to the first of Own.
	Stand bool
	// Copied are files that it rewrites all the time and that need not be kept: that folder has copies of them.
	Copied []string
	// Renewed are files with its login, which it must be able to renew. They run nothing.
	Renewed []string
}

// Kit is what a rig hands to a worker's client.
type Kit struct {
	// Chipset is the rig's own binary, by its absolute path.
	Chipset string
	// Identity says who the worker is, as NAME=VALUE, for child processes of a client
	// that does not pass its environment on.
	Identity []string
	// Permission is ask, edit, full or "".
	Permission string
	// Session is a fresh UUID, for clients that let it be chosen.
	Session string
	// Resume is the session to continue, "" to begin one.
	Resume string
	// Files is an absolute path; with a name appended it is the path of a file for
	// the client.
	Files string
	// Plan: nothing may be changed yet, because a plan must be approved first.
	Plan bool
	// Granted are the command lines that the person has approved, for clients that can't
	// ask the rig while they run.
	Granted []string
	// Test is the command line of merge.test, in plain words, for clients that allow it with edit; "" for none. A
	// worker could change what it runs, so it is "" outside of a sandbox.
	Test string
	// Boxed: it runs in the rig's sandbox, in which it can't make one of its own.
	Boxed bool
	// Attended: a person takes the session over at a terminal.
	Attended bool
	// Hooks: Chipset answers the client's hooks. MCP: it serves the rig's tools.
	Hooks, MCP bool
}

// Equipped is a command line with its environment and files.
type Equipped struct {
	Argv []string
	// Env has NAME=VALUE entries.
	Env []string
	// Files must be written before the command starts: contents by name.
	Files map[string]string
}

// Start returns the command line of a run, equipped for the rig.
func (c *Client) Start(argv []string, kit Kit) Equipped {
	argv = slices.Clone(argv)
	if c.Equip == nil {
		return Equipped{Argv: argv}
	}
	return c.Equip(argv, kit)
}

// HostsOf returns the hosts of the HTTP addresses in the client's own variables (Keys).
func (c *Client) HostsOf(environ []string) []string {
	var hosts []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		own := slices.ContainsFunc(c.Keys, func(key string) bool {
			beginning, open := strings.CutSuffix(key, "*")
			return key == name || open && strings.HasPrefix(name, beginning)
		})
		if address, err := url.Parse(value); own && err == nil && (address.Scheme == "https" || address.Scheme == "http") && address.Host != "" {
			hosts = append(hosts, address.Host)
		}
	}
	return hosts
}

// HasOption reports whether a command line has an option.
func HasOption(argv []string, option string) bool {
	return slices.ContainsFunc(argv, func(arg string) bool { return arg == option || strings.HasPrefix(arg, option+"=") })
}

// ModelOf returns the model that a command line names, or "".
func ModelOf(argv []string) string {
	for i, arg := range argv {
		if name, found := strings.CutPrefix(arg, "--model="); found {
			return name
		}
		if (arg == "--model" || arg == "-m") && i+1 < len(argv) {
			return argv[i+1]
		}
	}
	return ""
}
