// Package definition reads chipset.yaml, the definition of a rig: its agents, what
// they know, how work is dispatched, watched, tested and merged.
//
// # The file
//
// One YAML document of at most 1 MiB, a mapping of sections. Only agents is
// required; whatever is left out, or is there without a value, has a default.
//
//	header         name, version, archetype, description, provenance
//	skills         required[] and recommended[]: name, domain, description,
//	               token_budget_weight (their sum is at most 1.0)
//	agents         topology, agents[]: name, role, skills[], count
//	communication  channels[]: name, type, filesystem_path, behavior
//	dispatch       strategy, max_parallel, batch_threshold, formula_support
//	evaluation     gates.pre_deploy[]: check, threshold, action
//	runtime        providers[]: name, capabilities[]
//	gupp           thresholds: stall_detection, nudge_interval,
//	               restart_threshold, slow_start
//	               limits: max_restarts_per_bead, restart_cooldown,
//	               max_attempts_per_bead, max_conflicts_per_bead
//	rig            name, bead_prefix, tick, patrol
//	worker         default, permissions, grace, presets: name to command,
//	               prompt, timeout, env, stall_detection, permissions
//	merge          target, remote, test, test_timeout, on_conflict,
//	               push_branches, max_waiting, batch
//	mail           retention, max_size
//	audit          every, ref
//
// The first seven are those of the chipset definitions that exist: such a file is
// accepted as it is. The others are what a running rig needs besides.
//
// A duration is an integer of seconds, or text such as 90s, 5m or 1h30m. A size is
// an integer of bytes, or text such as 64KiB. A command is a line of text or a list
// of arguments.
//
// # Strictness
//
// A misspelt knob that is silently ignored costs more than a refused file. So
// unknown keys, keys given twice and values of the wrong type are errors, all of
// them reported at once with line and column. The file is untrusted: what an alias
// may multiply is bounded, and no name, path or branch leaves here unchecked.
package definition
