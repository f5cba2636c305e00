package definition

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	templatePolecats    = 5
	templatePermissions = "ask"
)

// TemplateOptions is what a new definition starts from. The zero value is good.
type TemplateOptions struct {
	// RigName may be any text, such as a directory's name; CleanName is applied.
	RigName string
	// Prefix is the bead prefix, derived from the name where it is empty or illegal.
	Prefix string
	// Worker is the name of a preset or a command line; empty is claude.
	Worker string
	// Polecats is the size of the pool; below 1 is 5.
	Polecats int
	// Target is the branch work lands on; empty is the one recorded by init.
	Target string
	// Test is the test command; empty is none.
	Test string
	// Permissions is ask, edit or full; empty is ask.
	Permissions string
}

// CleanName makes the name of a rig of any text: what can't be printed is dropped,
// and what is too long is cut.
func CleanName(text string) string {
	text = strings.Map(func(r rune) rune {
		if notInLabel(r) {
			return -1
		}
		return r
	}, text)
	if utf8.RuneCountInString(text) > maxRigNameLength {
		text = string([]rune(text)[:maxRigNameLength])
	}
	if text = strings.TrimSpace(text); text == "" {
		return "rig"
	}
	return text
}

// Template returns a chipset.yaml that explains each of its knobs. Parse finds no
// error in it, and nothing at all to warn of, as long as the branch is one, the
// commands are commands and there are at most 30 polecats.
func Template(opts TemplateOptions) []byte {
	name := CleanName(opts.RigName)
	prefix := opts.Prefix
	if checkPrefix(prefix) != nil {
		prefix = BeadPrefix(name)
	}
	if opts.Polecats < 1 {
		opts.Polecats = templatePolecats
	}
	if opts.Worker = strings.TrimSpace(cleanText(opts.Worker)); opts.Worker == "" {
		opts.Worker = "claude"
	}
	if !slices.Contains(permissions(), opts.Permissions) {
		opts.Permissions = templatePermissions
	}
	values := strings.NewReplacer(
		"{name}", yamlText(name),
		"{prefix}", yamlText(prefix),
		"{polecats}", strconv.Itoa(opts.Polecats),
		"{worker}", yamlText(opts.Worker),
		"{permissions}", opts.Permissions,
		"{target}", yamlText(opts.Target),
		"{test}", yamlText(strings.TrimSpace(opts.Test)),
		"{presets}", strings.Join(builtinPresets(), ", "),
		"{max_polecats}", fmt.Sprint(maxPolecats),
	)
	return []byte(values.Replace(template))
}

func cleanText(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

// yamlText returns text as a YAML double-quoted scalar. Go's escapes are a subset of
// YAML's once the text is valid UTF-8.
func yamlText(text string) string { return strconv.Quote(cleanText(text)) }

const template = `# The definition of this rig. "chipset validate" checks it, "chipset up" runs it.
# Every section but agents may be left out; the values here are the defaults
# unless a comment says otherwise. Durations are seconds, or text such as 90s, 5m
# or 1h30m. Quoted text may hold anything.

rig:
  # Shown to people and agents. No default: init takes the directory's name.
  name: {name}
  # Begins the ID of every bead: 1 to 8 of a-z and 0-9. Default: from the name.
  bead_prefix: {prefix}
  # The longest an agent sleeps when file notification is lost.
  tick: 2s
  # How often the witness looks. Default: 10s, or a tenth of stall_detection where
  # that is less.
  patrol: 10s

agents:
  # A description; the entries below decide.
  topology: mayor-witness-polecat
  # Exactly one mayor and one witness; at most one refinery (implied when it is
  # left out); at least one polecat, and at most {max_polecats} without --force-count. A
  # "crew" agent gets a mailbox and a hook, but the rig does not run it. Each entry
  # may have skills: [...], names from an optional section skills.
  agents:
    - {name: mayor, role: mayor}
    - {name: witness, role: witness}
    - {name: refinery, role: refinery}
    # A pool: polecat-alpha, polecat-bravo, ... Default of count: 1.
    - {name: polecat-pool, role: polecat, count: {polecats}}

worker:
  # Who does the work: a preset, one of your own below, or a command line. Default:
  # the first of runtime.providers that has a preset, else claude. Presets:
  # {presets}.
  default: {worker}
  # What an agent may do without asking; with "ask" the rest is refused until you have
  # approved it (chipset approve). ask, edit (change files in its worktree) or full (run
  # anything). Default: ask.
  permissions: {permissions}
  # Time to end by itself between TERM and KILL.
  grace: 5s
  # Presets of your own, or changes to those built in. For example:
  #
  # presets:
  #   careful:
  #     # A list of arguments, executed as they are, or a command line.
  #     command: [my-agent, --batch, "{prompt_file}"]
  #     # stdin, arg (where "{prompt}" stands, or last), file (where
  #     # "{prompt_file}" stands, or last) or script (the bead's description alone).
  #     prompt: file
  #     # Ends a worker that takes longer; 0 is never. Default: 1h.
  #     timeout: 1h
  #     # Added to its environment.
  #     env: {MY_AGENT_HOME: /srv/my-agent}
  #     # For workers that are silent for long. Default: gupp's.
  #     stall_detection: 15m
  #     # Arguments that each permission adds.
  #     permissions: {edit: [--allow-edits], full: [--allow-all]}
  #     # Whose output it prints, where its name does not tell: a preset's name.
  #     client: claude
  #     # How often a session that ended too early is continued. Default: 2.
  #     resumes: 1
  presets: {}

merge:
  # The branch work lands on. Empty: main, else master, else what is checked out.
  target: {target}
  # The git remote to push to, by name. Empty: nothing is pushed.
  remote: ""
  # Must succeed before anything lands: a command line or a list of arguments.
  # Empty: nothing can land. Without a merge section it is guessed from the files.
  test: {test}
  # Ends a test that hangs.
  test_timeout: 20m
  # rework (a polecat does it again on the new tip) or block (the queue waits for
  # you). Default: rework.
  on_conflict: rework
  # Also push branches that have not landed yet.
  push_branches: false
  # More requests than this in the queue are worth a warning.
  max_waiting: 10
  # So many requests may be tested together, and land when the last one is green
  # on top of the others; a red one among them is looked for. 1: each by itself.
  batch: 1

dispatch:
  # sling (the mayor hands work out) or auto_claim (idle polecats take it).
  strategy: sling
  # Beads that may be worked on at once, 1 to {max_polecats}.
  max_parallel: 10
  # More ready beads than this become a convoy.
  batch_threshold: 3
  # Kept for definitions written for formulas.
  formula_support: true

gupp:
  # What you leave out here keeps its proportion to stall_detection.
  thresholds:
    # This long without progress is a stall: the witness asks the agent. 100ms or more.
    stall_detection: 300
    # This long it may take to answer: then the mayor is told.
    nudge_interval: 120
    # After this long without progress the worker should be restarted.
    restart_threshold: 600
    # Added to stall_detection until a new worker shows its first progress.
    slow_start: 60
  limits:
    # What is tried for one bead before it waits for you: new sessions after stalls,
    # assignments that failed, reworks after conflicts.
    max_restarts_per_bead: 3
    max_attempts_per_bead: 3
    max_conflicts_per_bead: 10
    # The least time between two restarts of a bead.
    restart_cooldown: 60

mail:
  # Mail that is read and older than this moves to the archive.
  retention: 24h
  # The largest message, 1KiB to 64KiB.
  max_size: 64KiB

audit:
  # How often a running rig commits a snapshot of the state tree; 0s is never.
  every: 0s
  # The branch that keeps these commits.
  ref: chipset/audit
`
