package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

// damage is one thing that can happen to a rig.
type damage struct {
	name  string
	spoil func(f *fixture)
	// named are the rules that the first look must name.
	named string
	// stays are those that may stand after --fix, because only a person can decide.
	stays string
}

// one is the only file that a pattern below .chipset matches, or the first.
func (f *fixture) one(pattern string) string {
	f.T.Helper()
	found, err := filepath.Glob(f.Tree.Abs(state.Path(pattern)))
	f.Must(err)
	if len(found) == 0 {
		f.Must(fmt.Errorf("nothing matches %s", pattern))
	}
	info, err := os.Lstat(found[0])
	f.Must(err)
	if info.Mode().Type() == os.ModeNamedPipe { // an earlier damage: to open it would wait forever
		f.Must(fmt.Errorf("%s is a FIFO", found[0]))
	}
	return found[0]
}

// edit changes fields of a state file as a person with an editor does.
func (f *fixture) edit(pattern string, change func(v map[string]any)) {
	f.T.Helper()
	path := f.one(pattern)
	data, err := os.ReadFile(path)
	f.Must(err)
	var v map[string]any
	f.Must(json.Unmarshal(data, &v))
	change(v)
	data, err = state.Encode(v)
	f.Must(err)
	f.Must(os.WriteFile(path, data, 0o644))
}

func (f *fixture) item(v map[string]any) map[string]any {
	item, ok := v["work_item"].(map[string]any)
	if !ok {
		f.Must(errors.New("nothing hangs there"))
	}
	return item
}

func (f *fixture) inGit(elem ...string) string {
	return filepath.Join(append([]string{f.Dir, ".git"}, elem...)...)
}

func (f *fixture) put(path, text string) {
	f.T.Helper()
	f.Must(os.MkdirAll(filepath.Dir(path), 0o755))
	f.Must(os.WriteFile(path, []byte(text), 0o644))
}

// single are the damages that are no tear of one file.
var single = []damage{
	{"agent gone", func(f *fixture) { f.Must(os.Remove(f.one("state/agents/polecat-alpha.json"))) }, "agent-missing", ""},
	{"person gone", func(f *fixture) { f.Must(os.Remove(f.one("state/agents/human.json"))) }, "agent-missing", ""},
	{"agent of another role", func(f *fixture) {
		f.edit("state/agents/polecat-alpha.json", func(v map[string]any) { v["role"] = "crew" })
	}, "agent-role hook-role", "agent-role hook-role worktree-agent"},
	{"hook gone", func(f *fixture) { f.Must(os.Remove(f.one("state/hooks/polecat-alpha.json"))) }, "hook-missing", ""},
	{"all hooks gone", func(f *fixture) { f.Must(os.RemoveAll(f.Tree.Abs("state/hooks"))) }, "hook-missing", ""},
	{"hook and agent gone", func(f *fixture) {
		f.Must(os.Remove(f.one("state/hooks/polecat-alpha.json")))
		f.Must(os.Remove(f.one("state/agents/polecat-alpha.json")))
	}, "agent-missing bead-hook", ""},
	{"hook cleared by hand", func(f *fixture) {
		f.Must(f.Hooks.Put(string(alpha), hook.Hook{AgentID: alpha, Status: hook.Empty, Gen: 9, LastActivity: f.At()}))
	}, "bead-hook", "incident-stale"},
	{"hook of another bead", func(f *fixture) {
		f.edit("state/hooks/polecat-alpha.json", func(v map[string]any) { f.item(v)["bead_id"] = "gt-eeeee" })
	}, "hook-bead", "incident-stale"},
	{"hook of an old assignment", func(f *fixture) {
		f.edit("state/hooks/polecat-alpha.json", func(v map[string]any) { f.item(v)["assignment_id"] = "as-old" })
	}, "bead-hook hook-bead", "incident-stale"},
	{"hook set back to pending", func(f *fixture) {
		f.edit("state/hooks/polecat-alpha.json", func(v map[string]any) { v["status"] = "pending" })
	}, "bead-hook", "bead-hook"},
	{"hook completed, bead not", func(f *fixture) {
		f.edit("state/hooks/polecat-alpha.json", func(v map[string]any) { v["status"] = "completed" })
	}, "bead-hook", "incident-stale"},
	{"hook of nobody", func(f *fixture) {
		f.Must(f.Hooks.Ensure(f.T.Context(), "polecat-zulu", f.At()))
	}, "hook-without-agent", ""},
	{"bead opened by hand", func(f *fixture) {
		f.edit("state/work/gt-aaaaa.json", func(v map[string]any) { v["status"] = "open"; delete(v, "assignment_id") })
	}, "hook-bead", "incident-stale"},
	{"bead gone", func(f *fixture) { f.Must(os.Remove(f.one("state/work/gt-aaaaa.json"))) }, "hook-bead dependency", "dependency incident-stale"},
	{"bead of a submitted request gone", func(f *fixture) { f.Must(os.Remove(f.one("state/work/gt-ccccc.json"))) }, "request-bead retire-bead convoy", "request-bead retire-bead convoy"},
	{"bead without assignee", func(f *fixture) { f.edit("state/work/gt-aaaaa.json", func(v map[string]any) { delete(v, "assignee") }) }, "bead-hook", "incident-stale"},
	{"bead in a loop", func(f *fixture) {
		f.edit("state/work/gt-aaaaa.json", func(v map[string]any) { v["blocked_by"] = []string{"gt-eeeee"} })
	}, "dependency-cycle", "dependency-cycle"},
	{"bead that waits for nothing there", func(f *fixture) {
		f.edit("state/work/gt-eeeee.json", func(v map[string]any) { v["blocked_by"] = []string{"gt-none"} })
	}, "dependency", "dependency"},
	{"bead from the future", func(f *fixture) {
		f.edit("state/work/gt-eeeee.json", func(v map[string]any) { v["updated_at"] = "2199-01-01T00:00:00.000000000Z" })
	}, "future-time", "future-time"},
	{"bead changed before it was made", func(f *fixture) {
		f.edit("state/work/gt-eeeee.json", func(v map[string]any) { v["updated_at"] = "1999-01-01T00:00:00.000000000Z" })
	}, "time-order", "time-order"},
	{"bead with another's branch", func(f *fixture) {
		f.edit("state/work/gt-bbbbb.json", func(v map[string]any) { v["branch"] = "polecat/gt-aaaaa" })
	}, "bead-branch", "bead-branch"},
	{"bead merged without closed_at", func(f *fixture) {
		f.edit("state/work/gt-ddddd.json", func(v map[string]any) { delete(v, "closed_at") })
	}, "bead-closed", "bead-closed"},
	{"bead written by hand", func(f *fixture) {
		path := f.one("state/work/gt-eeeee.json")
		data, err := os.ReadFile(path)
		f.Must(err)
		f.Must(os.WriteFile(path, []byte(strings.ReplaceAll(string(data), "\n", "")), 0o644))
	}, "canonical-form", ""},
	{"merged bead set back to done", func(f *fixture) {
		f.edit("state/work/gt-ddddd.json", func(v map[string]any) { v["status"] = "done"; delete(v, "closed_at") })
	}, "landed-not-told", "convoy-progress"},
	{"merged bead opened again", func(f *fixture) {
		f.edit("state/work/gt-ddddd.json", func(v map[string]any) {
			v["status"] = "open"
			delete(v, "closed_at")
			delete(v, "assignment_id")
			delete(v, "assignee")
		})
	}, "landed-not-told", "landed-not-told convoy-progress"},
	{"bead merged by hand", func(f *fixture) {
		f.edit("state/work/gt-eeeee.json", func(v map[string]any) {
			v["status"], v["closed_at"] = "merged", v["updated_at"]
			delete(v, "assignment_id")
		})
	}, "merged-without-request", "merged-without-request"},
	{"bead closed by hand", func(f *fixture) {
		f.edit("state/work/gt-eeeee.json", func(v map[string]any) {
			v["status"], v["closed_at"] = "closed", v["updated_at"]
			delete(v, "assignment_id")
		})
	}, "finished-without-attempt", "finished-without-attempt"},
	{"open bead that is assigned", func(f *fixture) {
		f.edit("state/work/gt-eeeee.json", func(v map[string]any) { v["assignment_id"] = "as-none" })
	}, "bead-open", "bead-open"},
	{"attempt over, bead at work", func(f *fixture) {
		b, err := f.Beads.Get("gt-aaaaa")
		f.Must(err)
		f.Must(f.Retire.Put(string(b.AssignmentID), retire.Record{AssignmentID: b.AssignmentID, AgentID: b.Assignee, BeadID: b.ID, Outcome: retire.Fail,
			Stage: retire.Released, CreatedAt: f.At(), UpdatedAt: f.At()}))
	}, "attempt-over", "attempt-over"},
	{"bead that waits for a cancelled one", func(f *fixture) {
		b, err := f.Beads.Get("gt-eeeee")
		f.Must(err)
		b.ID, b.BlockedBy = "gt-fffff", nil
		f.Must(b.Become(bead.Cancelled, "", f.At()))
		f.Must(f.Beads.Create("gt-fffff", b))
		f.edit("state/work/gt-eeeee.json", func(v map[string]any) { v["blocked_by"] = []string{"gt-fffff"} })
	}, "dependency-cancelled", "dependency-cancelled"},
	{"request of another head than its attempt's", func(f *fixture) {
		q, err := f.Queue.Get("mr-gt-ccccc")
		f.Must(err)
		f.Must(f.Retire.Put(string(q.AssignmentID), retire.Record{AssignmentID: q.AssignmentID, AgentID: q.AgentID, BeadID: q.BeadID, Outcome: retire.Done,
			Branch: q.SourceBranch, Head: strings.Repeat("1", 40), Stage: retire.Released, CreatedAt: f.At(), UpdatedAt: f.At()}))
	}, "request-attempt", "request-attempt"},
	{"attempt that failed, bead that is merged", func(f *fixture) {
		b, err := f.Beads.Get("gt-ddddd")
		f.Must(err)
		f.Must(f.Retire.Put(string(b.AssignmentID), retire.Record{AssignmentID: b.AssignmentID, AgentID: b.Assignee, BeadID: b.ID, Outcome: retire.Fail,
			Stage: retire.Released, CreatedAt: f.At(), UpdatedAt: f.At()}))
	}, "finished-without-attempt", "finished-without-attempt"},
	{"convoy lists what is not", func(f *fixture) {
		f.edit("state/convoys/cv-aaa.json", func(v map[string]any) { v["bead_ids"] = []string{"gt-ccccc", "gt-ddddd", "gt-none"} })
	}, "convoy", "convoy convoy-progress"},
	{"convoy forgot a bead", func(f *fixture) {
		f.edit("state/convoys/cv-aaa.json", func(v map[string]any) { v["bead_ids"] = []string{"gt-ddddd"}; v["progress"] = 1 })
	}, "convoy-member", "convoy-progress"},
	{"bead forgot its convoy", func(f *fixture) {
		f.edit("state/work/gt-ccccc.json", func(v map[string]any) { delete(v, "convoy_id") })
	}, "convoy-member", ""},
	{"convoy counts wrong", func(f *fixture) { f.edit("state/convoys/cv-aaa.json", func(v map[string]any) { v["progress"] = 0.9 }) }, "convoy-progress", "convoy-progress"},
	{"request gone", func(f *fixture) { f.Must(os.Remove(f.one("state/merge-queue/mr-gt-ccccc.json"))) }, "done-without-request", ""},
	{"one number twice", func(f *fixture) {
		f.edit("state/merge-queue/mr-gt-ccccc.json", func(v map[string]any) { v["seq"] = 1 })
	}, "duplicate-seq", ""},
	{"one assignment twice", func(f *fixture) {
		q, err := f.Queue.Get("mr-gt-ccccc")
		f.Must(err)
		q.ID, q.Seq = "mr-gt-ccccc-2", 77
		f.Must(f.Queue.Put(string(q.ID), q))
	}, "assignment-twice", ""},
	{"merging, and nobody does it", func(f *fixture) {
		f.edit("state/merge-queue/mr-gt-ccccc.json", func(v map[string]any) { v["status"] = "merging"; v["stage"] = "rebase" })
	}, "merge-unfinished", ""},
	{"merged elsewhere", func(f *fixture) {
		f.edit("state/merge-queue/mr-gt-ddddd.json", func(v map[string]any) { v["merged_sha"] = strings.Repeat("1", 40) })
	}, "merged-unreachable", "merged-unreachable"},
	{"head that is not there", func(f *fixture) {
		f.edit("state/merge-queue/mr-gt-ccccc.json", func(v map[string]any) { v["head"] = strings.Repeat("1", 40) })
	}, "request-head request-attempt", "request-head request-attempt"},
	{"dispatch half done", func(f *fixture) {
		_, err := f.Dispatch.Update(f.T.Context(), "gt-bbbbb", func(r *dispatch.Record) error { r.Stage = dispatch.Stored; return nil })
		f.Must(err)
	}, "dispatch-unfinished", ""},
	{"dispatch of nothing", func(f *fixture) {
		f.Must(f.Dispatch.Put("gt-zzzzz", dispatch.Record{BeadID: "gt-zzzzz", AgentID: bravo, AssignmentID: "as-zzz", By: "mayor",
			Branch: "polecat/gt-zzzzz", Stage: dispatch.Launched, MailName: "x", CreatedAt: f.At()}))
	}, "dispatch-bead", ""},
	{"attempt half ended: done", func(f *fixture) { f.publishes(alpha, retire.Done) }, "retire-unfinished", "incident-stale"},
	{"attempt half ended: failed", func(f *fixture) { f.publishes(alpha, retire.Fail) }, "retire-unfinished", "incident-stale"},
	{"attempt half ended, torn worktree, no record of it", func(f *fixture) {
		f.publishes(alpha, retire.Fail)
		f.Must(os.RemoveAll(f.Tree.Abs("run/worktrees")))
		f.put(filepath.Join(f.Worktree(alpha), ".git"), "")
		f.put(f.inGit("worktrees", string(alpha), "gitdir"), "")
	}, "retire-unfinished worktree-torn", "incident-stale"},
	{"two incidents", func(f *fixture) {
		in, err := f.Incidents.Get("in-aaa")
		f.Must(err)
		in.ID = "in-bbb"
		f.Must(f.Incidents.Put("in-bbb", in))
	}, "incident-twice", ""},
	{"incident of nobody", func(f *fixture) {
		f.Must(f.Incidents.Put("in-bbb", incident.Incident{ID: "in-bbb", AgentID: "polecat-zulu", Kind: incident.Stalled, Severity: incident.Alert, OpenedAt: f.At()}))
	}, "incident-agent", "incident-agent"},
	{"mail in both places", func(f *fixture) {
		path := f.one("state/mail/mayor/archive/*.json")
		data, err := os.ReadFile(path)
		f.Must(err)
		f.put(filepath.Join(filepath.Dir(filepath.Dir(path)), filepath.Base(path)), string(data))
	}, "mail-twice", ""},
	{"mail in the wrong box", func(f *fixture) {
		path := f.one("state/mail/human/*.json")
		f.put(f.Tree.Abs("state/mail/polecat-bravo/"+state.Path(filepath.Base(path))), f.text(path))
		f.Must(os.Remove(path))
	}, "unreadable", ""},
	{"mail under another time", func(f *fixture) {
		path := f.one("state/mail/human/*.json")
		f.Must(os.Rename(path, filepath.Join(filepath.Dir(path), "2020-01-01T00-00-00.000000000Z-mayor.json")))
	}, "unreadable", ""},
	{"mail from the future", func(f *fixture) {
		_, err := f.Sender.Send(f.T.Context(), mail.Message{From: "mayor", To: "human", Type: mail.Coordination, Subject: "s", Body: "b"})
		f.Must(err)
		path := f.one("state/mail/human/*-mayor.json")
		data, err := os.ReadFile(path)
		f.Must(err)
		var m mail.Message
		f.Must(state.Decode(path, data, &m))
		m.Timestamp = state.At(time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC))
		data, err = state.Encode(m)
		f.Must(err)
		f.put(filepath.Join(filepath.Dir(path), m.Timestamp.Stamp()+"-mayor.json"), string(data))
	}, "future-time", "future-time"},
	{"mail twice by one id", func(f *fixture) {
		m := f.text(f.one("state/mail/mayor/*polecat-alpha.json"))
		later := "2026-03-05T12:30:00.000000000Z"
		var v map[string]any
		f.Must(json.Unmarshal([]byte(m), &v))
		v["timestamp"] = later
		data, err := state.Encode(v)
		f.Must(err)
		f.Plant("state/mail/mayor/2026-03-05T12-30-00.000000000Z-polecat-alpha.json", string(data))
	}, "mail-same-id", "mail-same-id"},
	{"mail from nobody, to nobody", func(f *fixture) {
		f.Plant("state/mail/polecat-zulu/2026-03-05T11-30-00.000000000Z-ghost.json", `{"body":"b","from":"ghost","priority":"normal","read":false,"subject":"s","timestamp":"2026-03-05T11:30:00Z","to":"polecat-zulu","type":"coordination"}`)
	}, "mail-unknown-recipient mail-unknown-sender", "mail-unknown-recipient mail-unknown-sender canonical-form"},
	{"latest nudge gone", func(f *fixture) { f.Must(os.Remove(f.one("state/nudge/polecat-alpha/latest.json"))) }, "nudge-latest", ""},
	{"newest nudge of a sender gone", func(f *fixture) { f.Must(os.Remove(f.one("state/nudge/polecat-alpha/from/human.json"))) }, "nudge-latest", ""},
	{"nudges seen ahead of time", func(f *fixture) {
		f.edit("state/nudge/polecat-alpha/seen.json", func(v map[string]any) {
			v["seen"] = map[string]any{"mayor": "2199-01-01T00:00:00.000000000Z", "human": "2199-01-01T00:00:00.000000000Z"}
		})
	}, "nudge-seen", ""},
	{"abort by a peer", func(f *fixture) {
		_, err := f.Slot(alpha).Send(f.T.Context(), nudge.Nudge{From: bravo, Type: nudge.Abort, Message: "stop"}, f.At())
		f.Must(err)
	}, "nudge-abort", "nudge-abort"},
	{"hand-off under another name", func(f *fixture) {
		path := f.one("state/handoff/polecat-alpha/*.json")
		f.Must(os.Rename(path, filepath.Join(filepath.Dir(path), "2020-01-01T00-00-00.000000000Z.json")))
	}, "handoff-name", ""},
	{"torn end of the story", func(f *fixture) { appendTo(f, f.one("state/events/*.jsonl"), `{"time":"2026-03-`) }, "event-torn", "event-line"},
	{"torn line of the story", func(f *fixture) { appendTo(f, f.one("state/events/*.jsonl"), "{\"time\":\n{}\n") }, "event-line", "event-line event-day"},
	{"foreign files", func(f *fixture) { f.Plant("state/notes.txt", "x"); f.Plant("state/mail/mayor/sub/x", "x") }, "foreign special-file", "foreign"},
	{"unfinished files", func(f *fixture) {
		f.Plant("state/work/.tmp-99999999-abc", "x")
		f.Plant("state/mail/mayor/.tmp-99999999-x", "y")
	}, "leftover", ""},
	{"quarantine without reason", func(f *fixture) { f.Plant("state/quarantine/odd.json", "x") }, "quarantine-reason", ""},
	{"reason without file", func(f *fixture) {
		f.Must(f.Tree.Explain("state/quarantine/gone.json", "r", f.At()))
	}, "quarantine-reason", ""},
	{"torn reason", func(f *fixture) { f.Plant("state/quarantine/odd.json.reason.json", "{") }, "quarantine-reason", "quarantine-reason"},
	{"folder that is a link", func(f *fixture) {
		f.Must(os.Rename(f.Tree.Abs("state/convoys"), filepath.Join(f.Dir, "elsewhere")))
		f.Must(os.Symlink(filepath.Join(f.Dir, "elsewhere"), f.Tree.Abs("state/convoys")))
	}, "special-file", "special-file"},
	{"logs that is a file", func(f *fixture) { f.Must(os.RemoveAll(f.Tree.Abs("logs"))); f.Plant("logs", "x") }, "folder", ""},
	{"run is gone", func(f *fixture) { f.Must(os.RemoveAll(f.Tree.Abs("run"))) }, "", ""},
	{"lock that is a FIFO", func(f *fixture) {
		f.Must(os.MkdirAll(f.Tree.Abs("run/locks/bead"), 0o755))
		os.Remove(f.Tree.Abs("run/locks/bead/gt-eeeee.lock"))
		f.Must(unix.Mkfifo(f.Tree.Abs("run/locks/bead/gt-eeeee.lock"), 0o644))
	}, "lock-file", ""},
	{"locks that are a file", func(f *fixture) { f.Must(os.RemoveAll(f.Tree.Abs("run/locks"))); f.Plant("run/locks", "x") }, "lock-file", ""},
	{"stamp of a dead process", func(f *fixture) { f.Plant("run/agents/polecat-alpha.json", `{"agent_id":"polecat-alpha","pid":1}`) }, "stale-liveness", ""},
	{"stamp that is none", func(f *fixture) { f.Plant("run/agents/Odd", "x") }, "run-file", ""},
	{"torn worktree record", func(f *fixture) { f.Plant("run/worktrees/polecat-alpha.json", "{") }, "run-file", ""},
	{"torn worker record", func(f *fixture) { f.Plant("run/workers/ses-x.json", "{") }, "worker-record", ""},
	{"chipset.yaml gone", func(f *fixture) { f.Must(os.Remove(f.Tree.Abs("chipset.yaml"))) }, "definition", "definition"},
	{"chipset.yaml broken", func(f *fixture) { f.Plant("chipset.yaml", "rig: [") }, "definition", "definition"},
	{"exclude and pointer gone", func(f *fixture) {
		f.Must(os.Remove(f.inGit("info", "exclude")))
		f.Must(os.Remove(f.inGit("chipset")))
	}, "exclude pointer", ""},
	{"worktree gone", func(f *fixture) { f.Must(os.RemoveAll(f.Worktree("refinery"))) }, "worktree-gone", ""},
	{"worktree link torn", func(f *fixture) { f.put(filepath.Join(f.Worktree(alpha), ".git"), "gitd") }, "worktree-torn", ""},
	{"worktree HEAD torn", func(f *fixture) { f.put(f.inGit("worktrees", string(alpha), "HEAD"), "") }, "worktree-torn", ""},
	{"worktree index torn", func(f *fixture) { f.Must(os.Truncate(f.inGit("worktrees", string(alpha), "index"), 40)) }, "worktree-torn", ""},
	{"worktree unregistered", func(f *fixture) { f.Must(os.RemoveAll(f.inGit("worktrees", string(alpha)))) }, "worktree-torn", ""},
	{"worktree torn everywhere", func(f *fixture) {
		f.Must(os.RemoveAll(f.inGit("worktrees", string(alpha))))
		f.put(filepath.Join(f.Worktree(alpha), ".git"), "")
		f.Plant("run/worktrees/polecat-alpha.json", "{")
	}, "worktree-torn run-file", ""},
	{"refinery's worktree torn", func(f *fixture) { f.put(f.inGit("worktrees", "refinery", "commondir"), "") }, "worktree-torn", ""},
	{"worktree of nobody", func(f *fixture) { f.put(f.Tree.Abs("worktrees/mine/notes"), "x") }, "worktree-foreign", "worktree-foreign"},
	{"branch torn", func(f *fixture) { f.put(f.inGit("refs", "heads", "polecat", "gt-ccccc"), "") }, "git-ref", ""},
	{"branch torn of which nothing tells", func(f *fixture) { f.put(f.inGit("refs", "heads", "polecat", "gt-none"), "") }, "git-ref", ""},
	{"branch to nothing", func(f *fixture) { f.put(f.inGit("refs", "heads", "polecat", "gt-aaaaa"), strings.Repeat("1", 40)+"\n") }, "git-ref worktree-torn", ""},
	{"branch of a request gone", func(f *fixture) { f.RunGit("update-ref", "-d", "refs/heads/polecat/gt-ccccc") }, "request-branch", ""},
	{"target torn", func(f *fixture) { f.put(f.inGit("refs", "heads", "main"), "") }, "git-ref", ""},
	{"salvage ref gone", func(f *fixture) { f.RunGit("update-ref", "-d", "refs/chipset/salvage/as-old") }, "salvage-ref", "salvage-ref"},
	{"salvage ref torn", func(f *fixture) { f.put(f.inGit("refs", "chipset", "salvage", "as-old"), "") }, "git-ref", "git-ref salvage-ref"},
	{"snapshot without its commit", func(f *fixture) {
		f.put(f.inGit("refs", "chipset", "snapshot", "left"), strings.Repeat("1", 40)+"\n")
	}, "git-ref", ""},
	{"snapshot torn", func(f *fixture) { f.put(f.inGit("refs", "chipset", "snapshot", "left"), "") }, "git-ref", ""},
	{"branch of the snapshots torn", func(f *fixture) {
		f.RunGit("branch", "chipset/audit", "main")
		f.put(f.inGit("refs", "heads", "chipset", "audit"), "")
	}, "git-ref", ""},
	{"branch of the snapshots gone", func(f *fixture) {
		f.RunGit("branch", "chipset/audit", "main")
		f.Must(os.Remove(f.inGit("refs", "heads", "chipset", "audit")))
	}, "git-ref", ""},
	{"target gone", func(f *fixture) { f.Must(os.Remove(f.inGit("refs", "heads", "main"))) }, "git-ref", ""},
	{"state in the index", func(f *fixture) { f.RunGit("add", "-f", ".chipset/state") }, "state-in-git", "state-in-git"},
	{"state on the target", func(f *fixture) {
		f.RunGit("add", "-f", ".chipset/state")
		f.RunGit("commit", "-q", "-m", "the live tree")
		f.RunGit("rm", "-r", "-q", "--cached", ".chipset/state")
	}, "state-in-git", "state-in-git"},
	{"agents of another rig", func(f *fixture) {
		f.edit("state/agents/polecat-alpha.json", func(v map[string]any) { v["rig"] = "elsewhere" })
		f.edit("state/agents/human.json", func(v map[string]any) { v["rig"] = "elsewhere" })
	}, "agent-rig", ""},
	{"agent of another rig that nobody named", func(f *fixture) {
		_, err := f.Agents.Register(f.T.Context(), "polecat-zulu", agent.Polecat, "elsewhere", nil, f.At())
		f.Must(err)
		f.Must(f.Hooks.Ensure(f.T.Context(), "polecat-zulu", f.At()))
	}, "agent-rig", "agent-rig"},
	{"bead that no branch can be named after", func(f *fixture) {
		b, err := f.Beads.Get("gt-eeeee")
		f.Must(err)
		b.ID = "gt-ee..ee"
		f.Must(f.Beads.Put("gt-ee..ee", b))
	}, "bead-id", "bead-id"},
	{"an object of the target deleted", func(f *fixture) {
		tip, _, err := f.Git.ResolveRef(f.T.Context(), "refs/heads/main")
		f.Must(err)
		f.Must(f.Git.KeepObjects(f.T.Context(), tip))
		blobs, err := f.Git.Run(f.T.Context(), git.Command{Args: []string{"ls-tree", "-r", "--object-only", string(tip)}})
		f.Must(err)
		blob, _, _ := strings.Cut(string(blobs), "\n")
		f.Must(os.Remove(f.inGit("objects", blob[:2], blob[2:])))
	}, "git-missing", ""},
	{"empty objects", func(f *fixture) { f.put(f.inGit("objects", "aa", strings.Repeat("b", 38)), "") }, "git-object", ""},
	{"two hooks name one bead", func(f *fixture) {
		h, err := f.Hooks.Get(string(alpha))
		f.Must(err)
		f.Must(f.Hooks.Put(string(charlie), hook.Hook{AgentID: charlie, Gen: 50, Status: hook.Active, LastActivity: f.At(), WorkItem: h.WorkItem}))
	}, "", ""},
	{"retired, with work and mail", func(f *fixture) {
		f.edit("state/agents/polecat-alpha.json", func(v map[string]any) { v["status"] = "retired" })
	}, "retired-agent", "retired-agent"},
	{"hook on the mayor", func(f *fixture) {
		f.Must(f.Hooks.Put("mayor", hook.Hook{AgentID: "mayor", Gen: 5, Status: hook.Pending, LastActivity: f.At(),
			WorkItem: &hook.WorkItem{AssignedAt: f.At(), AssignmentID: "as-m", BeadID: "gt-eeeee", Title: "x"}}))
	}, "hook-role hook-bead", ""},
	{"request of a cancelled bead", func(f *fixture) {
		f.PutBead("gt-ccccc", bead.Cancelled, func(b *bead.Bead) { b.ConvoyID = "cv-aaa" })
	}, "request-bead", "request-bead"},
	{"request dropped, bead done", func(f *fixture) {
		_, err := f.Queue.Update(f.T.Context(), "mr-gt-ccccc", func(q *mergequeue.Request) error { return q.Become(mergequeue.Dropped, f.At()) })
		f.Must(err)
	}, "done-without-request", "done-without-request"},
	{"a file in place of what git knows of worktrees", func(f *fixture) {
		f.Must(os.RemoveAll(f.inGit("worktrees")))
		f.put(f.inGit("worktrees"), "x")
	}, "git-obstacle", ""},
	{"hook that can't count on", func(f *fixture) {
		f.edit("state/hooks/polecat-alpha.json", func(v map[string]any) { v["gen"] = int64(math.MaxInt64) })
	}, "unreadable", ""},
	{"bead that can't count on", func(f *fixture) {
		f.edit("state/work/gt-eeeee.json", func(v map[string]any) { v["gen"] = int64(math.MaxInt64) })
	}, "unreadable", ""},
	{"request behind which there is no number", func(f *fixture) {
		f.edit("state/merge-queue/mr-gt-ccccc.json", func(v map[string]any) { v["seq"] = int64(math.MaxInt64) })
	}, "unreadable", "done-without-request"},
	{"stale lock of git", func(f *fixture) { f.put(f.inGit("refs", "heads", "polecat", "gt-ccccc.lock"), "") }, "git-lock", ""},
	{"stale index lock of the checkout", func(f *fixture) { f.put(f.inGit("index.lock"), ""); f.put(f.inGit("packed-refs.lock"), "") }, "git-lock", ""},
}

func (f *fixture) text(path string) string {
	f.T.Helper()
	data, err := os.ReadFile(path)
	f.Must(err)
	return string(data)
}

// allDamages is the table, and every tear of every kind of file.
func allDamages() []damage {
	all := append([]damage{}, single...)
	for _, v := range victims {
		for _, tear := range tears {
			if strings.HasSuffix(v.path, "seen.json") && tear.name == "another's content" {
				continue // nothing that belongs to seen.json alone: it was seen by nobody
			}
			all = append(all, damage{name: tear.name + ": " + v.path, named: tear.rule, stays: v.stays + " " + tear.stays,
				spoil: func(f *fixture) { tear.tear(f, f.one(v.path)) }})
		}
	}
	return all
}
