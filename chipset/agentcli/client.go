// Package agentcli is the contract between a rig and the command-line clients of
// coding agents. What is known of one client stands in the folder of that client
// below this one, and nowhere else; package clients lists them.
//
//	Preset ──Build──▶ argv ──Equip──▶ argv, environment, files ──▶ supervisor
//	                                                                  │ log
//	figures, session, how it ended  ◀──Reader──  lines of output  ◀───┘
//
//	chipset client-hook NAME EVENT ──Hooks.Input──▶ package session ──Hooks.Output──▶ client
//	chipset plugin install NAME    ──Plugin.Write─▶ files for a person's own sessions
//
// A client never runs anything itself: it says how, the supervisor of package process
// does. Package agentclitest holds the suite that every client passes, and stand-ins for
// the models.
//
// The formats are those of the programs as they were tried; docs/clients.md says
// which versions. They change, so everything here is tolerant: a line that is not
// understood is skipped, and a client whose output is not understood at all is
// judged by its exit code, like any other command.
package agentcli

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// Client is what a rig knows of one program. Preset, About and Reader are set in
// every Client; what is nil otherwise the program does not have.
type Client struct {
	// Preset is how it is run: command line, prompt, permissions. Its name is the
	// client's name.
	Preset Preset
	// About says in words what a person wants to know before choosing it.
	About About
	// Equip returns argv with what the rig hands over. It does not change argv, and where an option
	// stands there already it leaves the decision of the author of the preset alone. nil adds nothing.
	Equip func(argv []string, kit Kit) Equipped
	// Reader returns a reader of the output of one session, resumed runs included.
	Reader func() Reader
	// Passages turns a line of its output into what a person reads of it, and reports whether the
	// line is in its format. nil means that it prints for people.
	Passages func(line []byte) ([]Passage, bool)
	// Loadable is when a session can be loaded again that began at an instant; nil is at once.
	Loadable func(began time.Time) time.Time
	// Attended turns a headless command line of it into one for a person at a terminal; nil means that nobody can take
	// its sessions over.
	Attended func(argv []string) []string
	// Hooks is how it asks the rig at the steps of a session.
	Hooks *Hooks
	// Plugin connects a person's own sessions with the rigs on the machine.
	Plugin *Plugin
	// Shell is the name of its tool that runs a command line, "" if not known: a permission
	// for Bash(npm publish) is one for that command line in every client.
	Shell string
	// Help are the arguments with which it prints the options of a headless run.
	Help []string
	// Account is how it shows who uses it, nil where that can't be told.
	Account *Account
	// Home is what it keeps below the home of its user.
	Home Home
	// OwnSandbox: what it may change is held by a sandbox of its own. In the rig's that one takes its place: with ask the
	// worktree can't be changed.
	OwnSandbox bool
	// Keys are the variables that it reads, its model's keys among them: names, or beginnings of names with a * behind.
	Keys []string
	// Hosts are those that it talks with: its model, its login, and what it reports to. A variable of Keys that holds
	// another address stands for that one.
	Hosts []string
	// Configures are names of files and folders in a repository, with * and ?, by which it is configured or told
	// what to do.
	Configures []string
	// Nested are the variables by which it tells its children that they run inside it. Every
	// command that it runs has the first of them.
	Nested []string
}

// About is what a client can do, as far as a rig makes use of it.
type About struct {
	// Title is the program's own name.
	Title string
	// Tried is the version this was tried with, "" for what only its documentation says.
	Tried string
	// Stream: turns, tools and tokens can be watched. Cost: it says what it cost.
	Stream, Cost bool
	// Resume: an ended session can be continued with what it knows.
	Resume bool
	// MCP: the rig's tools can be handed over.
	MCP bool
	// AddMCP is the command line with which a person adds the rig's tools to sessions of
	// their own, "" if not known.
	AddMCP string
	// ExitCode is what its exit code does not say, "" where it can be trusted.
	ExitCode string
}

// Home is what a client keeps below the home of its user. Paths are relative to it.
type Home struct {
	// Own are the files and folders with its configuration, keys and sessions: they are read by workers that run it, and by
	// no other worker.
	Own []string
	// Changed are the folders that it must be able to change while it works. None of them holds what makes a later
	// session run a command.
	Changed []string
	// Moved is the variable that names another folder instead of the first of Own; with MovedAbove, the folder above it.
	Moved      string
	MovedAbove bool
	// Stand: it makes files beside its configuration, which it must not change. In a sandbox each session has a folder
	// instead of the first of Own, which Moved names, with links to what is in that one.
	Stand bool
	// Copied are files that it rewrites all the time, and of which nothing need stay: the folder has copies of them.
	Copied []string
	// Renewed are files with its login, which it must be able to renew. They make nothing run.
	Renewed []string
}

// Kit is what a rig hands to a worker's client.
type Kit struct {
	// Chipset is the rig's own binary, by its absolute path.
	Chipset string
	// Identity is who the worker is, NAME=VALUE, for helpers of a client that
	// does not pass its own environment on to them.
	Identity []string
	// Permission is ask, edit, full or "".
	Permission string
	// Session is a fresh UUID, for clients that let it be chosen.
	Session string
	// Resume is the session to continue, "" to begin one.
	Resume string
	// Files is the absolute path that, with a name behind it, is that of a file
	// the client can be given.
	Files string
	// Plan: nothing may be changed yet, because a plan must be approved first.
	Plan bool
	// Granted are the command lines that the person has approved, for clients that can't
	// ask the rig while they run.
	Granted []string
	// Test is the command line that tests what lands, of plain words and for clients that let it pass with edit; ""
	// for none. A worker could change what it runs, so it is "" outside of a sandbox.
	Test string
	// Boxed: it runs in the rig's sandbox, in which it can't make one of its own.
	Boxed bool
	// Attended: a person takes the session over at a terminal.
	Attended bool
	// Hooks: the binary answers the client's hooks. MCP: it serves the rig's tools.
	Hooks, MCP bool
}

// Equipped is a command line with what it needs around it.
type Equipped struct {
	Argv []string
	// Env has NAME=VALUE entries.
	Env []string
	// Files are to be written before the command starts, by their names.
	Files map[string]string
}

// Start returns the command line of a run with what the rig hands over.
func (c *Client) Start(argv []string, kit Kit) Equipped {
	argv = slices.Clone(argv)
	if c.Equip == nil {
		return Equipped{Argv: argv}
	}
	return c.Equip(argv, kit)
}

// HostsOf returns the hosts that the client's own variables lead it to: those of Keys that hold an address of HTTP.
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

// HasOption reports whether an option stands on a command line.
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
