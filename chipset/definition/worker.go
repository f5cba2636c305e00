package definition

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Worker says which command does the work of a polecat.
type Worker struct {
	// Default is the name of a preset, built in or of Presets, or a command line.
	Default string
	// Permissions is ask, edit or full: what agents may do without being asked.
	Permissions string
	// Presets are those of the file, in its order.
	Presets WorkerPresets
	// Grace is the time between TERM and KILL.
	Grace time.Duration
}

// Preset returns the file's preset of that name.
func (w Worker) Preset(name string) (WorkerPreset, bool) {
	for _, preset := range w.Presets {
		if preset.Name == name {
			return preset, true
		}
	}
	return WorkerPreset{}, false
}

// WorkerPresets are presets in the order of the file, a mapping by their names.
type WorkerPresets []WorkerPreset

// UnmarshalYAML implements yaml.Unmarshaler.
func (w *WorkerPresets) UnmarshalYAML(node *yaml.Node) error {
	for i := 0; i+1 < len(node.Content); i += 2 {
		preset := WorkerPreset{Name: node.Content[i].Value, Line: node.Content[i].Line}
		if err := node.Content[i+1].Decode(&preset); err != nil {
			return err
		}
		*w = append(*w, preset)
	}
	return nil
}

// WorkerPreset is a preset of the file. Where it has the name of a built-in one, it
// changes only what it sets.
type WorkerPreset struct {
	Name string `yaml:"-"`
	// Command is zero only for a preset that changes a built-in one.
	Command Command
	// Prompt is stdin, arg, file or script, or empty where the file is silent.
	Prompt string
	// Timeout ends a worker; 0 is never, nil is not set.
	Timeout *time.Duration
	// Env is added to the worker's environment. No name begins with CHIPSET_.
	Env map[string]string
	// StallDetection overrides the rig's threshold; 0 is the rig's own.
	StallDetection time.Duration `yaml:"stall_detection"`
	// Permissions are the arguments that each of ask, edit and full adds.
	Permissions map[string][]string
	// Client is the client whose output the command prints, if its name does not tell.
	Client string
	// Resumes is how often a session that ended too early is continued; nil is not set.
	Resumes *int
	// Plan makes its workers have a plan approved before they change anything.
	Plan bool
	// Line is where the preset begins.
	Line int `yaml:"-"`
}

// Allow is what workers and tests may do in their sandbox in addition to the defaults.
type Allow struct {
	// Env are variables that are passed to them: names, or prefixes of names followed by *.
	Env []string
	// Read and Write are files and folders that they can read and change, absolute or below ~/.
	Read, Write []string
}

// Network says which hosts workers and tests may connect to in their sandbox. Zero is every host.
type Network struct {
	// Restricted: only the hosts of Allow, and for a worker also those of its client.
	Restricted bool `yaml:"-"`
	// Allow are hosts, as proxy.Rules has them.
	Allow []string
}

// UnmarshalYAML implements yaml.Unmarshaler. Text is "open".
func (n *Network) UnmarshalYAML(node *yaml.Node) error {
	type fields Network
	*n = Network{Restricted: node.Kind == yaml.MappingNode}
	if !n.Restricted {
		return nil
	}
	return node.Decode((*fields)(n))
}

// Worktree is what a worktree gets in addition to what git checks out, before a worker or
// a test starts in it. Paths are relative to the root of the checkout, slash-separated and
// clean; none is below .git or .chipset.
type Worktree struct {
	// Copy are untracked files and folders of the person's checkout that are copied, Link
	// those that a symbolic link leads to.
	Copy, Link []string
	// Submodules checks them out, from the addresses that the person has configured.
	Submodules bool
	// LFS fetches the files that git keeps with Git LFS.
	LFS bool `yaml:"lfs"`
	// Setup runs once in each worktree, and again when a file of SetupWhen has changed.
	Setup     Command
	SetupWhen []string `yaml:"setup_when"`
	// Timeout bounds the setup.
	Timeout time.Duration
}

// Provided returns the paths that a worktree gets from the person's checkout.
func (w *Worktree) Provided() []string { return slices.Concat(w.Copy, w.Link) }

// Provides returns the first of the provided paths at or above one of the given, or "".
func (w *Worktree) Provides(paths []string) string {
	for _, provided := range w.Provided() {
		if slices.ContainsFunc(paths, func(p string) bool { return p == provided || strings.HasPrefix(p, provided+"/") }) {
			return provided
		}
	}
	return ""
}

// Command is a command of the file: a line, which may need a shell, or a list of
// arguments that is executed as it is.
type Command struct {
	// Line is the command line, empty for a list.
	Line string
	// Argv is the list. For a line it is what Options.ParseCommand made of it, or
	// empty without one.
	Argv []string
}

// String is the command as the file has it, on one line.
func (c Command) String() string { return cmp.Or(c.Line, strings.Join(c.Argv, " ")) }

// UnmarshalYAML implements yaml.Unmarshaler. A blank line is no command.
func (c *Command) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.SequenceNode {
		return node.Decode(&c.Argv)
	}
	if strings.TrimSpace(node.Value) != "" {
		c.Line = node.Value
	}
	return nil
}

// IsZero reports whether there is no command.
func (c Command) IsZero() bool { return c.Line == "" && len(c.Argv) == 0 }
