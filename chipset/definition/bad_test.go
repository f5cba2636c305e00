package definition

import (
	"fmt"
	"strings"
	"testing"
)

// badCase is a definition with one thing wrong. Where text has no agents, minimal
// stands before it, and lines count from the first line of text.
type badCase struct {
	name, text string
	line       int
	want       string
}

const duplicateSkill = `skills:
  required: [{name: one, token_budget_weight: 0.5}]
  recommended: [{name: one}]
`

func TestBadFiles(t *testing.T) {
	runBad(t, []badCase{
		{"empty", "", 1, "the file is empty"},
		{"only comments", "# nothing\n", 1, "the file is empty"},
		{"null document", "---\n", 1, "the file is empty"},
		{"a list", "- agents\n", 1, "expected a mapping of sections, found a list"},
		{"a scalar", "agents\n", 1, `expected a mapping of sections, found the text "agents"`},
		{"two documents", minimal + "---\n" + minimal, 6, "a second document begins"},
		{"second document broken", minimal + "---\na: [\n", 7, "not valid YAML"},
		{"tab", "agents:\n\tagents: []\n", 2, "indent with spaces, not with tabs"},
		{"unclosed list", "agents:\n  agents: [a,\n", 2, "not valid YAML"},
		{"unclosed quote", "header:\n  name: \"x\n", 2, "not valid YAML"},
		{"bad indentation", "agents:\n  agents:\n   - {}\n  - {}\n", 4, "not valid YAML"},
		{"two colons", "header:\n  name: a: b\n", 2, "mapping values are not allowed"},
		{"unknown anchor", "header: *x\n" + minimal, 1, "unknown anchor"},
		{"not UTF-8", "header:\n  name: \xff\n", 2, "not UTF-8"},
		{"late error", minimal + "mail: {}\naudit: {}\n bad: x\nrig: {}\n", 8, "not valid YAML"},
		{"control character", "header:\n\n  name: \x01\n", 3, "not UTF-8 text: byte 0x01"},
		{"too large", "#" + strings.Repeat("x", MaxSize), 1, "at most 1048576 are read"},
		{"no agents", "header: {name: x}\n", 1, `agents: "agents" is required`},
		{"agents null", "header: {name: x}\nagents:\n", 1, `agents: "agents" is required`},
		{"key is a list", minimal + "? [a]\n: b\n", 6, "expected a key, found a list"},
	})
}

func TestBadStructure(t *testing.T) {
	runBad(t, []badCase{
		{"unknown section", "dispach: {}\n", 1, `unknown key "dispach" (did you mean "dispatch"?)`},
		{"unknown section, no likeness", "zebra: {}\n", 1, `zebra: unknown key "zebra"`},
		{"unknown key in a list", "communication:\n  channels:\n    - {name: m, type: mail, filesystem_path: state/mail, path: x}\n", 3, `channels[0].path: unknown key "path"`},
		{"camel case", "rig: {beadPrefix: ab}\n", 1, `did you mean "bead_prefix"?`},
		{"duplicate section", "rig: {name: a}\nmail: {}\nrig: {name: b}\n", 3, `key "rig" is given twice, first in line 6`},
		{"duplicate key", "rig:\n  tick: 1s\n  tick: 2s\n", 3, "rig.tick: key \"tick\" is given twice"},
		{"merge key", "rig: &r {name: a}\nmail:\n  <<: *r\n", 3, "merge keys (<<) are not supported"},
		{"section is a list", "rig: [a]\n", 1, "rig: expected a mapping, found a list"},
		{"section is text", "rig: yes\n", 1, `rig: expected a mapping, found the text "yes"`},
		{"list is a mapping", "skills: {required: {name: x}}\n", 1, "skills.required: expected a list, found a mapping"},
		{"list with a hole", "skills:\n  required:\n    -\n", 3, "skills.required[0]: the item is empty"},
		{"text is a list", "header: {description: [a]}\n", 1, "expected text, found a list"},
		{"text is a number", "header: {description: 5}\n", 1, `expected text, found the number 5 (quote it: "5")`},
		{"number is text", "dispatch: {max_parallel: \"5\"}\n", 1, `expected an integer, found the text "5"`},
		{"integer is a fraction", "dispatch: {batch_threshold: 1.5}\n", 1, "expected an integer, found the number 1.5"},
		{"boolean is text", "merge: {push_branches: yes}\n", 1, `expected true or false, found the text "yes"`},
		{"strange tag", "rig: {name: !secret x}\n", 1, `found a value with the tag "!secret"`},
		{"strange tag of a mapping", "rig: !!set {name: x}\n", 1, `found a value with the tag "!!set"`},
		{"NUL", "rig: {name: \"a\\0b\"}\n", 1, "NUL"},
	})
}

func TestBadClassicSections(t *testing.T) {
	channel := func(rest string) string { return "communication:\n  channels:\n    - {name: m, " + rest + "}\n" }
	gate := func(rest string) string { return "evaluation: {gates: {pre_deploy: [\n  {" + rest + "}]}}\n" }
	runBad(t, []badCase{
		{"version", "header: {version: 1.0}\n", 1, `header.version: "1.0" is not a semantic version`},
		{"version with v", "header:\n  version: v1.0.0\n", 2, "semantic version"},
		{"version with zero", "header: {version: 01.0.0}\n", 1, "semantic version"},
		{"empty name", "header: {name: \" \"}\n", 1, "the name is empty"},
		{"name on two lines", "header: {name: \"a\\nb\"}\n", 1, "can't be printed"},
		{"skill not kebab", "skills: {required: [{name: Agent_Topology}]}\n", 1, "is not kebab-case"},
		{"skill without name", "skills: {required: [{domain: x}]}\n", 1, `"name" is required`},
		{"skill twice", duplicateSkill, 3, `skill "one" is declared twice, first in line 7`},
		{"weight above 1", "skills: {required: [{name: a, token_budget_weight: 1.2}]}\n", 1, "1.2 is not between 0 and 1"},
		{"negative weight", "skills: {required: [{name: a, token_budget_weight: -0.1}]}\n", 1, "-0.1 is not between 0 and 1"},
		{"weight not a number", "skills: {required: [{name: a, token_budget_weight: .nan}]}\n", 1, "not between 0 and 1"},
		{"token budget", "skills:\n  required:\n    - {name: a, token_budget_weight: 0.6}\n    - {name: b, token_budget_weight: 0.5}\n", 4, "exceed the token budget: their weights add up to 1.1"},
		{"channel type", channel("type: male, filesystem_path: state/mail"), 3, `unknown channel type "male" (did you mean "mail"?)`},
		{"channel type, no likeness", channel("type: pigeon, filesystem_path: state/mail"), 3, `unknown channel type "pigeon" (one of mail, nudge, hook, handoff)`},
		{"channel without path", channel("type: mail"), 3, `"filesystem_path" is required`},
		{"absolute path", channel("type: mail, filesystem_path: /state/mail"), 3, "is absolute"},
		{"path with dots", channel("type: mail, filesystem_path: state/../../x"), 3, `holds ".."`},
		{"path outside", channel("type: mail, filesystem_path: logs/mail"), 3, "outside of the state tree"},
		{"path of the tree itself", channel("type: mail, filesystem_path: .chipset/state/"), 3, "outside of the state tree"},
		{"path with backslash", channel(`type: mail, filesystem_path: 'state\mail'`), 3, "backslash"},
		{"channel twice", channel("type: mail, filesystem_path: state/mail") + "    - {name: m, type: hook, filesystem_path: state/hooks}\n", 4, `channel "m" is declared twice`},
		{"strategy", "dispatch: {strategy: slingshot}\n", 1, `unknown dispatch strategy "slingshot"`},
		{"no parallel", "dispatch: {max_parallel: 0}\n", 1, "0 is not between 1 and 1000"},
		{"too parallel", "dispatch: {max_parallel: 31}\n", 1, "at most 30 beads in parallel, found 31 (--force-count lifts the limit)"},
		{"batch threshold", "dispatch:\n  batch_threshold: 0\n", 2, "dispatch.batch_threshold: 0 is not between"},
		{"gate threshold", gate("check: a, threshold: 101, action: block"), 2, "101 is not between 0 and 100"},
		{"gate action", gate("check: a, threshold: 1, action: stop"), 2, `unknown action "stop" (one of block, warn, log)`},
		{"gate without check", gate("threshold: 1, action: log"), 2, `"check" is required`},
		{"provider twice", "runtime: {providers: [{name: codex},\n  {name: codex}]}\n", 2, `provider "codex" is declared twice`},
		{"capability", "runtime: {providers: [{name: codex, capabilities: [[a]]}]}\n", 1, "capabilities[0]: expected text"},
	})
}

func TestBadKnobs(t *testing.T) {
	runBad(t, []badCase{
		{"no duration", "rig: {tick: soon}\n", 1, `"soon" is not a duration (an integer of seconds`},
		{"duration in days", "mail: {retention: 1d}\n", 1, `"1d" is not a duration`},
		{"negative duration", "rig: {tick: -1s}\n", 1, "-1s is not between 10ms and 10m"},
		{"huge duration", "rig: {tick: 9223372036854775807}\n", 1, "is not between 10ms and 10m"},
		{"stall too short", "gupp:\n  thresholds:\n    stall_detection: 99ms\n", 3, "99ms is not between 100ms and 24h"},
		{"stall 0", "gupp: {thresholds: {stall_detection: 0}}\n", 1, "0 is not between 100ms and 24h"},
		{"stall too long", "gupp: {thresholds: {stall_detection: 25h}}\n", 1, "25h is not between"},
		{"attempts", "gupp: {limits: {max_attempts_per_bead: 0}}\n", 1, "0 is not between 1 and 100"},
		{"prefix", "rig: {bead_prefix: My}\n", 1, `"My" is not a bead prefix: 1 to 8 of a-z and 0-9`},
		{"long prefix", "rig: {bead_prefix: abcdefghi}\n", 1, "is not a bead prefix: 1 to 8 of a-z and 0-9"},
		{"permission", "worker: {permissions: fulll}\n", 1, `did you mean "full"?`},
		{"preset without command", "worker:\n  presets:\n    cluade: {timeout: 1h}\n", 3, `no built-in preset is called "cluade" (did you mean "claude"?)`},
		{"preset null", "worker:\n  presets:\n    mine:\n", 3, `"command" is required`},
		{"empty command", "worker: {presets: {x: {command: []}}}\n", 1, "the command is empty"},
		{"command without a name", "worker: {presets: {x: {command: [\"\", a]}}}\n", 1, "the command's name, is empty"},
		{"command is a mapping", "merge: {test: {a: b}}\n", 1, "merge.test: expected text or a list, found a mapping"},
		{"preset name", "worker: {presets: {../x: {command: y}}}\n", 1, "is not a legal ID"},
		{"prompt mode", "worker: {presets: {x: {command: y, prompt: args}}}\n", 1, `did you mean "arg"?`},
		{"variable name", "worker: {presets: {x: {command: y, env: {A-B: c}}}}\n", 1, `"A-B" is not the name of a variable`},
		{"reserved variable", "worker: {presets: {x: {command: y, env: {CHIPSET_AGENT: mayor}}}}\n", 1, "is set by the rig itself"},
		{"variable is a list", "worker: {presets: {x: {command: y, env: {A: [b]}}}}\n", 1, "env.A: expected text"},
		{"preset permissions", "worker: {presets: {x: {command: y, permissions: {all: []}}}}\n", 1, `unknown key "all"`},
		{"target is an option", "merge: {target: --force}\n", 1, `it begins with "-"`},
		{"target is a full ref", "merge: {target: refs/heads/main}\n", 1, "leave refs/heads/ out"},
		{"target of a polecat", "merge: {target: polecat/x}\n", 1, "one of a polecat's"},
		{"target with blank", "merge: {target: my branch}\n", 1, "a character that git refuses"},
		{"target with dots", "merge: {target: a..b}\n", 1, "is not a branch"},
		{"target locked", "merge: {target: a/b.lock}\n", 1, "is not a branch"},
		{"target HEAD", "merge: {target: HEAD}\n", 1, "is not a branch"},
		{"remote is an address", "merge: {remote: \"ext::sh -c x\"}\n", 1, "is not the name of a git remote"},
		{"remote is an option", "merge: {remote: -u}\n", 1, "is not the name of a git remote"},
		{"on_conflict", "merge: {on_conflict: reworked}\n", 1, `did you mean "rework"?`},
		{"max_waiting", "merge: {max_waiting: 0}\n", 1, "0 is not between"},
		{"batch", "merge: {batch: 0}\n", 1, "0 is not between"},
		{"batch above", "merge: {batch: 101}\n", 1, "101 is not between"},
		{"no size", "mail: {max_size: big}\n", 1, `"big" is not a size`},
		{"size too large", "mail: {max_size: 65KiB}\n", 1, "65KiB is not between 1KiB and 64KiB"},
		{"size too small", "mail: {max_size: 10}\n", 1, "10 is not between 1KiB and 64KiB"},
		{"budget of nothing", "budget: {week: {money: 1}}\n", 1, `unknown key "week"`},
		{"budget below nothing", "budget:\n  day:\n    money: -5\n", 3, "-5 is not between 0 and 100000"},
		{"half an attempt", "budget: {bead: {attempts: 1.5}}\n", 1, "budget.bead.attempts"},
		{"webhook of a file", "notify: {webhook: \"file:///etc/passwd\"}\n", 1, "is not an address of http or https"},
		{"webhook without a host", "notify: {webhook: \"https://:80/x\"}\n", 1, "is not an address of http or https"},
		{"notify by a command line", "notify: {command: notify-me}\n", 1, "notify.command: expected a list"},
		{"notify by nothing", "notify: {command: [\"\", x]}\n", 1, "the first argument, the command's name, is empty"},
		{"quiet for a time", "notify: {quiet: 8h}\n", 1, "is not hours of the day, as in 22:00-07:00"},
		{"quiet beyond the day", "notify: {quiet: \"22:00-24:00\"}\n", 1, "not hours of the day"},
		{"quiet for no time", "notify: {quiet: \"00:00-00:00\"}\n", 1, "the quiet hours end when they begin"},
		{"budget of time", "budget: {convoy: {time: soon}}\n", 1, `"soon" is not a duration`},
		{"no price", "prices: {gpt: {in: -1, out: 2}}\n", 1, "-1 is not between 0 and 100000"},
		{"half a price", "prices:\n  gpt: {in: 1}\n", 2, `"out" is required`},
		{"price of nothing", "prices: {\"*\": {in: 1, out: 1}}\n", 1, "is not the name of a model"},
		{"hosts without a sandbox", "sandbox: off\nnetwork:\n  allow: [example.org]\n", 3, "network.allow has no effect with sandbox: off"},
		{"audit too often", "audit: {every: 10ms}\n", 1, "10ms is less than 1s"},
		{"audit ref", "audit: {ref: refs/x}\n", 1, "leave refs/heads/ out"},
		{"audit on the target", "merge: {target: a}\naudit: {ref: a}\n", 1, "the same branch"},
		{"target on the audit", "merge:\n  target: chipset/audit\n", 2, "the same branch"},
	})
}

func TestBadAgents(t *testing.T) {
	head := "agents:\n  agents:\n    - {name: mayor, role: mayor}\n    - {name: witness, role: witness}\n"
	pool := "    - {name: polecat-pool, role: polecat}\n"
	runBad(t, []badCase{
		{"two mayors", head + pool + "    - {name: mayor-two, role: mayor}\n", 6, "requires exactly 1 mayor, found 2"},
		{"mayor count", "agents:\n  agents:\n    - {name: mayor, role: mayor, count: 3}\n    - {name: witness, role: witness}\n" + pool, 3, "requires exactly 1 mayor, found 3"},
		{"no mayor", "agents:\n  agents:\n    - {name: witness, role: witness}\n" + pool, 2, "requires exactly 1 mayor, found none"},
		{"two witnesses", head + pool + "    - {name: witness-backup, role: witness}\n", 6, "requires exactly 1 witness, found 2"},
		{"no witness", "agents:\n  agents:\n    - {name: mayor, role: mayor}\n" + pool, 2, "requires exactly 1 witness, found none"},
		{"no polecat", head, 2, "requires 1 polecat or more, found none"},
		{"two refineries", head + pool + "    - {name: ra, role: refinery}\n    - {name: rb, role: refinery}\n", 7, "requires at most 1 refinery, found 2"},
		{"agents empty", "agents: {agents: []}\n", 1, "requires exactly 1 mayor"},
		{"agents missing", "agents: {topology: x}\n", 1, `agents.agents: "agents" is required`},
		{"too many polecats", head + "    - name: polecat-pool\n      role: polecat\n      count: 31\n", 7, "at most 30 polecats, found 31 (--force-count lifts the limit)"},
		{"too many in two pools", head + "    - {name: a, role: polecat, count: 20}\n    - {name: b, role: polecat, count: 11}\n", 6, "at most 30 polecats, found 31"},
		{"count 0", head + "    - {name: polecat-pool, role: polecat, count: 0}\n", 5, "0 is not between 1 and 1000"},
		{"name missing", head + "    - {role: polecat}\n", 5, `"name" is required`},
		{"role missing", head + pool + "    - {name: x}\n", 6, `"role" is required`},
		{"same name", head + "    - {name: p, role: polecat}\n    - {name: p, role: polecat}\n", 6, `agent "p" is declared twice, first in line 5`},
		{"capital letters", head + "    - {name: Polecat, role: polecat}\n", 5, `"Polecat" is not a legal ID`},
		{"name is a path", head + "    - {name: ../x, role: polecat}\n", 5, "is not a legal ID"},
		{"name too long", head + "    - {name: " + strings.Repeat("x", 65) + ", role: polecat}\n", 5, "is longer than 64 characters"},
		{"name archive", head + "    - {name: archive, role: polecat}\n", 5, `"archive" is a reserved ID`},
		{"name human", head + "    - {name: human, role: crew}\n" + pool, 5, `"human" is a reserved ID`},
		{"name of another role", head + "    - {name: refinery, role: polecat}\n", 5, `"refinery" is the name of a role, and this agent is a polecat`},
		{"crew collides", head + pool + "    - {name: ops, role: crew, count: 2}\n    - {name: ops-2, role: crew}\n", 7, `the agent ID "ops-2"`},
		{"skill not declared", "skills: {required: [{name: one-skill}]}\n" + head + "    - name: p\n      role: polecat\n      skills:\n        - one-skil\n", 9, `skill "one-skil" is not declared in skills (did you mean "one-skill"?)`},
	})
}

func runBad(t *testing.T, cases []badCase) {
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			text, offset := test.text, 0
			if test.line > 0 && !strings.Contains(t.Name(), "BadFiles") && !strings.Contains(text, "agents:") {
				text, offset = minimal+text, strings.Count(minimal, "\n")
			}
			def, problems := Parse("f", []byte(text))
			if def != nil {
				t.Fatalf("accepted:\n%s", text)
			}
			at := fmt.Sprintf("f:%d:", test.line+offset)
			for _, problem := range problems {
				if line := problem.String(); strings.HasPrefix(line, at) && strings.Contains(line, test.want) {
					return
				}
			}
			t.Errorf("no problem in line %d with %q:\n%s", test.line+offset, test.want, problems.Error())
		})
	}
}

// TestAllProblemsAtOnce: what is wrong in one section hides nothing in another.
func TestAllProblemsAtOnce(t *testing.T) {
	_, problems := Parse("f", []byte(`header: {version: one}
skills: {required: [{name: A}]}
agents:
  agents: [{name: mayor, role: mayor}, {name: mayor, role: mayor}]
communication: {channels: [{name: x, type: y, filesystem_path: /z}]}
dispatch: {max_parallel: 0, strategy: none}
evaluation: {gates: {pre_deploy: [{}]}}
runtime: {providers: [{}]}
gupp: {thresholds: {stall_detection: x}, limits: {y: 1}}
rig: {tick: 0}
worker: {grace: 0, presets: {x: {}}}
merge: {target: -x, remote: -y}
mail: {max_size: 0}
audit: {every: -1}
`))
	perLine := map[int]int{}
	for _, problem := range problems {
		perLine[problem.Line]++
	}
	for line, want := range map[int]int{1: 1, 2: 1, 4: 4, 5: 2, 6: 2, 7: 3, 8: 1, 9: 2, 10: 1, 11: 2, 12: 2, 13: 1, 14: 1} {
		if perLine[line] != want {
			t.Errorf("line %d: %d problems, want %d", line, perLine[line], want)
		}
	}
	if t.Failed() {
		t.Log(problems.Error())
	}
}

func TestWarnings(t *testing.T) {
	for _, test := range []struct {
		text string
		line int
		want string
	}{
		{"dispatch: {strategy: round-robin}\n", 6, "round-robin is carried out as sling"},
		{"gupp:\n  thresholds: {stall_detection: 300, restart_threshold: 200}\n", 7, "restart_threshold (3m20s) is shorter than stall_detection (5m)"},
		{"gupp:\n  thresholds: {nudge_interval: 700}\n", 7, "nudge_interval (11m40s) is not shorter than restart_threshold (10m)"},
		{"rig:\n  patrol: 6m\n", 7, "patrol (6m) is longer than stall_detection (5m)"},
		{"communication: {channels: [{name: m, type: mail, filesystem_path: .chipset/state/post/}]}\n", 6, `"state/post" does not move the channel: it stays below state/mail`},
		{"worker: {default: codx}\n", 6, `did you mean "codex"?`},
	} {
		def, problems := Parse("f", []byte(minimal+test.text))
		if def == nil || len(problems) != 1 || problems[0].Line != test.line || problems[0].Severity != SeverityWarning ||
			!strings.Contains(problems[0].String(), test.want) {
			t.Errorf("%s: %v, want a warning in line %d with %q", test.text, problems, test.line, test.want)
		}
		if def != nil && def.Dispatch.Strategy != StrategySling {
			t.Errorf("strategy %s", def.Dispatch.Strategy)
		}
	}
}

func TestBadWorktree(t *testing.T) {
	runBad(t, []badCase{
		{"absolute", "worktree: {copy: [/etc/passwd]}\n", 1, "not a path below the root of the checkout"},
		{"home", "worktree: {link: [~/.cache]}\n", 1, "not a path below the root of the checkout"},
		{"escape", "worktree:\n  copy:\n    - a\n    - a/../../b\n", 4, `"a/../../b" leads out of the checkout`},
		{"everything", "worktree: {copy: [./]}\n", 1, `"./" is the whole checkout`},
		{"git", "worktree: {copy: [.git/config]}\n", 1, `".git/config" is git's own`},
		{"git of a submodule", "worktree: {link: [lib/.GIT]}\n", 1, `"lib/.GIT" is git's own`},
		{"chipset", "worktree: {link: [.chipset/state]}\n", 1, `".chipset/state" is the rig's own`},
		{"backslash", "worktree: {setup_when: ['a\\b']}\n", 1, "holds a backslash"},
		{"twice", "worktree: {copy: [.env, a], link: [a/b]}\n", 1, `"a/b" and "a" are one in the other`},
		{"no time", "worktree: {timeout: 0}\n", 1, "is not between 1s and 24h"},
	})
}
