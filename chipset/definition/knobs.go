package definition

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

const (
	// leastThreshold suits demonstrations and tests; a rig at work wants seconds.
	leastThreshold = 100 * time.Millisecond
	mostThreshold  = 24 * time.Hour

	defaultStallDetection = 300 * time.Second
	defaultPatrol         = 10 * time.Second

	// maxMessage is what the format of mail allows at most, in bytes.
	maxMessage = 64 << 10
)

// defaults returns a definition without agents in which everything that depends on
// nothing else has its default; derive adds the rest.
func defaults() *Definition {
	return &Definition{
		Topology: Topology{Name: "mayor-witness-polecat"},
		Dispatch: Dispatch{Strategy: StrategySling, MaxParallel: 10, BatchThreshold: 3, FormulaSupport: true},
		GUPP: GUPP{
			// -1 is not set: 0 is a value that slow_start may have.
			Thresholds: Thresholds{SlowStart: -1},
			Limits:     Limits{MaxRestarts: 3, RestartCooldown: time.Minute, MaxAttempts: 3, MaxConflicts: 10},
		},
		Rig:    Rig{Tick: 2 * time.Second},
		Worker: Worker{Permissions: "ask", Grace: 5 * time.Second},
		Merge:  Merge{TestTimeout: 20 * time.Minute, OnConflict: OnConflictRework, MaxWaiting: 10, Batch: 1},
		Mail:   Mail{Retention: 24 * time.Hour, MaxSize: maxMessage},
		Audit:  Audit{Ref: "chipset/audit"},
	}
}

// derive fills in the defaults that follow from other values.
func (d *Definition) derive() {
	thresholds := &d.GUPP.Thresholds
	if thresholds.StallDetection == 0 {
		thresholds.StallDetection = defaultStallDetection
	}
	// 300, 120, 600 and 60 seconds: whoever shortens the first means all of them.
	if thresholds.NudgeInterval == 0 {
		thresholds.NudgeInterval = thresholds.StallDetection * 2 / 5
	}
	if thresholds.RestartThreshold == 0 {
		thresholds.RestartThreshold = 2 * thresholds.StallDetection
	}
	if thresholds.SlowStart < 0 {
		thresholds.SlowStart = thresholds.StallDetection / 5
	}
	if d.Rig.Name == "" {
		d.Rig.Name = d.Header.Name
	}
	if d.Rig.Name == "" {
		d.Rig.Name = "rig"
	}
	if d.Rig.BeadPrefix == "" {
		d.Rig.BeadPrefix = BeadPrefix(d.Rig.Name)
	}
	if d.Rig.Patrol == 0 {
		d.Rig.Patrol = min(defaultPatrol, thresholds.StallDetection/10)
	}
	if d.Worker.Default == "" {
		d.Worker.Default = d.Runtime.preset()
	}
}

// preset returns the built-in preset of the first provider that has one.
func (r Runtime) preset() string {
	for _, provider := range r.Providers {
		switch name := strings.ReplaceAll(strings.ToLower(provider.Name), "-", "_"); name {
		case "claude_code":
			return "claude"
		case "codex_cli":
			return "codex"
		case "gemini_cli":
			return "gemini"
		case "claude", "codex", "gemini", "opencode", "aider":
			return name
		}
	}
	return "claude"
}

func gupp(v value, to *GUPP) {
	v.mapping(
		field{"thresholds", func(v value) {
			v.mapping(
				field{"stall_detection", duration(&to.Thresholds.StallDetection, leastThreshold, mostThreshold)},
				field{"nudge_interval", duration(&to.Thresholds.NudgeInterval, leastThreshold, mostThreshold)},
				field{"restart_threshold", duration(&to.Thresholds.RestartThreshold, leastThreshold, 2*mostThreshold)},
				field{"slow_start", duration(&to.Thresholds.SlowStart, 0, mostThreshold)},
			)
		}},
		field{"limits", func(v value) {
			v.mapping(
				field{"max_restarts_per_bead", integer(&to.Limits.MaxRestarts, 0, 100)},
				field{"restart_cooldown", duration(&to.Limits.RestartCooldown, 0, mostThreshold)},
				field{"max_attempts_per_bead", integer(&to.Limits.MaxAttempts, 1, 100)},
				field{"max_conflicts_per_bead", integer(&to.Limits.MaxConflicts, 1, 100)},
			)
		}},
	)
}

func rig(v value, to *Rig) {
	v.mapping(
		field{"name", ruled(&to.Name, checkLabel)},
		field{"bead_prefix", ruled(&to.BeadPrefix, checkPrefix)},
		field{"tick", duration(&to.Tick, 10*time.Millisecond, 10*time.Minute)},
		field{"patrol", duration(&to.Patrol, 10*time.Millisecond, time.Hour)},
	)
}

// mostBatch bounds the requests of a stack: all their beads are locked while it lands.
const mostBatch = 100

func merge(v value, to *Merge) {
	v.mapping(
		field{"target", ruled(&to.Target, checkTarget)},
		field{"remote", ruled(&to.Remote, checkRemote)},
		field{"test", command(&to.Test)},
		field{"test_timeout", duration(&to.TestTimeout, time.Second, mostThreshold)},
		field{"on_conflict", oneOf(&to.OnConflict, "answer to a conflict", OnConflictRework, OnConflictBlock)},
		field{"push_branches", boolean(&to.PushBranches)},
		field{"max_waiting", integer(&to.MaxWaiting, 1, 10_000)},
		field{"batch", integer(&to.Batch, 1, mostBatch)},
	)
}

func mail(v value, to *Mail) {
	v.mapping(
		field{"retention", duration(&to.Retention, time.Second, 10*365*24*time.Hour)},
		field{"max_size", size(&to.MaxSize, 1<<10, maxMessage)},
	)
}

func audit(v value, to *Audit) {
	set := v.mapping(
		field{"every", duration(&to.Every, 0, 365*24*time.Hour)},
		field{"ref", ruled(&to.Ref, checkOwnBranch)},
	)
	if to.Every > 0 && to.Every < time.Second {
		set["every"].fail("0 is never", "%s is less than 1s", to.Every)
	}
}

func worker(v value, to *Worker) {
	v.mapping(
		field{"default", func(v value) {
			if text, ok := v.written(); ok {
				to.Default = strings.TrimSpace(text)
			}
		}},
		field{"permissions", oneOf(&to.Permissions, "permission", permissions()...)},
		field{"grace", duration(&to.Grace, leastThreshold, 10*time.Minute)},
		field{"presets", func(v value) {
			for _, pair := range v.pairs() {
				if err := checkID(pair.name); err != nil {
					pair.key.fail("", "%s", err)
				}
				to.Presets = append(to.Presets, preset(pair))
			}
		}},
	)
}

func permissions() []string { return []string{"ask", "edit", "full"} }

// builtinPresets names the presets every rig knows, and the command each runs.
func builtinPresets() []string {
	return []string{"claude", "codex", "gemini", "opencode", "aider", "cursor", "amp", "goose", "sh"}
}

// programOf is the program that a built-in preset runs.
func programOf(preset string) string {
	if preset == "cursor" {
		return "cursor-agent"
	}
	return preset
}

func preset(from pair) WorkerPreset {
	preset := WorkerPreset{Name: from.name, Line: from.key.node.Line}
	v := from.value
	set := v.mapping(
		field{"command", command(&preset.Command)},
		field{"prompt", oneOf(&preset.Prompt, "way to pass the prompt", "stdin", "arg", "file", "script")},
		field{"timeout", func(v value) {
			preset.TimeoutSet = true
			duration(&preset.Timeout, 0, 30*24*time.Hour)(v)
		}},
		field{"env", func(v value) { preset.Env = environment(v) }},
		field{"stall_detection", duration(&preset.StallDetection, leastThreshold, mostThreshold)},
		field{"permissions", func(v value) { preset.Permissions = permissionArguments(v) }},
		field{"plan", boolean(&preset.Plan)},
		field{"client", oneOf(&preset.Client, "client", append(builtinPresets(), "command")...)},
		field{"resumes", func(v value) {
			preset.ResumesSet = true
			integer(&preset.Resumes, 0, 100)(v)
		}},
	)
	if at, ok := set["command"]; ok && preset.Command.IsZero() && !at.d.failed(at) {
		at.fail("", "the command is empty")
	} else if !ok && !slices.Contains(builtinPresets(), preset.Name) {
		v.d.report(SeverityError, from.key.node, v.under("command"), suggest(preset.Name, builtinPresets()),
			`"command" is required: no built-in preset is called %s`, quote(preset.Name))
	}
	return preset
}

// failed tells that a problem was already reported for this place or one below it.
func (d *decoder) failed(at value) bool {
	return slices.ContainsFunc(d.problems, func(p Problem) bool {
		return p.Severity == SeverityError && strings.HasPrefix(p.Path, at.path)
	})
}

func environment(v value) map[string]string {
	env := map[string]string{}
	for _, pair := range v.pairs() {
		if err := checkVariable(pair.name); err != nil {
			pair.key.fail("", "%s", err)
			continue
		}
		if pair.value.null() {
			env[pair.name] = ""
			continue
		}
		if text, ok := pair.value.written(); ok {
			env[pair.name] = text
		}
	}
	return env
}

func permissionArguments(v value) map[string][]string {
	arguments := map[string][]string{}
	var fields []field
	for _, name := range permissions() {
		fields = append(fields, field{name, func(v value) {
			arguments[name] = []string{}
			v.list(func(v value) {
				if text, ok := v.written(); ok {
					arguments[name] = append(arguments[name], text)
				}
			})
		}})
	}
	v.mapping(fields...)
	return arguments
}

// command reads a line or a list of arguments. An empty one is no command.
func command(to *Command) func(value) {
	return func(v value) {
		if v.node.Kind == yaml.SequenceNode {
			var argv []string
			v.list(func(v value) {
				if text, ok := v.written(); ok {
					argv = append(argv, text)
				}
			})
			if len(argv) > 0 && strings.TrimSpace(argv[0]) == "" {
				v.fail("", "the first argument, the command's name, is empty")
				return
			}
			to.Argv = argv
			return
		}
		text, ok := v.written()
		if !ok || strings.TrimSpace(text) == "" {
			return
		}
		argv, err := v.d.parseCommand(text)
		if err != nil {
			v.fail("", "%s", err)
			return
		}
		to.Line, to.Argv = text, argv
	}
}

func (d *decoder) parseCommand(line string) ([]string, error) {
	if d.opts.ParseCommand == nil {
		return nil, nil
	}
	argv, err := d.opts.ParseCommand(line)
	if err != nil {
		return nil, fmt.Errorf("command %s: %w", quote(line), err)
	}
	return argv, nil
}
