package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

// rules says what was found in one line: rule:severity, "+" when it was fixed.
func rules(found []Finding) string {
	var all []string
	for _, f := range found {
		line := f.Rule + ":" + string(f.Severity)
		if f.Fixed {
			line += "+"
		}
		all = append(all, line)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (f *fixture) doctor(fix bool) []Finding {
	f.T.Helper()
	found, err := examine(f.T.Context(), f.Rig, fix, 0)
	must(f.T, err)
	return found
}

const letter = `{"body":"b","from":"%s","priority":"normal","read":%v,"subject":"s","timestamp":"2026-03-05T11:30:00Z","to":"mayor","type":"coordination"}`

// The rules: what is spoiled, what the doctor says, and what is left after --fix.
var damages = []struct {
	name  string
	spoil func(f *fixture)
	found string
	fixed string // of the first look with fix; the second must not repeat what was fixed
}{
	{"nothing", func(*fixture) {}, "", ""},
	{"work on its way", func(f *fixture) {
		f.Hang(f.PutBead("gt-aaaaa", bead.InProgress, nil), hook.Active)
		f.PutRequest(f.PutBead("gt-bbbbb", bead.Done, nil), mergequeue.Pending, nil)
		f.PutRequest(f.PutBead("gt-ccccc", bead.Merged, nil), mergequeue.Merged, nil)
		f.PutBead("gt-ddddd", bead.Open, func(b *bead.Bead) { b.BlockedBy = []state.BeadID{"gt-aaaaa"} })
	}, "", ""},
	{"bead that can't be read", func(f *fixture) { f.Plant("state/work/gt-aaaaa.json", "{") },
		"unreadable:error", "quarantine:warning unreadable:error+"},
	{"bead under another name", func(f *fixture) {
		f.PutBead("gt-aaaaa", bead.Open, nil)
		must(f.T, os.Rename(f.Tree.Abs("state/work/gt-aaaaa.json"), f.Tree.Abs("state/work/gt-bbbbb.json")))
	}, "unreadable:error", "quarantine:warning unreadable:error+"},
	{"bead written by hand", func(f *fixture) {
		f.Plant("state/work/gt-aaaaa.json", `{"id":"gt-aaaaa","title":"x","status":"open","priority":"P1","created_at":"2026-03-05T11:30:00Z","updated_at":"2026-03-05T11:30:00Z","gen":1,"new":1}`)
	}, "canonical-form:warning", "canonical-form:warning+"},
	{"no name of an object", func(f *fixture) { f.Plant("state/work/Notes.txt", "x") }, "unreadable:error", "unreadable:error"},
	{"foreign files", func(f *fixture) { f.Plant("state/notes/todo.md", "x"); f.Plant("state/work/.gitkeep", "") },
		"foreign:warning", "foreign:warning"},
	{"unfinished files of another program", func(f *fixture) {
		for _, p := range []state.Path{"state/work/gt-aaaaa.json.tmp", "state/mail/mayor/.msg.tmp", "state/hooks/mayor.json.tmp"} {
			f.Plant(p, "{")
			age := map[bool]time.Duration{true: time.Minute, false: 2 * time.Hour}[p.Base() == "mayor.json.tmp"]
			must(f.T, os.Chtimes(f.Tree.Abs(p), time.Time{}, f.Clock().Add(-age)))
		}
	}, "foreign:warning foreign:warning", "foreign:warning foreign:warning"},
	{"leftover", func(f *fixture) { f.Plant("state/work/.tmp-99999999-abc", "x") }, "leftover:warning", "leftover:warning+"},
	{"links and pipes", func(f *fixture) {
		must(f.T, os.Symlink("/etc/passwd", f.Tree.Abs("state/hooks/polecat-zulu.json")))
		must(f.T, unix.Mkfifo(f.Tree.Abs("state/events/2026-03-04.jsonl"), 0o644))
	}, "special-file:error special-file:error", "quarantine:warning quarantine:warning special-file:error+ special-file:error+"},
	{"a second name", func(f *fixture) {
		b := f.PutBead("gt-aaaaa", bead.Open, nil)
		must(f.T, os.Link(f.Tree.Abs(f.Beads.Path(string(b.ID))), filepath.Join(f.Dir, "second")))
	}, "special-file:error", "special-file:error"},
	{"a second name in the rig's folders", func(f *fixture) {
		b := f.PutBead("gt-aaaaa", bead.Open, nil)
		for _, other := range []string{f.Tree.Abs("run/cache.json"), filepath.Join(f.Git.CommonDir(), "refs", "heads", "polecat")} {
			must(f.T, os.MkdirAll(filepath.Dir(other), 0o755))
			must(f.T, os.Link(f.Tree.Abs(f.Beads.Path(string(b.ID))), other))
		}
	}, "git-obstacle:error special-file:error", "git-obstacle:error+ special-file:error+"},
	{"a file in place of a folder", func(f *fixture) {
		must(f.T, os.RemoveAll(f.Tree.Abs("state/mail")))
		f.Plant("state/mail", "{}")
	}, "special-file:error", "quarantine:warning special-file:error+"},
	{"files in place of the folders of an agent, and of the quarantine", func(f *fixture) {
		f.Plant("state/mail/polecat-alpha", "{}")
		f.Plant("state/nudge/polecat-alpha", "")
		must(f.T, os.MkdirAll(f.Tree.Abs("state/nudge/polecat-bravo"), 0o755))
		f.Plant("state/nudge/polecat-bravo/from", "x")
		f.Plant("state/handoff/polecat-alpha", "x")
		must(f.T, os.RemoveAll(f.Tree.Abs("state/quarantine")))
		f.Plant("state/quarantine", "x")
	}, strings.TrimSuffix(strings.Repeat("special-file:error ", 5), " "),
		strings.Repeat("quarantine:warning ", 5) + strings.TrimSuffix(strings.Repeat("special-file:error+ ", 5), " ")},
	{"files in place of folders of run/", func(f *fixture) {
		for _, dir := range []state.Path{"run/agents", "run/workers", "run/worktrees"} {
			must(f.T, os.RemoveAll(f.Tree.Abs(dir)))
			f.Plant(dir, "x")
		}
	}, "special-file:error special-file:error special-file:error",
		strings.Repeat("quarantine:warning ", 3) + "special-file:error+ special-file:error+ special-file:error+"},
	{"names that a power cut left", func(f *fixture) {
		b := f.PutBead("gt-aaaaa", bead.Open, nil)
		for _, left := range []string{".gt-aaaaa.json1", ".gt-aaaaa.json2"} {
			must(f.T, os.Link(f.Tree.Abs(f.Beads.Path(string(b.ID))), f.Tree.Abs(state.Path("state/work").Join(left))))
		}
	}, "leftover:warning leftover:warning", "leftover:warning+ leftover:warning+"},
	{"corrupt hook", func(f *fixture) {
		f.Hang(f.PutBead("gt-aaaaa", bead.InProgress, nil), hook.Active)
		f.Plant("state/hooks/polecat-alpha.json", "{")
	}, "bead-hook:error unreadable:error", ""},
	{"missing hook", func(f *fixture) { must(f.T, f.Hooks.Remove(string(alpha))) }, "hook-missing:error", "hook-missing:error+"},
	{"hook without agent", func(f *fixture) {
		must(f.T, f.Hooks.Ensure(f.T.Context(), "polecat-zulu", f.At()))
	}, "hook-without-agent:warning", "hook-without-agent:warning+ quarantine:warning"},
	{"corrupt hook without agent", func(f *fixture) { f.Plant("state/hooks/polecat-zulu.json", "{") },
		"unreadable:error", "quarantine:warning unreadable:error+"},
	{"hook with work, without agent", func(f *fixture) {
		must(f.T, f.Hooks.Ensure(f.T.Context(), "polecat-zulu", f.At()))
		f.Hang(f.PutBead("gt-aaaaa", bead.InProgress, func(b *bead.Bead) { b.Assignee = "polecat-zulu" }), hook.Active)
	}, "hook-without-agent:error", "hook-without-agent:error"},
	{"the person's record and hook", func(f *fixture) {
		must(f.T, f.Agents.Remove(string(state.Human)))
		must(f.T, f.Hooks.Remove(string(state.Human)))
	}, "agent-missing:warning", "agent-missing:warning+"},
	{"archive that is a file", func(f *fixture) {
		f.Plant("state/mail/polecat-alpha/archive", "x")
		f.PutBead("gt-aaaaa", bead.InProgress, nil)
	}, "bead-hook:error unreadable:error", "bead-hook:error+ quarantine:warning unreadable:error+"},
	{"links in place of folders", func(f *fixture) {
		must(f.T, os.MkdirAll(f.Tree.Abs("state/mail/mayor"), 0o755))
		must(f.T, os.Symlink(f.T.TempDir(), f.Tree.Abs("state/mail/mayor/archive")))
		must(f.T, os.MkdirAll(f.Tree.Abs("state/nudge/polecat-alpha"), 0o755))
		must(f.T, os.Symlink(f.T.TempDir(), f.Tree.Abs("state/nudge/polecat-alpha/from")))
		must(f.T, os.RemoveAll(f.Tree.Abs("state/mail/polecat-bravo")))
		must(f.T, os.Symlink(f.T.TempDir(), f.Tree.Abs("state/mail/polecat-bravo")))
	}, "special-file:error special-file:error special-file:error",
		"quarantine:warning quarantine:warning quarantine:warning special-file:error+ special-file:error+ special-file:error+"},
	{"from that is a file", func(f *fixture) { f.Plant("state/nudge/polecat-alpha/from", "x") },
		"special-file:error", "quarantine:warning special-file:error+"},
	{"a link in place of all beads", func(f *fixture) {
		f.Hang(f.PutBead("gt-aaaaa", bead.InProgress, nil), hook.Active)
		must(f.T, os.Rename(f.Tree.Abs("state/work"), filepath.Join(f.Dir, "elsewhere")))
		must(f.T, os.Symlink(filepath.Join(f.Dir, "elsewhere"), f.Tree.Abs("state/work")))
	}, "special-file:error", "special-file:error"},
	{"folders among objects", func(f *fixture) {
		must(f.T, os.MkdirAll(f.Tree.Abs("state/work/gt-aaaaa.json"), 0o755))
		must(f.T, os.MkdirAll(f.Tree.Abs("state/work/notes"), 0o755))
	}, "special-file:error special-file:error", "quarantine:warning quarantine:warning special-file:error+ special-file:error+"},
	{"hook that is a pipe", func(f *fixture) {
		must(f.T, f.Hooks.Remove(string(alpha)))
		must(f.T, unix.Mkfifo(f.Tree.Abs(f.Hooks.Path(string(alpha))), 0o644))
	}, "special-file:error", "quarantine:warning special-file:error+"},
	{"agent not registered", func(f *fixture) {
		must(f.T, f.Agents.Remove(string(bravo)))
		must(f.T, f.Hooks.Remove(string(bravo)))
	}, "agent-missing:warning", "agent-missing:warning+"},
	{"bead whose hook is empty", func(f *fixture) { f.PutBead("gt-aaaaa", bead.InProgress, nil) }, "bead-hook:error", "bead-hook:error+"},
	{"bead whose hook has moved on", func(f *fixture) {
		f.PutBead("gt-bbbbb", bead.Hooked, nil)
		f.Hang(f.PutBead("gt-aaaaa", bead.InProgress, nil), hook.Active)
	}, "bead-hook:error", "bead-hook:error+"},
	{"hook whose bead was taken back", func(f *fixture) {
		b := f.PutBead("gt-aaaaa", bead.InProgress, nil)
		f.Hang(b, hook.Active)
		f.PutBead("gt-aaaaa", bead.Open, nil)
	}, "hook-bead:error", "hook-bead:error+"},
	{"hook of a missing bead", func(f *fixture) {
		f.Hang(f.PutBead("gt-aaaaa", bead.Hooked, nil), hook.Pending)
		must(f.T, f.Beads.Remove("gt-aaaaa"))
	}, "hook-bead:error", "hook-bead:error+"},
	{"in progress on a pending hook", func(f *fixture) { f.Hang(f.PutBead("gt-aaaaa", bead.InProgress, nil), hook.Pending) }, "bead-hook:warning", "bead-hook:warning"},
	{"done, but not submitted", func(f *fixture) { f.PutBead("gt-aaaaa", bead.Done, nil) }, "done-without-request:error", "done-without-request:error"},
	{"done, and its request is gone", func(f *fixture) {
		b := f.PutBead("gt-aaaaa", bead.Done, nil)
		f.PutEnd(b, retire.Done, retire.Released)
		_, err := f.Retire.Update(f.T.Context(), string(b.AssignmentID), func(e *retire.Record) error {
			e.Branch, e.Head = b.Branch, f.Tip()
			return nil
		})
		must(f.T, err)
	}, "done-without-request:error", "done-without-request:error+ request-branch:warning+"},
	{"done, being submitted", func(f *fixture) { f.PutEnd(f.PutBead("gt-aaaaa", bead.Done, nil), retire.Done, retire.Recorded) },
		"retire-unfinished:warning", "retire-unfinished:warning"},
	{"merged by nobody", func(f *fixture) { f.PutBead("gt-aaaaa", bead.Merged, nil) }, "merged-without-request:error", "merged-without-request:error"},
	{"landed, not told", func(f *fixture) { f.PutRequest(f.PutBead("gt-aaaaa", bead.Done, nil), mergequeue.Merged, nil) }, "landed-not-told:warning", "landed-not-told:warning+"},
	{"landed, not told by a refinery that runs", func(f *fixture) {
		f.Run("refinery")
		f.PutRequest(f.PutBead("gt-aaaaa", bead.Done, nil), mergequeue.Merged, nil)
	}, "landed-not-told:error", "landed-not-told:error"},
	{"merging, and nobody does it", func(f *fixture) { f.PutRequest(f.PutBead("gt-aaaaa", bead.Done, nil), mergequeue.Merging, nil) },
		"merge-unfinished:warning", "merge-unfinished:warning+"},
	{"request of a bead that moved on", func(f *fixture) {
		b := f.PutBead("gt-aaaaa", bead.Done, nil)
		f.PutBead("gt-aaaaa", bead.Open, nil)
		f.PutRequest(b, mergequeue.Conflicted, nil)
	}, "request-bead:warning", "request-bead:warning"},
	{"request of a missing bead", func(f *fixture) {
		f.PutRequest(f.PutBead("gt-aaaaa", bead.Done, nil), mergequeue.Pending, nil)
		must(f.T, f.Beads.Remove("gt-aaaaa"))
	}, "request-bead:error", "request-bead:error"},
	{"one number, two requests", func(f *fixture) {
		for _, id := range []state.BeadID{"gt-aaaaa", "gt-bbbbb"} {
			f.PutRequest(f.PutBead(id, bead.Done, nil), mergequeue.Pending, func(q *mergequeue.Request) { q.Seq = 7 })
		}
	}, "duplicate-seq:error", "duplicate-seq:error+"},
	{"one assignment, two requests", func(f *fixture) {
		b := f.PutBead("gt-aaaaa", bead.Done, nil)
		f.PutRequest(b, mergequeue.Pending, nil)
		f.PutRequest(b, mergequeue.Pending, func(q *mergequeue.Request) { q.ID = "mr-gt-aaaaa-2" })
	}, "assignment-twice:error", "assignment-twice:error+"},
	{"merged elsewhere", func(f *fixture) {
		f.RunGit("checkout", "-q", "--detach")
		f.RunGit("commit", "-q", "--allow-empty", "-m", "elsewhere")
		sha := f.RunGit("rev-parse", "HEAD")
		f.RunGit("checkout", "-q", "main")
		f.PutRequest(f.PutBead("gt-aaaaa", bead.Merged, nil), mergequeue.Merged, func(q *mergequeue.Request) { q.MergedSHA = sha })
		f.PutRequest(f.PutBead("gt-bbbbb", bead.Merged, nil), mergequeue.Merged, func(q *mergequeue.Request) { q.MergedSHA = strings.Repeat("1", 40) })
		f.PutRequest(f.PutBead("gt-ccccc", bead.Merged, nil), mergequeue.Merged, nil)
	}, "merged-unreachable:error merged-unreachable:error", "merged-unreachable:error merged-unreachable:error"},
	{"cycle and unknown dependency", func(f *fixture) {
		f.PutBead("gt-aaaaa", bead.Open, func(b *bead.Bead) { b.BlockedBy = []state.BeadID{"gt-bbbbb"} })
		f.PutBead("gt-bbbbb", bead.Open, func(b *bead.Bead) { b.BlockedBy = []state.BeadID{"gt-ccccc", "gt-none"} })
		f.PutBead("gt-ccccc", bead.Open, func(b *bead.Bead) { b.BlockedBy = []state.BeadID{"gt-aaaaa"} })
	}, "dependency-cycle:error dependency:error", "dependency-cycle:error dependency:error"},
	{"convoys", func(f *fixture) {
		f.PutBead("gt-aaaaa", bead.Open, func(b *bead.Bead) { b.ConvoyID = "cv-none" })
		must(f.T, f.Convoys.Put("cv-a", convoy.Convoy{ID: "cv-a", BeadIDs: []state.BeadID{"gt-none"}, CreatedAt: f.At()}))
	}, "convoy:warning convoy:warning", "convoy:warning convoy:warning"},
	{"dispatch that stopped", func(f *fixture) {
		f.PutBead("gt-aaaaa", bead.Open, nil)
		must(f.T, f.Dispatch.Put("gt-aaaaa", dispatch.Record{BeadID: "gt-aaaaa", AgentID: alpha, AssignmentID: "as-1", By: "mayor",
			Branch: "polecat/gt-aaaaa", Stage: dispatch.Stored, MailName: string(mail.NameAt(f.At(), "mayor")), CreatedAt: f.At()}))
	}, "dispatch-unfinished:warning", "dispatch-unfinished:warning+"},
	{"attempt of a missing bead", func(f *fixture) {
		b := f.PutBead("gt-aaaaa", bead.Done, nil)
		f.PutEnd(b, retire.Done, retire.Released)
		must(f.T, f.Beads.Remove("gt-aaaaa"))
	}, "retire-bead:warning", "retire-bead:warning"},
	{"mail for nobody", func(f *fixture) {
		f.Plant("state/mail/nobody/2026-03-05T11-30-00Z-mayor.json", strings.Replace(fmt.Sprintf(letter, "mayor", false), `"to":"mayor"`, `"to":"nobody"`, 1))
	}, "canonical-form:info mail-unknown-recipient:error", "canonical-form:info mail-unknown-recipient:error"},
	{"mail that does not belong", func(f *fixture) {
		f.Plant("state/mail/mayor/2026-03-05T11-30-00Z-witness.json", "{")
		f.Plant("state/mail/mayor/archive/2026-03-05T11-30-00Z-witness.json", "{")
	}, "unreadable:error unreadable:error", "quarantine:warning quarantine:warning unreadable:error+ unreadable:error+"},
	{"mail in mailbox and archive", func(f *fixture) {
		f.Plant("state/mail/mayor/2026-03-05T11-30-00Z-witness.json", fmt.Sprintf(letter, "witness", true))
		f.Plant("state/mail/mayor/archive/2026-03-05T11-30-00Z-witness.json", fmt.Sprintf(letter, "witness", true))
	}, "mail-twice:error", "mail-twice:error+"},
	{"two messages of one name", func(f *fixture) {
		f.Plant("state/mail/mayor/2026-03-05T11-30-00Z-witness.json", fmt.Sprintf(letter, "witness", true))
		f.Plant("state/mail/mayor/archive/2026-03-05T11-30-00Z-witness.json", strings.Replace(fmt.Sprintf(letter, "witness", true), `"b"`, `"c"`, 1))
	}, "mail-twice:error", "mail-twice:error"},
	{"old unread mail", func(f *fixture) {
		_, err := f.Sender.Send(f.T.Context(), mail.Message{From: "mayor", To: "human", Type: mail.Coordination, Subject: "s"})
		must(f.T, err)
		f.Now = f.Now.Add(48 * time.Hour)
	}, "unread-mail:info", "unread-mail:info"},
	{"nudges and hand-offs", func(f *fixture) {
		f.Plant("state/nudge/polecat-alpha/latest.json", "{")
		f.Plant("state/nudge/polecat-alpha/from/mayor.json", "[]")
		f.Plant("state/nudge/polecat-alpha/seen.json", "")
		f.Plant("state/handoff/polecat-alpha/x.json", "{}")
	}, "unreadable:error unreadable:error unreadable:error unreadable:error", ""},
	{"lines of the story", func(f *fixture) { f.Plant("state/events/2026-03-04.jsonl", "{}\nbroken\n{\"time\":") },
		"event-day:warning event-line:warning event-torn:warning", "event-day:warning event-line:warning event-line:warning event-torn:warning+"},
	{"incidents", func(f *fixture) {
		for _, id := range []state.IncidentID{"in-1", "in-2"} {
			must(f.T, f.Incidents.Put(string(id), incident.Incident{ID: id, AgentID: alpha, AssignmentID: "as-old", Kind: incident.Stalled, Severity: incident.Alert, OpenedAt: f.At()}))
		}
	}, "incident-stale:info incident-stale:info incident-twice:error", "incident-stale:info incident-twice:error+"},
	{"guards of the live tree", func(f *fixture) {
		must(f.T, os.WriteFile(f.Git.ExcludePath(), []byte("# mine\n"), 0o644))
		must(f.T, os.WriteFile(filepath.Join(f.Git.CommonDir(), "chipset"), []byte("/nowhere\n"), 0o644))
	}, "exclude:error pointer:error", "exclude:error+ pointer:error+"},
}

func TestDoctor(t *testing.T) {
	for _, c := range damages {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			c.spoil(f)
			found := f.doctor(false)
			if got := rules(found); got != c.found {
				t.Fatalf("found %q, want %q\n%+v", got, c.found, found)
			}
			for _, seen := range found {
				if seen.Detail == "" || seen.Path == "" {
					t.Errorf("a finding without place or words: %+v", seen)
				}
			}
			fixed := f.doctor(true)
			if got := rules(fixed); c.fixed != "" && got != c.fixed {
				t.Errorf("with fix %q, want %q\n%+v", got, c.fixed, fixed)
			}
			for _, again := range f.doctor(false) {
				for _, before := range fixed {
					if before.Fixed && before.Rule == again.Rule && before.Path == again.Path {
						t.Errorf("it was fixed, and is there again: %+v", again)
					}
				}
			}
		})
	}
}

func TestDoctorWorktrees(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	tip, _, err := f.Git.ResolveCommit(ctx, "main")
	must(t, err)
	for _, id := range []state.AgentID{alpha, "refinery", "polecat-zulu"} {
		must(t, f.Git.PrepareDetached(ctx, f.Worktree(id), tip))
	}
	cmd := f.Worktree(alpha)
	f.RunGit("-C", cmd, "commit", "-q", "--allow-empty", "-m", "only here")
	lost := f.RunGit("-C", cmd, "rev-parse", "HEAD")
	must(t, os.RemoveAll(f.Worktree(alpha)))
	must(t, os.Mkdir(f.Tree.Abs(state.WorktreeDir.Join("mine")), 0o755))
	const want = "worktree-agent:warning worktree-foreign:warning worktree-gone:warning"
	if got := rules(f.doctor(false)); got != want {
		t.Fatalf("found %q, want %q", got, want)
	}
	if got := rules(f.doctor(true)); got != want+"+" {
		t.Fatalf("with fix %q", got)
	}
	if got := rules(f.doctor(false)); strings.Contains(got, "worktree-gone") {
		t.Errorf("afterwards %q", got)
	}
	if refs := f.RunGit("for-each-ref", "--format=%(objectname)", "refs/chipset/salvage/"); refs != lost {
		t.Errorf("salvaged %q, want the commit %s that only the worktree had", refs, lost)
	}
}

// A corrupt hook is rebuilt from its bead, and what stood there is kept.
func TestDoctorRebuildsAHook(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status bead.Status
		want   hook.Status
	}{"pending": {bead.Hooked, hook.Pending}, "active": {bead.InProgress, hook.Active}, "empty": {bead.Blocked, hook.Empty}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			b := f.PutBead("gt-aaaaa", c.status, func(b *bead.Bead) { b.Assignee, b.AssignmentID = alpha, "as-1" })
			f.Plant(f.Hooks.Path(string(alpha)), "{ broken")
			f.doctor(true)
			h, err := f.Hooks.Get(string(alpha))
			if err != nil || h.Status != c.want || c.want != hook.Empty && h.Assignment() != b.AssignmentID {
				t.Errorf("%+v, %v", h, err)
			}
			kept, err := f.Tree.Quarantined()
			if err != nil || len(kept) != 1 || !kept[0].Copied {
				t.Errorf("kept %+v, %v", kept, err)
			}
		})
	}
	f := newFixture(t)
	f.Run(alpha)
	f.Plant(f.Hooks.Path(string(alpha)), "{ broken")
	for _, seen := range f.doctor(true) {
		if seen.Rule == ruleUnreadable && (seen.Fixed || !strings.Contains(seen.Hint, errStillRuns.Error())) {
			t.Errorf("under a process that runs: %+v", seen)
		}
	}
}

// What passes within a moment is not reported, what stays is.
func TestSettle(t *testing.T) {
	f := newFixture(t)
	for name, c := range map[string]struct {
		lasts   int
		settled bool
		looks   int
		found   int
	}{
		"nothing":   {0, false, 1, 0},
		"passing":   {1, false, 2, 0},
		"slowly":    {looksAgain, false, looksAgain + 1, 0},
		"standing":  {looksAgain + 1, false, looksAgain + 1, 1},
		"by itself": {1, true, 1, 1},
	} {
		looks := 0
		found, err := settle(t.Context(), f.Rig, func(context.Context, *rig.Rig) ([]finding, error) {
			looks++
			if looks > c.lasts {
				return nil, nil
			}
			return []finding{{Finding: Finding{Rule: "r", Path: "p"}, settled: c.settled}}, nil
		}, patience{looksAgain, 0})
		if err != nil || looks != c.looks || len(found) != c.found {
			t.Errorf("%s: %d looks, %d found, %v; want %+v", name, looks, len(found), err, c)
		}
	}
}

// A worker that outlived its polecat is told of; one that is followed is not.
func TestDoctorOrphanedWorker(t *testing.T) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Skip(err)
	}
	stat, err := os.ReadFile("/proc/self/stat")
	must(t, err)
	_, fields, _ := strings.Cut(string(stat), ") ")
	const startTime = 19
	f := newFixture(t)
	record := fmt.Sprintf(`{"id":"ses-1","boot_id":%q,"supervisor_pid":%d,"supervisor_start":%s,"code":0,"done":false}`,
		strings.TrimSpace(string(boot)), os.Getpid(), strings.Fields(fields)[startTime])
	f.Plant("run/workers/ses-1.json", record)
	f.Plant("run/workers/ses-2.json", strings.Replace(strings.Replace(record, "ses-1", "ses-2", 1), `"done":false`, `"done":true`, 1))
	f.Plant("run/workers/odd.json", "{")
	const want = "orphaned-worker:error worker-record:warning"
	if got := rules(f.doctor(false)); got != want {
		t.Errorf("found %q, want %q", got, want)
	}
	f.Hang(f.PutBead("gt-aaaaa", bead.InProgress, nil), hook.Active)
	f.Run(alpha)
	if got := rules(f.doctor(false)); got != "worker-record:warning" {
		t.Errorf("under its polecat: %q", got)
	}
}
