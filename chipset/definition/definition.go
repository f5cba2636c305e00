package definition

import (
	"fmt"
	"slices"
	"time"

	"gopkg.in/yaml.v3"
)

// Definition is a rig as chipset.yaml describes it, with all defaults applied. Parse
// makes it, and nothing changes it afterwards. Its keys are those of the schema.
type Definition struct {
	Header        Header
	Skills        Skills
	Topology      Topology `yaml:"agents"`
	Communication Communication
	Dispatch      Dispatch
	Evaluation    Evaluation
	Runtime       Runtime
	GUPP          GUPP
	Rig           Rig
	Worker        Worker
	// Sandbox is auto, off or require: whether workers and tests run in a sandbox.
	Sandbox  string
	Allow    Allow
	Network  Network
	Worktree Worktree
	Merge    Merge
	Mail     Mail
	Limits   Allowance
	Budget   Budget
	// Prices are by the beginnings of models' names, and by names of clients; see Definition.Price.
	Prices map[string]Price
	Notify Notify
	Audit  Audit
	// MergeDefined reports whether the file has a merge section. Without one nobody
	// has decided how to test; in one, an empty Merge.Test is a decision.
	MergeDefined bool `yaml:"-"`

	// polecats replaces the number of polecats when it is above 0.
	polecats int
	// auditGiven is true when the file says how often a snapshot is taken.
	auditGiven bool
}

// Header describes the chipset. It has no effect on how a rig runs.
type Header struct {
	Name        string
	Version     string
	Archetype   string
	Description string
	Provenance  string
}

// Skills is the manifest of what the agents may know.
type Skills struct {
	Required    []Skill
	Recommended []Skill
}

// All returns the required skills, then the recommended ones.
func (s Skills) All() []Skill {
	return slices.Concat(s.Required, s.Recommended)
}

// Skill is one entry of the manifest.
type Skill struct {
	Name        string
	Domain      string
	Description string
	// TokenBudgetWeight is this skill's share of the token budget, 0 to 1.
	TokenBudgetWeight float64 `yaml:"token_budget_weight"`
}

// Role is what an agent is in its rig.
type Role string

// The roles a definition may give. A rig has exactly one mayor, one witness and
// one refinery, at least one polecat, and any crew.
const (
	RoleMayor    Role = "mayor"
	RoleWitness  Role = "witness"
	RoleRefinery Role = "refinery"
	RolePolecat  Role = "polecat"
	// RoleCrew is registered, so it has an inbox and a hook, but no process of the
	// rig runs it: a person's own workspace, or another program.
	RoleCrew Role = "crew"
)

// Topology is the agents section as written; Definition.Agents expands it.
type Topology struct {
	Name    string       `yaml:"topology"`
	Entries []AgentEntry `yaml:"agents"`
}

// AgentEntry is one entry of the agents section: an agent, or a pool of them.
type AgentEntry struct {
	Name   string
	Role   Role
	Skills []string
	// Count is how many agents the entry stands for; the default is 1.
	Count int
	// Line is where the entry begins.
	Line int `yaml:"-"`
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (e *AgentEntry) UnmarshalYAML(node *yaml.Node) error {
	type fields AgentEntry
	*e = AgentEntry{Count: 1, Line: node.Line}
	return node.Decode((*fields)(e))
}

// ChannelType is one of the ways in which agents reach each other.
type ChannelType string

// The channels of a chipset.
const (
	ChannelMail    ChannelType = "mail"
	ChannelNudge   ChannelType = "nudge"
	ChannelHook    ChannelType = "hook"
	ChannelHandoff ChannelType = "handoff"
)

// Communication lists the channels. It is a checked description: the layout of the
// state tree determines where a channel lies.
type Communication struct {
	Channels []Channel
}

// Channel is one declared channel.
type Channel struct {
	Name string
	Type ChannelType
	// Path is relative to .chipset, slash-separated and clean: state/mail.
	Path     string `yaml:"filesystem_path"`
	Behavior string
}

// Strategy says who assigns ready beads.
type Strategy string

const (
	// StrategySling: the mayor slings ready work to idle polecats.
	StrategySling Strategy = "sling"
	// StrategyAutoClaim: idle polecats claim ready work, the mayor watches.
	StrategyAutoClaim Strategy = "auto_claim"
	// strategyRoundRobin is accepted from existing definitions, as StrategySling.
	strategyRoundRobin Strategy = "round-robin"
)

// Dispatch says how work reaches polecats.
type Dispatch struct {
	Strategy Strategy
	// MaxParallel is how many beads may be assigned at the same time.
	MaxParallel int `yaml:"max_parallel"`
	// BatchThreshold is the number of ready beads above which they become a convoy.
	BatchThreshold int  `yaml:"batch_threshold"`
	FormulaSupport bool `yaml:"formula_support"`
}

// Evaluation holds the checks made before a rig starts to work.
type Evaluation struct{ Gates Gates }

// Gates are the checks by the moment they are made.
type Gates struct {
	PreDeploy []Gate `yaml:"pre_deploy"`
}

// Gate is one check. The meaning of the threshold depends on the check; a failed check
// blocks, warns or logs.
type Gate struct {
	Check     string
	Threshold float64
	Action    string
}

// Runtime lists the agent runtimes the chipset was written for, best first.
type Runtime struct {
	Providers []Provider
}

// Provider is one runtime and what it can do.
type Provider struct {
	Name         string
	Capabilities []string
}

// GUPP holds the witness's thresholds and the mayor's limits.
type GUPP struct {
	Thresholds Thresholds
	Limits     Limits
}

// Thresholds are the durations by which the witness judges workers. The default of each
// is proportional to StallDetection.
type Thresholds struct {
	// StallDetection is the time without progress after which a worker is stalled.
	StallDetection time.Duration `yaml:"stall_detection"`
	// NudgeInterval is the time that an agent has to answer a nudge.
	NudgeInterval time.Duration `yaml:"nudge_interval"`
	// RestartThreshold is the time without progress after which a restart is recommended.
	RestartThreshold time.Duration `yaml:"restart_threshold"`
	// SlowStart is added to StallDetection until a worker shows its first progress.
	SlowStart time.Duration `yaml:"slow_start"`
}

// Limits bound the attempts at one bead before it waits for a person.
type Limits struct {
	// MaxRestarts is how many new sessions a stalled worker gets.
	MaxRestarts int `yaml:"max_restarts_per_bead"`
	// RestartCooldown is the least time between two restarts of a bead.
	RestartCooldown time.Duration `yaml:"restart_cooldown"`
	// MaxAttempts counts assignments that ended in a failure.
	MaxAttempts int `yaml:"max_attempts_per_bead"`
	// MaxConflicts counts reworks after merge conflicts.
	MaxConflicts int `yaml:"max_conflicts_per_bead"`
}

// Rig holds what concerns the rig as a whole.
type Rig struct {
	// Name is free text without control characters.
	Name string
	// BeadPrefix begins every bead's ID: 1 to 8 of a-z and 0-9.
	BeadPrefix string `yaml:"bead_prefix"`
	// Tick is how long an agent sleeps at most, in case a file notification is lost.
	Tick time.Duration
	// Patrol is the witness's interval.
	Patrol time.Duration
}

// The values of Merge.OnConflict.
const (
	// OnConflictRework: the bead is reopened on the new tip, and the queue continues.
	OnConflictRework = "rework"
	// OnConflictBlock: the queue waits for a person.
	OnConflictBlock = "block"
)

// Merge says how finished work lands.
type Merge struct {
	// Target is the branch that work lands on, empty for the one recorded by init.
	Target string
	// Remote is the name of a git remote, empty for a purely local rig.
	Remote string
	// Test must succeed on what is merged; without one nothing lands.
	Test        Command
	TestTimeout time.Duration `yaml:"test_timeout"`
	OnConflict  string        `yaml:"on_conflict"`
	// PushBranches publishes branches that have not landed yet.
	PushBranches bool `yaml:"push_branches"`
	// MaxWaiting is the depth of the queue above which the mayor is warned.
	MaxWaiting int `yaml:"max_waiting"`
	// Batch is how many requests may be rebased and tested as one stack; 1 is each by itself.
	Batch int
	// Protect are patterns of paths, as in .gitignore. A change there lands only with the person's approval.
	Protect []string
}

// Mail holds the limits of mailboxes.
type Mail struct {
	// Retention is the age at which read mail is archived.
	Retention time.Duration
	// MaxSize bounds one message, in bytes.
	MaxSize int64 `yaml:"max_size"`
}

// Allowance bounds what one worker may use. Whatever exceeds a limit is refused or ended, the person is told once, and
// the rig continues.
type Allowance struct {
	// Beads is how many beads the work on one bead may add. Depth is how long a chain of such beads may become.
	Beads, Depth int
	// Mail is how many messages one agent may send in an hour.
	Mail int
	// Commands is how many commands one session may run on its rig.
	Commands int
	// Log bounds the transcript of a session, in bytes on the disk; its end is kept.
	Log int64
	// Disk bounds a worker's worktree and temporary files, in bytes; over it the attempt ends.
	Disk int64
	// Memory bounds the memory of all processes of a worker, in bytes, Tasks the number of its processes and threads; over one
	// of them the attempt ends. Memory 0 is three quarters of the machine's.
	Memory int64
	Tasks  int
}

// Budget bounds what attempts may use before the person is asked.
type Budget struct {
	// Bead is for all attempts at one bead, Convoy for all beads of a convoy, Day for the whole rig on one local day. Plan
	// is for what an attempt uses before its plan is approved, if its worker must plan first.
	Bead, Convoy, Day, Plan Bounds
}

// IsZero reports whether nothing is bounded.
func (b Budget) IsZero() bool { return b == Budget{} }

// Bounds are a budget; 0 is no bound.
type Bounds struct {
	// Money is in US dollars.
	Money  float64
	Tokens int64
	// Attempts counts assignments that were started.
	Attempts int
	// Time is the sum of the workers' running times.
	Time time.Duration
}

// IsZero reports whether there is no bound.
func (b Bounds) IsZero() bool { return b == Bounds{} }

// Notify says how a running rig reaches a person who is not watching it.
type Notify struct {
	// Terminal rings the bell of the terminal of up, and shows a notification if the terminal supports that.
	Terminal bool
	// Desktop shows a notification on the desktop of this machine.
	Desktop bool
	// Command is executed without a shell, with the notification as JSON on its standard input. Empty runs nothing.
	Command []string
	// Webhook is an http or https URL that receives the same JSON, or "".
	Webhook string
	Quiet   Hours
	// Digest also sends a summary of the work when the rig becomes idle.
	Digest bool
}

// Any reports whether any channel is configured.
func (n *Notify) Any() bool {
	return n.Terminal || n.Desktop || len(n.Command) > 0 || n.Webhook != ""
}

// Hours are a part of each day by the local clock: from From until To, both since midnight. To may be before From, past
// midnight. Zero is no part of the day.
type Hours struct{ From, To time.Duration }

// UnmarshalYAML implements yaml.Unmarshaler: 22:00-07:00.
func (h *Hours) UnmarshalYAML(node *yaml.Node) error {
	*h = Hours{}
	if node.Value == "" {
		return nil
	}
	var from, to [2]int
	if _, err := fmt.Sscanf(node.Value, "%d:%d-%d:%d", &from[0], &from[1], &to[0], &to[1]); err != nil {
		return fmt.Errorf("%s: %w", node.Value, err)
	}
	sum := func(t [2]int) time.Duration {
		return time.Duration(t[0])*time.Hour + time.Duration(t[1])*time.Minute
	}
	*h = Hours{sum(from), sum(to)}
	return nil
}

// Contains reports whether t is within the hours, in its own location.
func (h Hours) Contains(t time.Time) bool {
	now := time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute
	if h.From <= h.To {
		return h.From <= now && now < h.To
	}
	return now >= h.From || now < h.To
}

// AuditAtEnds reports whether a rig also takes a snapshot when it starts and ends: only if the file gives an interval.
func (d *Definition) AuditAtEnds() bool { return d.auditGiven }

// Audit says when the state tree is committed.
type Audit struct {
	// Every is the interval between snapshots while the rig runs; 0 takes none by itself.
	Every time.Duration
	// Ref is the branch that keeps them.
	Ref string
}
