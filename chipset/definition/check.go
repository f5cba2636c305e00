package definition

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// check reports what no schema can express: values that contradict each other, and
// commands that can't be parsed or found. The place is the whole document.
func (p place) check(def *Definition) {
	p.checkSkills(def)
	p.checkChannels(def)
	p.checkProviders(def)
	if p.get("agents") != nil && p.find("agents").get("agents") != nil {
		p.checkAgents(def)
	}
	p.checkIdle(def)
	p.checkParallel(def)
	p.checkNetwork(def)
	p.checkThresholds(def)
	p.checkWorktree(def)
	p.checkCommands(def)
	p.checkNotify(def)
	if every := def.Audit.Every; every > 0 && every < time.Second {
		p.find("audit", "every").fail("0 is never", "%s is less than 1s", every)
	}
	if def.Merge.Target == def.Audit.Ref {
		p.find("merge", "target").fail("", "merge.target and audit.ref are the same branch %s", quote(def.Audit.Ref))
	}
}

// names reports duplicate names. Empty ones have already been reported.
type names struct {
	kind  string
	first map[string]int
}

func (n names) add(at place, name string) {
	if line, again := n.first[name]; again {
		at.fail("", "%s %s is declared twice, first in line %d", n.kind, quote(name), line)
	} else if name != "" {
		n.first[name] = at.node.Line
	}
}

func (p place) checkSkills(def *Definition) {
	const tolerance = 1e-9 // for rounding errors
	sum, seen := 0.0, names{"skill", map[string]int{}}
	for _, list := range []string{"required", "recommended"} {
		skills := def.Skills.Required
		if list == "recommended" {
			skills = def.Skills.Recommended
		}
		for i, skill := range skills {
			at := p.find("skills", list, i)
			seen.add(at.find("name"), skill.Name)
			before := sum
			if sum += skill.TokenBudgetWeight; sum > 1+tolerance && before <= 1+tolerance {
				at.find("token_budget_weight").fail("", "here the skills exceed the token budget: their weights add up to %.4g so far, at most 1.0 is allowed", sum)
			}
		}
	}
}

func (p place) checkChannels(def *Definition) {
	// A hand-off is both the note to a successor and the passing of work to the
	// merge queue.
	homes := map[ChannelType][]string{ChannelMail: {"state/mail"}, ChannelNudge: {"state/nudge"},
		ChannelHook: {"state/hooks"}, ChannelHandoff: {"state/merge-queue", "state/handoff"}}
	seen := names{"channel", map[string]int{}}
	for i, channel := range def.Communication.Channels {
		at := p.find("communication", "channels", i)
		seen.add(at.find("name"), channel.Name)
		if home := homes[channel.Type]; home != nil && channel.Path != "" && !slices.Contains(home, channel.Path) {
			at.find("filesystem_path").warn("", "%s does not move the channel: it stays below %s", quote(channel.Path), strings.Join(home, " and "))
		}
	}
}

// checkIdle warns of what the file asks for and no rig does.
func (p place) checkIdle(def *Definition) {
	for i, gate := range def.Evaluation.Gates.PreDeploy {
		if gate.Check == "" {
			continue // already reported
		}
		p.find("evaluation", "gates", "pre_deploy", i).warn("merge.test is what must succeed before anything lands", "the gate %s has no effect: nothing is checked, and %s does nothing",
			quote(gate.Check), quote(gate.Action))
	}
}

func (p place) checkProviders(def *Definition) {
	seen := names{"provider", map[string]int{}}
	for i, provider := range def.Runtime.Providers {
		seen.add(p.find("runtime", "providers", i, "name"), provider.Name)
	}
}

// checkNetwork refuses a list of hosts that nothing would enforce.
func (p place) checkNetwork(def *Definition) {
	if def.Network.Restricted && def.Sandbox == "off" {
		p.find("network").fail("sandbox: auto keeps workers and tests to the hosts", "network.allow has no effect with sandbox: off")
	}
}

// checkParallel checks the dispatch section.
func (p place) checkParallel(def *Definition) {
	at := p.find("dispatch")
	if most := def.Dispatch.MaxParallel; most > MaxPolecats && !p.r.opts.ForceCount {
		at.find("max_parallel").fail("--force-count lifts the limit", "at most %d beads in parallel, found %d", MaxPolecats, most)
	}
	if strategy := at.find("strategy"); strategy.node.Value == string(strategyRoundRobin) {
		strategy.warn("write sling", "round-robin is carried out as sling: the polecat that is idle gets the work")
	}
}

// checkThresholds warns of thresholds that make steps of the witness meaningless.
func (p place) checkThresholds(def *Definition) {
	t := def.GUPP.Thresholds
	if def.Rig.Patrol > t.StallDetection {
		p.find("rig", "patrol").warn("", "patrol (%s) is longer than stall_detection (%s): stalls are seen late",
			formatDuration(def.Rig.Patrol), formatDuration(t.StallDetection))
	}
	at := p.find("gupp", "thresholds")
	if t.RestartThreshold < t.StallDetection {
		at.warn("", "restart_threshold (%s) is shorter than stall_detection (%s): a stall is critical as soon as it is seen",
			formatDuration(t.RestartThreshold), formatDuration(t.StallDetection))
	}
	if t.NudgeInterval >= t.RestartThreshold {
		at.warn("", "nudge_interval (%s) is not shorter than restart_threshold (%s): restarts don't wait for an answer",
			formatDuration(t.NudgeInterval), formatDuration(t.RestartThreshold))
	}
}

// checkWorktree reports paths that are provided twice, or inside each other.
func (p place) checkWorktree(def *Definition) {
	w := def.Worktree
	var seen []string
	for _, list := range []struct {
		key   string
		paths []string
	}{{"copy", w.Copy}, {"link", w.Link}} {
		for i, one := range list.paths {
			for _, other := range seen {
				if one == other || strings.HasPrefix(one, other+"/") || strings.HasPrefix(other, one+"/") {
					p.find("worktree", list.key, i).fail("", "%s and %s are one in the other", quote(one), quote(other))
				}
			}
			seen = append(seen, one)
		}
	}
	if len(w.SetupWhen) > 0 && w.Setup.IsZero() {
		p.find("worktree", "setup_when").warn("", "setup_when has no meaning without setup")
	}
}

// checkNotify reports a command without a name, and quiet hours that end when they begin.
func (p place) checkNotify(def *Definition) {
	n := def.Notify
	p.find("notify", "command").checkCommand(&Command{Argv: n.Command})
	if quiet := p.find("notify").get("quiet"); quiet != nil && quiet.Value != "" && n.Quiet.From == n.Quiet.To {
		p.find("notify", "quiet").fail("", "the quiet hours end when they begin")
	}
}

// formatDuration leaves out the zero units that time.Duration prints: 5m, not 5m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// checkCommands parses every command line, and reports commands that are missing,
// can't be parsed, or don't exist on this machine.
func (p place) checkCommands(def *Definition) {
	known := builtinPresets()
	for i := range def.Worker.Presets {
		preset := &def.Worker.Presets[i]
		known = append(known, preset.Name)
		at := p.find("worker", "presets", preset.Name)
		command := at.find("command")
		command.checkCommand(&preset.Command)
		switch {
		case !preset.Command.IsZero() || command.failed():
		case at.get("command") != nil:
			command.fail("", "the command is empty")
		case !slices.Contains(builtinPresets(), preset.Name):
			at.path = at.under("command")
			at.node.Line = preset.Line
			at.fail(suggest(preset.Name, builtinPresets()), `"command" is required: no built-in preset is called %s`, quote(preset.Name))
		}
	}
	p.find("merge", "test").checkCommand(&def.Merge.Test)
	p.find("worktree", "setup").checkCommand(&def.Worktree.Setup)
	worker := p.find("worker", "default")
	if worker.path == "" {
		worker.path = "worker"
	}
	worker.checkDefault(def.Worker, known)
}

// checkCommand parses a command and looks its program up.
func (p place) checkCommand(command *Command) {
	switch {
	case command.Line != "":
		argv, err := p.r.parseCommand(command.Line)
		if err != nil {
			p.fail("", "%s", err)
			*command = Command{}
			return
		}
		command.Argv = argv
	case len(command.Argv) > 0 && strings.TrimSpace(command.Argv[0]) == "" && !p.failed():
		p.fail("", "the first argument, the command's name, is empty")
	}
	p.lookPath(*command)
}

func (r *reader) parseCommand(line string) ([]string, error) {
	if r.opts.ParseCommand == nil {
		return nil, nil
	}
	argv, err := r.opts.ParseCommand(line)
	if err != nil {
		return nil, fmt.Errorf("command %s: %w", quote(line), err)
	}
	return argv, nil
}

func (p place) checkDefault(worker Worker, known []string) {
	if own, ok := worker.Preset(worker.Default); ok && !own.Command.IsZero() || p.failed() {
		return
	}
	if slices.Contains(builtinPresets(), worker.Default) {
		p.lookPath(Command{Argv: []string{programOf(worker.Default)}})
		return
	}
	argv, err := p.r.parseCommand(worker.Default)
	if err != nil {
		p.fail("the name of a preset, or a command line", "%s", err)
		return
	}
	command := Command{Line: worker.Default, Argv: argv}
	if hint := suggest(worker.Default, known); hint != "" && !p.r.onPath(command.program()) {
		p.warn(hint, "no preset is called %s: it is taken for a command", quote(worker.Default))
		return
	}
	p.lookPath(command)
}

// lookPath warns of a command that is not installed. That is no error: it can still be
// installed before the rig starts.
func (p place) lookPath(command Command) {
	program := command.program()
	if p.r.opts.LookPath == nil || program == "" || p.r.onPath(program) {
		return
	}
	p.warn("", "the command %s was not found on this machine", quote(program))
}

func (r *reader) onPath(program string) bool {
	if r.opts.LookPath == nil || program == "" {
		return false
	}
	_, err := r.opts.LookPath(program)
	return err == nil
}

// program returns the name of the program that a command runs, or "" if it is unknown
// or can't be looked up: a relative path is relative to a future worktree.
func (c Command) program() string {
	if len(c.Argv) == 0 || strings.Contains(c.Argv[0], "/") && !strings.HasPrefix(c.Argv[0], "/") {
		return ""
	}
	return c.Argv[0]
}
