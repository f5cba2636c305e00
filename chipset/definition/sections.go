package definition

import "strings"

// definition reads the root mapping.
func (d *decoder) definition(root value) *Definition {
	def := defaults()
	def.forceCount = d.opts.ForceCount
	var agents []agentPlace
	set := root.mapping(
		field{"header", func(v value) { header(v, &def.Header) }},
		field{"skills", func(v value) { skills(v, &def.Skills) }},
		field{"agents", func(v value) { agents = topology(v, &def.Topology) }},
		field{"communication", func(v value) { communication(v, &def.Communication) }},
		field{"dispatch", func(v value) { dispatch(v, &def.Dispatch) }},
		field{"evaluation", func(v value) { evaluation(v, &def.Evaluation) }},
		field{"runtime", func(v value) { runtimes(v, &def.Runtime) }},
		field{"gupp", func(v value) { gupp(v, &def.GUPP) }},
		field{"rig", func(v value) { rig(v, &def.Rig) }},
		field{"worker", func(v value) { worker(v, &def.Worker) }},
		field{"merge", func(v value) { merge(v, &def.Merge) }},
		field{"mail", func(v value) { mail(v, &def.Mail) }},
		field{"audit", func(v value) { audit(v, &def.Audit) }},
	)
	root.require(set, "agents")
	for i := 0; i+1 < len(root.node.Content); i += 2 {
		if root.node.Content[i].Value == "merge" {
			def.MergeDefined = true
		}
	}
	def.derive()
	if section, ok := set["agents"]; ok {
		checkAgents(section, agents, def, set)
	}
	checkThresholds(root, def)
	checkBranches(root, def)
	checkWorker(root, set, def)
	return def
}

func header(v value, to *Header) {
	v.mapping(
		field{"name", ruled(&to.Name, checkLabel)},
		field{"version", ruled(&to.Version, checkVersion)},
		field{"archetype", freeText(&to.Archetype)},
		field{"description", freeText(&to.Description)},
		field{"provenance", freeText(&to.Provenance)},
	)
}

// once reports a name that first has already, and else puts it there. A name that
// could not be read is empty and was reported before.
func once(first map[string]int, at value, kind, name string) {
	if name == "" {
		return
	}
	if line, again := first[name]; again {
		at.fail("", "%s %s is declared twice, first in line %d", kind, quote(name), line)
		return
	}
	first[name] = at.node.Line
}

// budgetTolerance forgives what adding up decimal fractions costs.
const budgetTolerance = 1e-9

func skills(v value, to *Skills) {
	sum, first := 0.0, map[string]int{}
	read := func(into *[]Skill) func(value) {
		return func(v value) {
			v.list(func(v value) {
				var skill Skill
				set := v.mapping(
					field{"name", ruled(&skill.Name, checkKebab)},
					field{"domain", freeText(&skill.Domain)},
					field{"description", freeText(&skill.Description)},
					field{"token_budget_weight", number(&skill.TokenBudgetWeight, 0, 1)},
				)
				v.require(set, "name")
				once(first, set["name"], "skill", skill.Name)
				before := sum
				sum += skill.TokenBudgetWeight
				if sum > 1+budgetTolerance && before <= 1+budgetTolerance {
					set["token_budget_weight"].fail("", "here the skills exceed the token budget: their weights add up to %.4g so far, at most 1.0 is allowed", sum)
				}
				*into = append(*into, skill)
			})
		}
	}
	v.mapping(
		field{"required", read(&to.Required)},
		field{"recommended", read(&to.Recommended)},
	)
}

func communication(v value, to *Communication) {
	first := map[string]int{}
	v.mapping(field{"channels", func(v value) {
		v.list(func(v value) {
			var channel Channel
			set := v.mapping(
				field{"name", ruled(&channel.Name, checkLabel)},
				field{"type", oneOf(&channel.Type, "channel type", ChannelMail, ChannelNudge, ChannelHook, ChannelHandoff)},
				field{"filesystem_path", channelPath(&channel.Path)},
				field{"behavior", freeText(&channel.Behavior)},
			)
			v.require(set, "name", "type", "filesystem_path")
			once(first, set["name"], "channel", channel.Name)
			if channel.Type != "" && channel.Path != "" && !channel.usual() {
				set["filesystem_path"].warn("", "%s does not move the channel: it stays below %s",
					quote(channel.Path), strings.Join(channelHomes(channel.Type), " and "))
			}
			to.Channels = append(to.Channels, channel)
		})
	}})
}

func channelPath(to *string) func(value) {
	return func(v value) {
		text, ok := v.written()
		if !ok {
			return
		}
		clean, err := statePath(text)
		if err != nil {
			v.fail("for example state/mail/", "%s", err)
			return
		}
		*to = clean
	}
}

// channelHomes returns where the state tree keeps a channel. A hand-off is both the
// note to a successor and the passing of work to the merge queue.
func channelHomes(channel ChannelType) []string {
	switch channel {
	case ChannelMail:
		return []string{"state/mail"}
	case ChannelNudge:
		return []string{"state/nudge"}
	case ChannelHook:
		return []string{"state/hooks"}
	case ChannelHandoff:
		return []string{"state/merge-queue", "state/handoff"}
	}
	return nil
}

func (c Channel) usual() bool {
	for _, home := range channelHomes(c.Type) {
		if c.Path == home {
			return true
		}
	}
	return false
}

// strategyRoundRobin is accepted from existing definitions.
const strategyRoundRobin Strategy = "round-robin"

func dispatch(v value, to *Dispatch) {
	parallel := maxPolecats
	if v.d.opts.ForceCount {
		parallel = maxForcedPolecats
	}
	set := v.mapping(
		field{"strategy", oneOf(&to.Strategy, "dispatch strategy", StrategySling, StrategyAutoClaim, strategyRoundRobin)},
		field{"max_parallel", integer(&to.MaxParallel, 1, parallel)},
		field{"batch_threshold", integer(&to.BatchThreshold, 1, 10_000)},
		field{"formula_support", boolean(&to.FormulaSupport)},
	)
	if to.Strategy == strategyRoundRobin {
		to.Strategy = StrategySling
		set["strategy"].warn("write sling", "round-robin is carried out as sling: the polecat that is idle gets the work")
	}
}

func evaluation(v value, to *Evaluation) {
	gate := func(v value) {
		var gate Gate
		set := v.mapping(
			field{"check", ruled(&gate.Check, checkLabel)},
			field{"threshold", number(&gate.Threshold, 0, 100)},
			field{"action", oneOf(&gate.Action, "action", GateBlock, GateWarn, GateLog)},
		)
		v.require(set, "check", "threshold", "action")
		to.PreDeploy = append(to.PreDeploy, gate)
	}
	v.mapping(field{"gates", func(v value) {
		v.mapping(field{"pre_deploy", func(v value) { v.list(gate) }})
	}})
}

func runtimes(v value, to *Runtime) {
	first := map[string]int{}
	v.mapping(field{"providers", func(v value) {
		v.list(func(v value) {
			var provider Provider
			set := v.mapping(
				field{"name", ruled(&provider.Name, checkLabel)},
				field{"capabilities", labels(&provider.Capabilities)},
			)
			v.require(set, "name")
			once(first, set["name"], "provider", provider.Name)
			to.Providers = append(to.Providers, provider)
		})
	}})
}

// labels reads a list of names.
func labels(to *[]string) func(value) {
	return func(v value) {
		v.list(func(v value) {
			var label string
			ruled(&label, checkLabel)(v)
			if label != "" {
				*to = append(*to, label)
			}
		})
	}
}
