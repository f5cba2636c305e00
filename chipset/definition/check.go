package definition

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// checkThresholds warns of thresholds that make steps of the witness meaningless.
func checkThresholds(root value, def *Definition) {
	t := def.GUPP.Thresholds
	if def.Rig.Patrol > t.StallDetection {
		root.find("rig", "patrol").warn("", "patrol (%s) is longer than stall_detection (%s): stalls are seen late",
			formatDuration(def.Rig.Patrol), formatDuration(t.StallDetection))
	}
	at := root.find("gupp", "thresholds")
	if t.RestartThreshold < t.StallDetection {
		at.warn("", "restart_threshold (%s) is shorter than stall_detection (%s): a stall is critical as soon as it is seen",
			formatDuration(t.RestartThreshold), formatDuration(t.StallDetection))
	}
	if t.NudgeInterval >= t.RestartThreshold {
		at.warn("", "nudge_interval (%s) is not shorter than restart_threshold (%s): restarts don't wait for an answer",
			formatDuration(t.NudgeInterval), formatDuration(t.RestartThreshold))
	}
}

// checkBranches keeps the audit's history and the project's apart.
func checkBranches(root value, def *Definition) {
	if def.Merge.Target == def.Audit.Ref {
		root.find("merge", "target").fail("", "merge.target and audit.ref are the same branch %s", quote(def.Audit.Ref))
	}
}

// checkWorker reports a default worker that can't be meant, and commands that
// don't exist on this machine.
func checkWorker(root value, set map[string]value, def *Definition) {
	at := root
	at.path = "worker"
	if section, ok := set["worker"]; ok {
		at = section
	}
	worker := def.Worker
	presets := builtinPresets()
	for _, preset := range worker.Presets {
		presets = append(presets, preset.Name)
		place := at.find("presets", preset.Name, "command")
		place.lookPath(preset.Command)
	}
	at.find("default").checkDefault(worker, presets)
	if section, ok := set["merge"]; ok {
		section.find("test").lookPath(def.Merge.Test)
	}
}

func (v value) checkDefault(worker Worker, presets []string) {
	if own, ok := worker.Preset(worker.Default); ok && !own.Command.IsZero() {
		return
	}
	if slices.Contains(builtinPresets(), worker.Default) {
		v.lookPath(Command{Argv: []string{programOf(worker.Default)}})
		return
	}
	argv, err := v.d.parseCommand(worker.Default)
	if err != nil {
		v.fail("the name of a preset, or a command line", "%s", err)
		return
	}
	command := Command{Line: worker.Default, Argv: argv}
	if hint := suggest(worker.Default, presets); hint != "" && !v.d.onPath(command.program()) {
		v.warn(hint, "no preset is called %s: it is taken for a command", quote(worker.Default))
		return
	}
	v.lookPath(command)
}

// find returns the place below v that the keys lead to, or the nearest to it.
func (v value) find(keys ...string) value {
	for _, key := range keys {
		i := 0
		for ; i+1 < len(v.node.Content) && v.node.Content[i].Value != key; i += 2 {
		}
		if v.node.Kind != yaml.MappingNode || i+1 >= len(v.node.Content) {
			return v
		}
		v = v.child(v.node.Content[i+1], v.under(key))
	}
	return v
}

// lookPath warns of a command that is not there. It can be installed before the
// rig starts, so it is no error.
func (v value) lookPath(command Command) {
	program := command.program()
	if v.d.opts.LookPath == nil || program == "" || v.d.onPath(program) {
		return
	}
	v.warn("", "the command %s was not found on this machine", quote(program))
}

func (d *decoder) onPath(program string) bool {
	if d.opts.LookPath == nil || program == "" {
		return false
	}
	_, err := d.opts.LookPath(program)
	return err == nil
}

// program returns the name of the program a command runs if that can be told and
// looked up, else "": a relative path means one in a worktree that is not there yet.
func (c Command) program() string {
	if len(c.Argv) == 0 || strings.Contains(c.Argv[0], "/") && !strings.HasPrefix(c.Argv[0], "/") {
		return ""
	}
	return c.Argv[0]
}
