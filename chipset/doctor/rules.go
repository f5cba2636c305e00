package doctor

import (
	"context"
	"fmt"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/environment"
	"github.com/gastown-chipset/chipset/chipset/rig"
)

// Rule is one thing that must be true of a rig's files. A finding names the rule
// that it breaks.
type Rule struct {
	ID string `json:"id"`
	// Area is the part of the tree that it is about.
	Area string `json:"area"`
	// Meaning is what must be true.
	Meaning string `json:"meaning"`
	// Severity is the worst that a violation can be.
	Severity Severity `json:"severity"`
	// Repair is what --fix does about it, or what a person does instead.
	Repair string `json:"repair"`
}

// Areas of the rules.
const (
	areaTree    = "the tree"
	areaFiles   = "every file"
	areaAgents  = "agents and hooks"
	areaWork    = "beads and convoys"
	areaQueue   = "merge queue"
	areaRecords = "unfinished work"
	areaMail    = "mail"
	areaNudges  = "nudges and hand-offs"
	areaLog     = "events, incidents, quarantine"
	areaRun     = "the folder run/"
	areaGit     = "git"
	areaMachine = "what the rig stands on"
)

// group is one check with the rules that it reports.
type group struct {
	check check
	rules []Rule
}

// shared are the rules about every file or time, which each check may report.
func shared() []string {
	return []string{ruleUnreadable, ruleSpecial, ruleCanonical, "folder", "future-time"}
}

// run runs the check. A finding of a rule that is neither shared nor in the group is an error.
func (g *group) run(ctx context.Context, r *rig.Rig) ([]finding, error) {
	l := &inspection{r: r}
	var err error
	l.found, err = g.check(ctx, r)
	err = l.notice(err)
	found := l.found
	for i := range found {
		id := found[i].Rule
		if !slices.Contains(shared(), id) && !slices.ContainsFunc(g.rules, func(rule Rule) bool { return rule.ID == id }) {
			return found, fmt.Errorf("the rule %q is reported by another check than its own", id)
		}
	}
	return found, err
}

// table is the one list of checks and rules, in the order in which they are looked
// at: what others need to be repaired comes first (locks, files, identities, git).
func table() []group {
	return slices.Concat(treeGroups(), channelGroups(), repositoryGroups(), relationGroups(), agentGroups(), gitGroups())
}

// Rules lists every rule, area by area.
func Rules() []Rule {
	var all []Rule
	for _, g := range table() {
		all = append(all, g.rules...)
	}
	areas := []string{areaTree, areaFiles, areaRun, areaAgents, areaWork, areaQueue, areaRecords, areaMail, areaNudges, areaLog, areaGit, areaMachine}
	slices.SortStableFunc(all, func(a, b Rule) int { return slices.Index(areas, a.Area) - slices.Index(areas, b.Area) })
	return all
}

func ruleOf(id string) (Rule, bool) {
	all := Rules()
	i := slices.IndexFunc(all, func(r Rule) bool { return r.ID == id })
	if i < 0 {
		return Rule{}, false
	}
	return all[i], true
}

const (
	toQuarantine = "moves it to state/quarantine with its reason"
	byHand       = "nothing; "
)

func treeGroups() []group {
	return []group{
		{inspecting((*inspection).filesForFolders), []Rule{
			{"special-file", areaFiles, "nothing is reached through a link, a FIFO, a socket, a device or a folder in place of a file or a file in place of a folder, and no file has a second name", Error,
				toQuarantine + "; a file whose other names all lie in the rig's folders gets one of its own, any other stays, because its second name may be a backup"},
		}},
		{inspecting((*inspection).sharedFiles), nil}, // reports special-file
		{inspecting((*inspection).runFolder), []Rule{
			{"folder", areaTree, "state, run, logs, worktrees and each worktree are real folders, not links or files", Error, toQuarantine + "; the next use makes a new folder"},
			{"definition", areaTree, "chipset.yaml exists and has no errors", Error, byHand + "chipset validate names the lines; a running rig goes on with the copy in run/"},
			{"lock-file", areaRun, "a lock is a plain file below run/locks", Error, toQuarantine + ": nobody could take that lock"},
			{"stale-liveness", areaRun, "a liveness stamp has a process that speaks for the agent", Info, "removes it"},
			{"run-file", areaRun, "what lies in run/ can be read", Warning, toQuarantine + ": it is a cache, and is made again"},
		}},
		{inspecting((*inspection).environment), []Rule{
			{environment.ReadOnly, areaMachine, "the state tree and git's folder can be written", Error, byHand + "make them writable: nothing is lost, but nothing moves on"},
			{environment.DiskLow, areaMachine, "the disk has 1 GiB or a twentieth of it free, whichever is less", Error, byHand + "make room: writes that fail lose nothing, but nothing moves on"},
			{environment.Diverged, areaMachine, "one of the target and the remote's branch, as git last saw it, follows the other", Warning, byHand + "git pull --rebase brings them together"},
			{"client", areaMachine, "each client that works here is installed, logged in, and takes its flags", Warning, byHand + "chipset validate --live also runs the setup and the test"},
		}},
		{inspecting((*inspection).tree), []Rule{
			{"identity", areaTree, "rig.json exists and names the rig that git's own folder records", Error, byHand + "put the right tree back before anything runs"},
			{"foreign", areaTree, "state/ holds nothing but what belongs to the tree", Warning, byHand + "move it out of the tree"},
			{"leftover", areaTree, "no process that is gone left an unfinished file", Warning, "removes it: nothing was acknowledged on it"},
		}},
		{inspecting((*inspection).objects), []Rule{
			{"unreadable", areaFiles, "every file is whole: one JSON object in UTF-8, no key twice, not too large or deep, values of their kinds, and in agreement with its name", Error,
				toQuarantine + "; a hook is copied there and rebuilt from the beads"},
			{"canonical-form", areaFiles, "every file has the one canonical form: sorted keys, two-space indent, times with nine digits in UTC", Warning, "rewrites it with the same content; mail is write-once and stays"},
		}},
	}
}

func channelGroups() []group {
	return []group{
		{inspecting((*inspection).channels), []Rule{
			{"mail-unknown-recipient", areaMail, "a mailbox belongs to a registered agent", Error, byHand + "name the agent in chipset.yaml and start the rig"},
			{"mail-unknown-sender", areaMail, "a message is from a registered agent", Warning, byHand + "it is read all the same"},
			{"mail-twice", areaMail, "a name stands in the mailbox or in its archive, not in both", Error, "removes the copy in the mailbox when the archive has the same message"},
			{"mail-same-id", areaMail, "one sender's id is delivered once", Warning, byHand + "handlers are idempotent"},
			{"unread-mail", areaMail, "unread mail is younger than the retention", Info, byHand + "chipset mail inbox AGENT --unread"},
			{"nudge-agent", areaNudges, "a slot belongs to a registered agent", Warning, byHand + "move it out of the tree"},
			{"nudge-latest", areaNudges, "latest.json is the newest nudge of all", Warning, "rewrites it from the newest"},
			{"nudge-seen", areaNudges, "seen.json is not ahead of the newest nudge and of the clock", Error, "takes it back to the newest nudge: later ones would be ignored"},
			{"nudge-abort", areaNudges, "only the mayor and the person send abort nudges", Warning, byHand + "its reader ignores it"},
			{"handoff-agent", areaNudges, "a hand-off belongs to a registered agent", Warning, byHand + "move it out of the tree"},
			{"handoff-name", areaNudges, "a hand-off's name is its time", Warning, "gives it the name of its time"},
		}},
		{inspecting((*inspection).eventLog), []Rule{
			{"event-line", areaLog, "every line of the event log is one whole event", Warning, byHand + "every reader skips the line; nothing is decided by the event log"},
			{"event-torn", areaLog, "the last line of every day ends with a newline", Warning, "ends the line, so that the next event begins on its own"},
			{"event-day", areaLog, "an event stands in the file of its day", Warning, byHand + "readers take it as it is"},
		}},
	}
}

func repositoryGroups() []group {
	return []group{
		{related((*relations).registered), []Rule{
			{"agent-missing", areaAgents, "every agent of chipset.yaml and the person are registered and have a hook", Warning, "registers it"},
			{"agent-role", areaAgents, "an agent has the role that chipset.yaml gives it", Warning, byHand + "chipset up registers it again"},
			{"agent-rig", areaAgents, "an agent belongs to the rig of chipset.yaml", Warning, "registers those of chipset.yaml again; any other came from another rig's tree"},
		}},
		{related((*relations).gitFiles), []Rule{
			{"git-ref", areaGit, "every branch and salvage ref of the rig names an existing commit, and the target and the snapshot branch exist while their reflogs do", Error, "puts it back on the newest commit that its reflog or the rig's records name; removes that of a snapshot that was not reported yet"},
			{"git-obstacle", areaGit, "no file is in the place of a folder that git needs for the rig's refs, reflogs or worktrees", Error, "moves it to chipset-aside in git's folder"},
			{"git-lock", areaGit, "no git left a lock behind", Warning, "removes it once it has stood unchanged for seconds and no git runs"},
			{"git-object", areaGit, "no object of git is empty", Error, "removes the empty file: git would take it for the object, and never write that again"},
			{"git-missing", areaGit, "every object that the target branch reaches is there", Error, "puts back what the rig has kept of it, and asks remotes for the rest"},
			{"worktree-torn", areaGit, "git's own files of a worktree are whole", Error, "sets them aside, makes them again and saves what the worktree holds on a salvage ref"},
		}},
	}
}

func relationGroups() []group {
	return []group{
		{related((*relations).work), []Rule{
			{"bead-hook", areaWork, "an assigned bead is on the hook of its assignee", Error, "opens it again, as the mayor does"},
			{"bead-dispatch", areaWork, "a dispatch record refers to the bead's own assignment", Warning, byHand + "the next dispatch replaces it"},
			{"bead-branch", areaWork, "no two beads share a branch, and a bead's branch carries its name", Warning, byHand + "look at who works there"},
			{"bead-id", areaWork, "a bead's ID can be part of a branch's name", Error, byHand + "no worker can ever begin with it: chipset work cancel, and add it again"},
			{"dependency", areaWork, "a bead waits for beads that exist", Error, byHand + "chipset work edit changes what it waits for"},
			{"dependency-cycle", areaWork, "no bead waits for itself, over whatever others", Error, byHand + "chipset work edit breaks it: none of them can ever start"},
			{"dependency-cancelled", areaWork, "no open bead waits for one that is cancelled", Warning, byHand + "chipset work edit, or chipset work reopen"},
			{"attempt-over", areaWork, "the attempt at an assigned bead is not over", Error, byHand + "chipset unsling opens it again"},
			{"bead-open", areaWork, "an open bead carries no assignment", Warning, byHand + "the next dispatch replaces it"},
			{"finished-without-attempt", areaWork, "a finished bead was finished by an attempt, or was imported as finished", Error, byHand + "chipset work reopen has it done again"},
			{"hook-bead", areaAgents, "a hook names a bead that is assigned to its agent under the same assignment", Error, "clears it, as the mayor does; its polecat saves the work"},
			{"convoy", areaWork, "a convoy lists beads that exist, and a bead names a convoy that exists", Warning, byHand + "progress counts what is there"},
			{"convoy-member", areaWork, "a bead that names a convoy is listed by it, and the other way round", Warning, "writes the side that is missing"},
			{"convoy-progress", areaWork, "a convoy's progress is landed of all", Info, byHand + "the mayor counts again on its next tick"},
			{"done-without-request", areaQueue, "a bead that is done has a merge request", Error, "submits it again as the record of its attempt says"},
			{"merged-without-request", areaQueue, "a bead that is merged has a request that is", Error, byHand + "look into git log whether it landed"},
			{"landed-not-told", areaQueue, "the bead of a merged request is merged", Error, "finishes it as the refinery does, while that does not run"},
			{"request-bead", areaQueue, "a live request has a bead that is done under the same assignment", Error, byHand + "the mayor supersedes it; chipset queue drop takes it out"},
			{"request-attempt", areaQueue, "a request says what the record of its attempt says: bead, agent, branch, head", Error, byHand + "chipset queue drop takes it out"},
			{"duplicate-seq", areaQueue, "no two requests have one number", Error, "gives the younger of two the next free number"},
			{"assignment-twice", areaQueue, "one assignment has one request", Error, "drops the younger of two that both wait"},
		}},
		{related((*relations).unfinished), []Rule{
			{"dispatch-unfinished", areaRecords, "no dispatch is half done", Warning, "finishes or undoes it, as the mayor does"},
			{"dispatch-bead", areaRecords, "a dispatch record has a bead", Warning, "undoes the dispatch"},
			{"retire-unfinished", areaRecords, "no attempt's end is half done while its polecat does not run", Warning, "finishes it, as the polecat's next start does"},
			{"retire-bead", areaRecords, "the end of an attempt has a bead", Warning, byHand + "it is a record of what was"},
			{"merge-unfinished", areaRecords, "no request is being landed while the refinery does not run", Warning, "finishes it if the target holds it, else lets it wait for its turn again"},
		}},
	}
}

func agentGroups() []group {
	return []group{
		{related((*relations).agents), []Rule{
			{"retired-agent", areaAgents, "a retired agent has no work and no unread mail", Warning, byHand + "the mayor gives its work to another; read its mail"},
			{"hook-missing", areaAgents, "every registered agent has exactly one hook", Error, "makes a new one from the beads, with a gen above every one that was seen"},
			{"hook-without-agent", areaAgents, "every hook belongs to a registered agent", Error, toQuarantine + " when it is empty and nobody will register the agent"},
			{"hook-role", areaAgents, "only polecats have work on their hooks", Warning, byHand + "chipset hook clear takes it off"},
			{"incident-twice", areaLog, "at most one incident is open for an agent, an assignment and a kind", Error, "resolves the newer one"},
			{"incident-stale", areaLog, "an open incident is about what is on the hook", Info, byHand + "the witness resolves it on its next patrol"},
			{"incident-agent", areaLog, "an incident names an agent that is registered", Warning, byHand + "look at it"},
		}},
	}
}

func gitGroups() []group {
	return []group{
		{related((*relations).againstGit), []Rule{
			{"repository", areaGit, "there is a git repository around the rig", Error, byHand + "put it back"},
			{"exclude", areaGit, ".git/info/exclude keeps git away from the live tree", Error, "adds the missing lines"},
			{"pointer", areaGit, "git's own folder says where the rig is, and which one it is", Error, "writes it"},
			{"target", areaGit, "the branch that work lands on exists", Error, byHand + "make it, or name another in chipset.yaml"},
			{"request-head", areaQueue, "the commits that a request names are there", Error, byHand + "chipset queue drop, then chipset work reopen"},
			{"request-branch", areaQueue, "the branch of a live request exists and holds its head", Warning, "makes it again at the head, when it is gone"},
			{"merged-unreachable", areaQueue, "the target holds every commit that was merged", Error, byHand + "somebody rewrote the target, or the repository lost it"},
			{"salvage-ref", areaGit, "the salvage refs that records name exist", Warning, byHand + "somebody removed it, or git lost it"},
			{"state-in-git", areaGit, "neither the checkout's index nor the target holds the live tree, but in a rig made with --track-state", Warning,
				byHand + "git rm -r -q --cached .chipset/state, and commit that"},
			{"branches", areaGit, "finished beads have no branches left", Info, byHand + "git branch -D removes those that nobody wants to look at"},
			{"worktree-agent", areaGit, "every worktree of the rig has its polecat or refinery", Warning, byHand + "look at what it holds, then: git worktree remove"},
			{"worktree-gone", areaGit, "every worktree that git knows of has its folder", Warning, "keeps its commit on a salvage ref, and makes git forget it"},
			{"worktree-foreign", areaGit, "every folder in worktrees/ is a worktree", Warning, byHand + "chipset leaves it alone; move it away"},
		}},
		{inspecting((*inspection).processes), []Rule{
			{"worker-record", areaRun, "a worker's exit record can be read", Warning, toQuarantine},
			{"orphaned-worker", areaRun, "every running worker has its polecat", Error, "ends it and saves its work, as the polecat's next start does"},
		}},
		{related((*relations).allTimes), []Rule{
			{"time-order", areaFiles, "no object was changed or closed before it was made", Warning, byHand + "a clock was set back; nothing goes by these times alone"},
			{"future-time", areaFiles, "no time lies more than a day ahead of the clock", Warning, byHand + "set the clock right; what waits for that time waits until then"},
			{"bead-closed", areaWork, "exactly the finished beads have a closed_at", Warning, byHand + "nothing goes by it"},
		}},
		{inspecting((*inspection).quarantined), []Rule{
			{"quarantine", areaLog, "the quarantine is empty", Warning, byHand + "look at it, then remove it and its .reason.json by hand"},
			{"quarantine-reason", areaLog, "every file in quarantine has its reason beside it, and every reason its file", Warning, "writes a reason that says so, or removes one that refers to nothing"},
		}},
	}
}
