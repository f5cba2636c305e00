package agentcli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// EnvPromptFile is the variable with the path of the file Build asked for.
	EnvPromptFile = "CHIPSET_PROMPT_FILE"

	placeholderPrompt = "{prompt}"
	placeholderFile   = "{prompt_file}"

	// maxArgument is below what Linux allows a single argument (128 KiB with its
	// terminating NUL); other systems allow more.
	maxArgument = 128<<10 - 1
)

// PromptInput is what a worker is to be told.
type PromptInput struct {
	// Prompt is the whole prompt; Script is the bead's description alone.
	Prompt, Script string
	// File is an absolute path at which the caller can put a file.
	File string
	// Permission is ask, edit, full, or "" for none of the preset's arguments.
	Permission string
}

// Invocation is what a preset and a prompt come to.
type Invocation struct {
	Argv []string
	// File must hold Content before the command starts; "" when there is none.
	File, Content string
	// Stdin is the file to be read by the command, "" for the null device.
	Stdin string
	// Env has NAME=VALUE entries to append to the command's environment.
	Env []string

	Timeout, StallDetection time.Duration
}

// Build says how to run preset with a prompt. Nothing of the prompt is ever taken
// for an option, for another placeholder, or for shell code. Errors wrap
// ErrBadPreset.
func Build(preset Preset, in PromptInput) (Invocation, error) {
	if err := preset.Check(); err != nil {
		return Invocation{}, err
	}
	permissions, err := permissionArgs(preset, in.Permission)
	if err != nil {
		return Invocation{}, err
	}
	run := Invocation{Env: preset.environment(), Timeout: preset.Timeout, StallDetection: preset.StallDetection}

	if preset.Prompt == PromptArg {
		run.Argv, err = promptArgument(preset, permissions, in.Prompt)
		return run, err
	}
	if !filepath.IsAbs(in.File) {
		return Invocation{}, fmt.Errorf("build worker %s: prompt file %q is not an absolute path", preset.Name, in.File)
	}
	run.File, run.Content = in.File, in.Prompt
	run.Env = append(run.Env, EnvPromptFile+"="+in.File)
	switch preset.Prompt {
	case PromptStdin:
		run.Argv = append(slices.Clone(preset.Command), permissions...)
		run.Stdin = in.File
	case PromptScript:
		run.Content = in.Script
		fallthrough
	default:
		run.Argv = insert(preset.Command, permissions, placeholderFile, in.File)
	}
	return run, nil
}

// Attend says how a person takes a session of preset over at a terminal: its command line without a prompt, as the
// client's Attended makes it. Errors wrap ErrBadPreset.
func (c *Client) Attend(preset Preset, permission string) (Invocation, error) {
	permissions, err := permissionArgs(preset, permission)
	if err == nil && c.Attended == nil {
		err = fmt.Errorf("%w %q: its sessions can't be taken over", ErrBadPreset, preset.Name)
	}
	if err != nil {
		return Invocation{}, err
	}
	argv := slices.DeleteFunc(slices.Clone(preset.Command), func(arg string) bool { return placeholderIn(arg) != "" || arg == "--" })
	return Invocation{Argv: c.Attended(append(argv, permissions...)), Env: preset.environment()}, nil
}

// environment returns the variables of the preset, sorted.
func (p Preset) environment() []string {
	var env []string
	for name, value := range p.Env {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// Without returns argv without some words, and without some options that have a value.
func Without(argv, words, valued []string) []string {
	var left []string
	for i := 0; i < len(argv); i++ {
		name, _, whole := strings.Cut(argv[i], "=")
		switch {
		case slices.Contains(words, argv[i]):
		case !slices.Contains(valued, name):
			left = append(left, argv[i])
		case !whole:
			i++ // its value
		}
	}
	return left
}

func permissionArgs(preset Preset, permission string) ([]string, error) {
	switch permission {
	case "", PermissionAsk, PermissionEdit, PermissionFull:
	default:
		return nil, fmt.Errorf("%w %q: permission %q is not ask, edit or full", ErrBadPreset, preset.Name, permission)
	}
	args, known := preset.Permissions[permission]
	if permission != "" && len(preset.Permissions) > 0 && !known {
		return nil, fmt.Errorf("%w %q: it does not say what permission %q means", ErrBadPreset, preset.Name, permission)
	}
	return args, nil
}

// promptArgument builds the arguments of PromptArg, and refuses a prompt that
// exec(2) would not take.
func promptArgument(preset Preset, permissions []string, prompt string) ([]string, error) {
	if strings.ContainsRune(prompt, 0) {
		return nil, fmt.Errorf("%w %q: a prompt with a NUL byte can't be an argument", ErrBadPreset, preset.Name)
	}
	argv := insert(preset.Command, permissions, placeholderPrompt, harmless(prompt))
	for _, arg := range argv {
		if len(arg) > maxArgument {
			return nil, fmt.Errorf("%w %q: the prompt is %d bytes, an argument holds %d; use prompt: stdin or file",
				ErrBadPreset, preset.Name, len(prompt), maxArgument)
		}
	}
	return argv, nil
}

// harmless puts a line of its own before a prompt that a client could take for an
// option, standard input ("-"), a slash command or a file to include.
func harmless(prompt string) string {
	text := strings.TrimSpace(prompt)
	if text == "" || strings.ContainsRune("-/@!+", rune(text[0])) {
		return "Assignment:\n\n" + prompt
	}
	return prompt
}

func placeholderIn(arg string) string {
	for _, placeholder := range []string{placeholderPrompt, placeholderFile} {
		if strings.Contains(arg, placeholder) {
			return placeholder
		}
	}
	return ""
}

// insert puts value where placeholder stands in command, or at the very end.
func insert(command, permissions []string, placeholder, value string) []string {
	argv := make([]string, 0, len(command)+len(permissions)+1)
	found := false
	for _, arg := range command {
		if strings.Contains(arg, placeholder) {
			arg, found = strings.Replace(arg, placeholder, value, 1), true
		}
		argv = append(argv, arg)
	}
	// After "--" a permission would be one more word of the prompt.
	if at := slices.Index(argv, "--"); at >= 0 {
		argv = slices.Insert(argv, at, permissions...)
	} else {
		argv = append(argv, permissions...)
	}
	if !found {
		argv = append(argv, value)
	}
	return argv
}
