package session

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/prompt"
	"github.com/gastown-chipset/chipset/chipset/team"
	"github.com/gastown-chipset/chipset/state"
)

// deed is what a tool of a client does, as far as a plan that must be approved
// first cares.
type deed int

const (
	// harmless: it reads, asks, or is none that is known.
	harmless deed = iota
	// edits: it changes files.
	edits
	// runs: it runs a command line.
	runs
)

// deedOf tells what a tool does, in the words of every client that was tried.
func deedOf(tool string) deed {
	switch tool {
	case "Edit", "MultiEdit", "Write", "NotebookEdit", // Claude Code
		"apply_patch",           // Codex
		"write_file", "replace", // Gemini CLI
		"edit", "write", "patch", "multiedit": // opencode
		return edits
	case "Bash", "bash", "Monitor", "PowerShell", "shell", "local_shell", "exec_command", "exec", "unified_exec", "run_shell_command":
		return runs
	}
	return harmless
}

// beforeChange refuses what would change something while the assignment's plan
// must be approved first: tools that edit, and commands that are not known to
// only read.
func (h *Hooks) beforeChange() (Answer, error) {
	what := deedOf(h.in.ToolName)
	if h.Assignment == "" || what == harmless {
		return Answer{}, nil
	}
	if line, known := commandLine(h.in.ToolInput); what == runs && known && onlyReads(line) {
		return Answer{}, nil
	}
	err := team.CheckPlan(h.Rig, h.Agent, h.Assignment)
	if errors.Is(err, team.ErrNoPlan) {
		return Answer{Deny: prompt.Line(err.Error(), 500) + ", so nothing is changed yet: look around with commands that only read, " +
			"and send your plan first: chipset request plan --wait 90s --body-file - <<'END'"}, nil
	}
	if errors.Is(err, state.ErrRefused) {
		return undecided(err), nil
	}
	return Answer{}, err
}

// commandLine is the command that a tool is asked to run.
func commandLine(input json.RawMessage) (string, bool) {
	var in struct {
		Command json.RawMessage `json:"command"`
		Cmd     string          `json:"cmd"`
	}
	if json.Unmarshal(input, &in) != nil {
		return "", false
	}
	if in.Cmd != "" {
		return in.Cmd, true
	}
	var line string
	if json.Unmarshal(in.Command, &line) == nil {
		return line, line != ""
	}
	var argv []string
	if json.Unmarshal(in.Command, &argv) != nil {
		return "", false
	}
	// A shell and its -c: the line is what counts.
	if i := slices.IndexFunc(argv, func(arg string) bool { return strings.HasPrefix(arg, "-") && strings.HasSuffix(arg, "c") }); i == 1 && len(argv) == 3 {
		return argv[2], true
	}
	return "", false
}
