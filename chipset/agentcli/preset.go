package agentcli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/process"
)

// PromptMode says how the prompt reaches a worker.
type PromptMode string

const (
	// PromptStdin: the prompt is a file on standard input.
	PromptStdin PromptMode = "stdin"
	// PromptArg: the prompt is an argument, where "{prompt}" stands or the last.
	PromptArg PromptMode = "arg"
	// PromptFile: the path of a file with the prompt is an argument, where
	// "{prompt_file}" stands or the last.
	PromptFile PromptMode = "file"
	// PromptScript: as PromptFile, but the file holds the bead's description
	// alone, for workers that execute it.
	PromptScript PromptMode = "script"
)

// The decisions about an agent's permissions. Nobody can answer a headless client: with
// PermissionAsk everything that it asks about is refused until the person has approved
// exactly that.
const (
	PermissionAsk  = "ask"
	PermissionEdit = "edit"
	PermissionFull = "full"
)

// ErrBadPreset is returned for an invalid preset.
var ErrBadPreset = errors.New("invalid worker preset")

// DefaultWorkerTimeout bounds a worker whose preset says nothing else.
const DefaultWorkerTimeout = time.Hour

const (
	// DefaultResumes is how often a session that ended too early is continued.
	DefaultResumes = 2
	// NoResumes is the Resumes of a preset whose sessions never are.
	NoResumes = -1
)

// Preset is a named way to run a worker.
type Preset struct {
	Name    string
	Command []string
	Prompt  PromptMode
	// Timeout ends a worker; 0 is never.
	Timeout time.Duration
	// Env is added to the worker's environment.
	Env map[string]string
	// StallDetection overrides the rig's threshold; 0 is the rig's own.
	StallDetection time.Duration
	// Permissions are the arguments added to Command for each decision. A preset
	// without any has nothing to decide.
	Permissions map[string][]string
	// Client is the program whose words are understood, where the command's name
	// does not tell: for one behind a wrapper. Package clients has the list.
	Client string
	// Resumes is how often a session that its client ended before the work was
	// through is continued; 0 is DefaultResumes, NoResumes never.
	Resumes int
}

// MaxResumes is how often a session of this preset is continued at most.
func (p Preset) MaxResumes() int {
	if p.Resumes == 0 {
		return DefaultResumes
	}
	return max(p.Resumes, 0)
}

// Check returns an error that wraps ErrBadPreset and names what is wrong.
func (p Preset) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w %q: %s", ErrBadPreset, p.Name, fmt.Sprintf(format, args...))
	}
	if len(p.Command) == 0 || p.Command[0] == "" {
		return bad("no command")
	}
	switch p.Prompt {
	case PromptStdin, PromptArg, PromptFile, PromptScript:
	default:
		return bad("prompt %q is not stdin, arg, file or script", p.Prompt)
	}
	if p.Timeout < 0 || p.StallDetection < 0 {
		return bad("negative duration")
	}
	for name, value := range p.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return bad("environment variable %q", name)
		}
	}
	for name := range p.Permissions {
		if !slices.Contains([]string{PermissionAsk, PermissionEdit, PermissionFull}, name) {
			return bad("permission %q is not ask, edit or full", name)
		}
	}
	for i, arg := range p.Command {
		if err := p.checkArgument(i, arg); err != nil {
			return bad("%v", err)
		}
	}
	return nil
}

// checkArgument refuses a placeholder that the worker's prompt, which quotes mail
// and beads of others, could leave to be run as code.
func (p Preset) checkArgument(i int, arg string) error {
	placeholder := placeholderIn(arg)
	if placeholder == "" {
		return nil
	}
	if strings.ContainsRune(arg, 0) {
		return errors.New("NUL byte in an argument")
	}
	if i == 0 {
		return fmt.Errorf("the command's name holds %s", placeholder)
	}
	before, after, _ := strings.Cut(arg, placeholder)
	if after != "" || before != "" && !strings.HasSuffix(before, "=") || strings.ContainsAny(before, " \t\n;|&$`'\"(<>") {
		return fmt.Errorf("%s must be an argument of its own or end one as in --option=%s; a shell line reads standard input or \"$%s\"",
			placeholder, placeholder, EnvPromptFile)
	}
	if i == shellCode(p.Command) {
		return fmt.Errorf("%s would be run as shell code", placeholder)
	}
	switch {
	case placeholder == placeholderPrompt && p.Prompt != PromptArg:
		return fmt.Errorf("%s needs prompt: arg", placeholder)
	case placeholder == placeholderFile && p.Prompt != PromptFile && p.Prompt != PromptScript:
		return fmt.Errorf("%s needs prompt: file or script", placeholder)
	}
	return nil
}

// shellCode returns the index of the argument that a shell in command executes as
// code (sh -c CODE), and -1 when there is none. What follows it is data.
func shellCode(command []string) int {
	shell, option := false, false
	for i, arg := range command {
		name := arg[strings.LastIndexByte(arg, '/')+1:]
		switch {
		case !shell:
			shell = slices.Contains([]string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "fish"}, name)
		case strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.Contains(arg, "c"):
			option = true
		case option && !strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "+"):
			return i
		}
	}
	return -1
}

// CommandPreset makes a preset of a worker given as a command line. Where a
// placeholder stands decides how the prompt is passed; without one it is on
// standard input. Errors wrap process.ErrNoCommand, process.ErrBadCommand or ErrBadPreset.
func CommandPreset(line string) (Preset, error) {
	argv, err := process.ParseCommand(line)
	if err != nil {
		return Preset{}, fmt.Errorf("worker command: %w", err)
	}
	preset := Preset{Name: argv[0], Command: argv, Prompt: PromptModeOf(argv), Timeout: DefaultWorkerTimeout}
	return preset, preset.Check()
}

// PromptModeOf is how a command that does not say it wants its prompt: where a
// placeholder stands, else on standard input.
func PromptModeOf(command []string) PromptMode {
	for _, arg := range command {
		switch placeholderIn(arg) {
		case placeholderPrompt:
			return PromptArg
		case placeholderFile:
			return PromptFile
		}
	}
	return PromptStdin
}

// ResolveWorker returns the preset that a worker setting means: the one of that
// name, else the setting taken as a command line.
func ResolveWorker(worker string, presets []Preset) (Preset, error) {
	for _, preset := range presets {
		if preset.Name == worker {
			return preset, preset.Check()
		}
	}
	return CommandPreset(worker)
}
