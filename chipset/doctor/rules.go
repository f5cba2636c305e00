package doctor

import (
	"context"
	"fmt"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/environment"
	"github.com/gastown-chipset/chipset/chipset/rig"
)

// Rule is one thing that must be true of a rig. A finding names the rule that it breaks.
type Rule struct {
	ID string `json:"id"`
	// Area is the part of the rig that it is about.
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

// group is one check with the rules whose violations it reports.
type group struct {
	check check
	rules []Rule
}

// shared returns the rules about every file or time, which each check may report.
func shared() []string {
	return []string{ruleUnreadable, ruleSpecial, ruleCanonical, "folder", "future-time"}
}

// run runs the check. A finding with a rule that is neither shared nor in the group is an error.
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

// table is the one list of checks and rules, in the order in which they run: those whose
// repairs others rely on come first (locks, files, identities, git).
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
	toQuarantine = "moves it to state/quarantine with the reason"
	byHand       = "nothing; "
)

func treeGroups() []group {
	return []group{
		{inspecting((*inspection).filesForFolders), []Rule{
			{"special-file", areaFiles, "every file is a regular file with one name, and every folder a real folder: no links, FIFOs, sockets or devices", Error,
				toQuarantine + "; a file with a second name in the rig's folders gets a copy of its own; one with a name elsewhere stays, because that may be a backup"},
		}},
		{inspecting((*inspection).sharedFiles), nil}, // reports special-file
		{inspecting((*inspection).runFolder), []Rule{
			{"folder", areaTree, "state, run, logs, worktrees and each worktree are real folders, not links or files", Error, toQuarantine + "; the next use makes a new folder"},
			{"definition", areaTree, "chipset.yaml exists and has no errors", Error, byHand + "chipset validate names the lines; a running rig keeps using the copy in run/"},
			{"lock-file", areaRun, "a lock is a plain file below run/locks", Error, toQuarantine + ": nobody could take that lock"},
			{"stale-liveness", areaRun, "every liveness stamp belongs to a running process", Info, "removes it"},
			{"run-file", areaRun, "every record in run/ can be read", Warning, toQuarantine + ": it is a cache, and is made again"},
		}},
		{inspecting((*inspection).environment), []Rule{
			{environment.ReadOnly, areaMachine, "the state tree and git's folder are writable", Error, byHand + "make them writable; until then nothing moves on, but nothing is lost"},
			{environment.DiskLow, areaMachine, "1 GiB or 5% of the disk is free, whichever is less", Error, byHand + "free some space; failed writes lose nothing, but nothing moves on"},
			{environment.Diverged, areaMachine, "the target and the remote's branch, as last fetched, have not diverged", Warning, byHand + "git pull --rebase brings them together"},
			{"client", areaMachine, "every client in use is installed, logged in and accepts its flags", Warning, byHand + "chipset validate --live also runs the setup and the test"},
		}},
		{inspecting((*inspection).tree), []Rule{
			{"identity", areaTree, "rig.json exists and names the rig that git's own folder records", Error, byHand + "put the right tree back before you start anything"},
			{"foreign", areaTree, "state/ contains only files of the state tree", Warning, byHand + "move it out of the tree"},
			{"leftover", areaTree, "there are no unfinished files of processes that have ended", Warning, "removes it: nothing in it was acknowledged"},
		}},
		{inspecting((*inspection).objects), []Rule{
			{"unreadable", areaFiles, "every file is one valid JSON object in UTF-8: no duplicate keys, not too large or deep, values of the right types, and matching its file name", Error,
				toQuarantine + "; a hook is copied there and rebuilt from the beads"},
			{"canonical-form", areaFiles, "every file is in canonical form: sorted keys, two-space indent, times with nine digits in UTC", Warning, "rewrites it with the same content; mail is write-once and is left alone"},
		}},
	}
}

func channelGroups() []group {
	return []group{
		{inspecting((*inspection).channels), []Rule{
			{"mail-unknown-recipient", areaMail, "every mailbox belongs to a registered agent", Error, byHand + "name the agent in chipset.yaml and start the rig"},
			{"mail-unknown-sender", areaMail, "every message is from a registered agent", Warning, byHand + "it can be read all the same"},
			{"mail-twice", areaMail, "a message is in the mailbox or in its archive, not in both", Error, "removes the copy in the mailbox when the archive has the same message"},
			{"mail-same-id", areaMail, "no two messages of one sender have the same id", Warning, byHand + "handlers are idempotent"},
			{"unread-mail", areaMail, "no unread mail is older than the retention", Info, byHand + "chipset mail inbox AGENT --unread"},
			{"nudge-agent", areaNudges, "every nudge slot belongs to a registered agent", Warning, byHand + "move it out of the tree"},
			{"nudge-latest", areaNudges, "latest.json is the newest of all nudges", Warning, "rewrites it from the newest"},
			{"nudge-seen", areaNudges, "seen.json is not ahead of both the newest nudge and the clock", Error, "sets it back to the newest nudge; otherwise later ones would be ignored"},
			{"nudge-abort", areaNudges, "only the mayor and the person send abort nudges", Warning, byHand + "readers ignore it"},
			{"handoff-agent", areaNudges, "every hand-off belongs to a registered agent", Warning, byHand + "move it out of the tree"},
			{"handoff-name", areaNudges, "a hand-off is named after its time", Warning, "renames it after its time"},
		}},
		{inspecting((*inspection).eventLog), []Rule{
			{"event-line", areaLog, "every line of the event log is one complete event", Warning, byHand + "readers skip the line; nothing is decided by the event log"},
			{"event-torn", areaLog, "the last line of every day ends with a newline", Warning, "ends the line, so that the next event starts on a new one"},
			{"event-day", areaLog, "every event is in the file of its day", Warning, byHand + "readers accept it"},
		}},
	}
}

func repositoryGroups() []group {
	return []group{
		{related((*relations).registered), []Rule{
			{"agent-missing", areaAgents, "every agent of chipset.yaml and the person are registered and have a hook", Warning, "registers it"},
			{"agent-role", areaAgents, "every agent has the role that chipset.yaml gives it", Warning, byHand + "chipset up registers it again"},
			{"agent-rig", areaAgents, "every agent belongs to the rig of chipset.yaml", Warning, "registers those of chipset.yaml again; any other came from another rig's tree"},
		}},
		{related((*relations).gitFiles), []Rule{
			{"git-ref", areaGit, "every branch and salvage ref of the rig names an existing commit, and the target and the snapshot branch exist while their reflogs do", Error, "resets it to the newest commit that its reflog or the rig's records name; removes the ref of a snapshot that was not reported yet"},
			{"git-obstacle", areaGit, "no file stands where git needs a folder for the rig's refs, reflogs or worktrees", Error, "moves it to chipset-aside in git's folder"},
			{"git-lock", areaGit, "git has left no stale lock behind", Warning, "removes it once it has not changed for seconds and no git is running"},
			{"git-object", areaGit, "no git object is empty", Error, "removes the empty file; otherwise git would take it for the object and never write it again"},
			{"git-missing", areaGit, "every object reachable from the target branch exists", Error, "restores it from the rig's own copy or from a remote"},
			{"worktree-torn", areaGit, "git's own files of every worktree are intact", Error, "sets them aside, makes them again, and saves the content of the worktree on a salvage ref"},
		}},
	}
}

func relationGroups() []group {
	return []group{
		{related((*relations).work), []Rule{
			{"bead-hook", areaWork, "an assigned bead is on the hook of its assignee", Error, "opens the bead again, as the mayor does"},
			{"bead-dispatch", areaWork, "a dispatch record refers to the bead's own assignment", Warning, byHand + "the next dispatch replaces it"},
			{"bead-branch", areaWork, "no two beads share a branch, and a bead's branch is named after it", Warning, byHand + "find out who works on it"},
			{"bead-id", areaWork, "every bead's ID can be part of a branch name", Error, byHand + "no worker can ever start on it: chipset work cancel, and add it again"},
			{"dependency", areaWork, "every dependency of a bead exists", Error, byHand + "chipset work edit changes what it waits for"},
			{"dependency-cycle", areaWork, "no bead depends on itself, directly or through others", Error, byHand + "chipset work edit breaks the cycle; until then none of them can start"},
			{"dependency-cancelled", areaWork, "no open bead waits for one that is cancelled", Warning, byHand + "chipset work edit, or chipset work reopen"},
			{"attempt-over", areaWork, "the attempt at an assigned bead has not ended", Error, byHand + "chipset unsling opens it again"},
			{"bead-open", areaWork, "an open bead has no assignment", Warning, byHand + "the next dispatch replaces it"},
			{"finished-without-attempt", areaWork, "a finished bead was finished by an attempt, or was imported as finished", Error, byHand + "chipset work reopen has it done again"},
			{"hook-bead", areaAgents, "a hook names a bead that is assigned to its agent under the same assignment", Error, "clears it, as the mayor does; its polecat saves the work"},
			{"convoy", areaWork, "a convoy lists beads that exist, and a bead names a convoy that exists", Warning, byHand + "progress counts the beads that exist"},
			{"convoy-member", areaWork, "a bead that names a convoy is listed by it, and the other way round", Warning, "adds what is missing on one side"},
			{"convoy-progress", areaWork, "a convoy's progress is the share of its beads that have landed", Info, byHand + "the mayor counts again on its next tick"},
			{"done-without-request", areaQueue, "a bead that is done has a merge request", Error, "submits it again from the record of its attempt"},
			{"merged-without-request", areaQueue, "a merged bead has a merged request", Error, byHand + "check with git log whether it landed"},
			{"landed-not-told", areaQueue, "the bead of a merged request is merged", Error, "marks it merged, as the refinery does, unless the refinery is running"},
			{"request-bead", areaQueue, "a live request has a bead that is done under the same assignment", Error, byHand + "the mayor supersedes it; chipset queue drop removes it"},
			{"request-attempt", areaQueue, "a request agrees with the record of its attempt: bead, agent, branch, head", Error, byHand + "chipset queue drop removes it"},
			{"duplicate-seq", areaQueue, "no two requests have the same number", Error, "gives the newer one the next free number"},
			{"assignment-twice", areaQueue, "no assignment has two requests", Error, "drops the newer one if both are pending"},
		}},
		{related((*relations).unfinished), []Rule{
			{"dispatch-unfinished", areaRecords, "no dispatch is half done", Warning, "finishes or undoes it, as the mayor does"},
			{"dispatch-bead", areaRecords, "the bead of every dispatch record exists", Warning, "undoes the dispatch"},
			{"retire-unfinished", areaRecords, "no ended attempt is half finished while its polecat is not running", Warning, "finishes it, as the polecat does when it starts"},
			{"retire-bead", areaRecords, "the bead of every ended attempt exists", Warning, byHand + "it is only a record of the past"},
			{"merge-unfinished", areaRecords, "no request is half landed while the refinery is not running", Warning, "marks it merged if the target has it, or else puts it back into the queue"},
		}},
	}
}

func agentGroups() []group {
	return []group{
		{related((*relations).agents), []Rule{
			{"retired-agent", areaAgents, "a retired agent has no work and no unread mail", Warning, byHand + "the mayor reassigns its work; read its mail"},
			{"hook-missing", areaAgents, "every registered agent has exactly one hook", Error, "rebuilds it from the beads, with a gen higher than any before"},
			{"hook-without-agent", areaAgents, "every hook belongs to a registered agent", Error, toQuarantine + " if it is empty and chipset.yaml does not name the agent"},
			{"hook-role", areaAgents, "only polecats have work on their hooks", Warning, byHand + "chipset hook clear removes it"},
			{"incident-twice", areaLog, "at most one incident is open for the same agent, assignment and kind", Error, "resolves the newer one"},
			{"incident-stale", areaLog, "an open incident is about what is on the hook", Info, byHand + "the witness resolves it on its next patrol"},
			{"incident-agent", areaLog, "every incident names a registered agent", Warning, byHand + "look at it"},
		}},
	}
}

func gitGroups() []group {
	return []group{
		{related((*relations).againstGit), []Rule{
			{"repository", areaGit, "there is a git repository around the rig", Error, byHand + "put it back"},
			{"exclude", areaGit, ".git/info/exclude keeps git away from the live tree", Error, "adds the missing lines"},
			{"pointer", areaGit, "git's own folder records which rig this is, and where", Error, "writes the record"},
			{"target", areaGit, "the branch that work lands on exists", Error, byHand + "create it, or name another in chipset.yaml"},
			{"request-head", areaQueue, "the commits that a request names exist", Error, byHand + "chipset queue drop, then chipset work reopen"},
			{"request-branch", areaQueue, "the branch of every live request exists", Warning, "creates it again at the request's head"},
			{"merged-unreachable", areaQueue, "the target contains every merged commit", Error, byHand + "somebody rewrote the target, or the repository lost the commit"},
			{"salvage-ref", areaGit, "every salvage ref that a record names exists", Warning, byHand + "somebody removed it, or git lost it"},
			{"state-in-git", areaGit, "neither the checkout's index nor the target contains the live tree, except in a rig made with --track-state", Warning,
				byHand + "git rm -r -q --cached .chipset/state, and commit that"},
			{"branches", areaGit, "finished beads have no branches left", Info, byHand + "git branch -D removes those that you don't need any more"},
			{"worktree-agent", areaGit, "every worktree of the rig belongs to a polecat, the refinery or a session of yours", Warning, byHand + "look at its content, then: git worktree remove"},
			{"worktree-gone", areaGit, "the folder of every worktree that git has registered exists", Warning, "keeps its commit on a salvage ref, and removes the registration"},
			{"worktree-foreign", areaGit, "every folder in worktrees/ is a git worktree", Warning, byHand + "chipset leaves it alone; move it away"},
		}},
		{inspecting((*inspection).processes), []Rule{
			{"worker-record", areaRun, "every exit record of a worker can be read", Warning, toQuarantine},
			{"orphaned-worker", areaRun, "the polecat of every running worker is running, too", Error, "ends it and saves its work, as the polecat does when it starts"},
		}},
		{related((*relations).allTimes), []Rule{
			{"time-order", areaFiles, "no object was changed or closed before it was made", Warning, byHand + "a clock was set back; nothing is decided by these times alone"},
			{"future-time", areaFiles, "no time lies more than a day ahead of the clock", Warning, byHand + "correct the clock; what waits for that time waits until then"},
			{"bead-closed", areaWork, "finished beads, and only those, have a closed_at", Warning, byHand + "nothing depends on it"},
		}},
		{inspecting((*inspection).quarantined), []Rule{
			{"quarantine", areaLog, "the quarantine is empty", Warning, byHand + "look at it, then remove it and its .reason.json by hand"},
			{"quarantine-reason", areaLog, "every file in quarantine has its reason beside it, and every reason its file", Warning, "writes a reason for the file, or removes a reason without a file"},
		}},
	}
}
