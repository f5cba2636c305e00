package doctor

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/handoff"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

const charlie state.AgentID = "polecat-charlie"

// allWorkers are those whose worktree held something that was not committed.
var allWorkers = []state.AgentID{alpha, charlie}

// precious is what only a worktree holds, and no commit.
const precious = "not committed, and nowhere else\n"

// template is a rig that is made once for all tests; each gets a copy of it.
type template struct {
	made sync.Once
	dir  string
	now  time.Time // of the clock of a copy
}

var (
	inMidflight = template{now: rigtest.Noon().Add(time.Hour)}
	inOrder     = template{now: rigtest.Noon()}
)

// copy returns a copy of the template, which build makes in an empty folder.
func (m *template) copy(t *testing.T, build func(t *testing.T, dir string)) *fixture {
	t.Helper()
	m.made.Do(func() {
		dir, err := os.MkdirTemp("", "chipset-doctor-")
		must(t, err)
		m.dir, err = filepath.EvalSymlinks(dir)
		must(t, err)
		must(t, os.Chmod(m.dir, 0o755)) // some tests look at a copy as another user
		build(t, m.dir)
	})
	dir := gittest.Dir(t)
	if out, err := exec.Command("cp", "-a", m.dir+"/.", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	admins, err := filepath.Glob(filepath.Join(dir, ".git", "worktrees", "*", "gitdir"))
	must(t, err)
	links, err := filepath.Glob(filepath.Join(dir, ".chipset", "worktrees", "*", ".git"))
	must(t, err)
	for _, name := range append(append(admins, links...), filepath.Join(dir, ".git", "chipset")) {
		data, err := os.ReadFile(name)
		must(t, err)
		must(t, os.WriteFile(name, bytes.ReplaceAll(data, []byte(m.dir), []byte(dir)), 0o644))
	}
	f := &fixture{&rigtest.Yard{T: t, Dir: dir, Now: m.now}}
	f.reopen()
	return f
}

// midflight is a rig in the middle of everything: alpha works, bravo has just got
// work, charlie has submitted, one bead has landed, mail and nudges lie about. In
// it the doctor finds nothing.
func midflight(t *testing.T) *fixture {
	t.Helper()
	return inMidflight.copy(t, buildMidflight)
}

// newFixture is a rig with two polecats and no work.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	return inOrder.copy(t, func(t *testing.T, dir string) {
		t.Helper()
		gittest.Init(t, dir)
		_, err := rig.Init(t.Context(), rig.InitOptions{Dir: dir, Clock: func() time.Time { return rigtest.Noon() },
			Template: definition.TemplateOptions{RigName: "yard", Prefix: "gt", Worker: "sh", Polecats: 2, Test: "make check", Target: "main"}})
		must(t, err)
	})
}

func (f *fixture) reopen() {
	f.T.Helper()
	var err error
	f.Rig, err = rig.OpenState(f.T.Context(), f.Dir, func() time.Time { return f.Now })
	f.Must(err)
	if f.Git != nil {
		f.Git.LockGrace = 20 * time.Millisecond
	}
}

func buildMidflight(t *testing.T, dir string) {
	gittest.Init(t, dir)
	f := &fixture{&rigtest.Yard{T: t, Dir: dir, Now: rigtest.Noon()}}
	f.RunGit("config", "user.name", "t")
	f.RunGit("config", "user.email", "t@example.invalid")
	var err error
	f.Rig, err = rig.Init(t.Context(), rig.InitOptions{Dir: dir, Clock: func() time.Time { f.Now = f.Now.Add(time.Second); return f.Now },
		Template: definition.TemplateOptions{RigName: "yard", Prefix: "gt", Worker: "sh", Polecats: 3, Test: "true", Target: "main"}})
	must(t, err)
	for _, id := range []state.BeadID{"gt-aaaaa", "gt-bbbbb", "gt-ccccc"} {
		f.PutBead(id, bead.Open, nil)
	}
	f.PutBead("gt-eeeee", bead.Open, func(b *bead.Bead) { b.BlockedBy = []state.BeadID{"gt-aaaaa"} })
	f.PutRequest(f.PutBead("gt-ddddd", bead.Merged, nil), mergequeue.Merged, nil)
	f.works("gt-aaaaa", alpha)
	_, err = carry.Sling(t.Context(), f.Rig, "gt-bbbbb", bravo, "mayor")
	must(t, err)
	f.works("gt-ccccc", charlie)
	f.retires(charlie, retire.Done)
	must(t, f.Git.PrepareDetached(t.Context(), f.Worktree("refinery"), git.Hash(f.Tip())))
	f.groups("cv-aaa", "gt-ccccc", "gt-ddddd")
	f.letters()
	f.pings()
	f.PutRef("refs/chipset/salvage/as-old", f.Tip())
	_, err = f.Handoffs.Write(handoff.Handoff{AgentID: alpha, BeadID: "gt-aaaaa", Summary: "half of it", Salvage: "refs/chipset/salvage/as-old", Timestamp: f.At()})
	must(t, err)
	h, err := f.Hooks.Get(string(alpha))
	must(t, err)
	must(t, f.Incidents.Put("in-aaa", incident.Incident{ID: "in-aaa", AgentID: alpha, AssignmentID: h.Assignment(), BeadID: "gt-aaaaa",
		Kind: incident.Stalled, Severity: incident.Alert, OpenedAt: f.At()}))
	if found := rules(f.doctor(false)); found != "" {
		t.Fatalf("the rig in mid-flight is not in order: %s", found)
	}
}

// works takes a bead to where its worker has a commit and something uncommitted.
func (f *fixture) works(id state.BeadID, who state.AgentID) {
	f.T.Helper()
	ctx := f.T.Context()
	rec, err := carry.Sling(ctx, f.Rig, id, who, "mayor")
	f.Must(err)
	session := state.SessionID("ses-" + string(id))
	_, err = f.Hooks.Activate(ctx, who, rec.AssignmentID, session, f.At())
	f.Must(err)
	_, err = f.Beads.Update(ctx, string(id), func(b *bead.Bead) error { return b.Become(bead.InProgress, "", f.At()) })
	f.Must(err)
	f.Must(f.Git.PrepareWorktree(ctx, f.Worktree(who), git.Branch(rec.Branch), git.Hash(f.Tip())))
	f.Must(carry.WriteWorktree(f.Rig, carry.Worktree{AgentID: who, AssignmentID: rec.AssignmentID, BeadID: id, Session: session,
		Base: git.Hash(f.Tip()), Branch: rec.Branch}))
	gittest.Write(f.T, f.Worktree(who), string(id)+".txt", "committed\n")
	gittest.Run(f.T, f.Worktree(who), "add", "-A")
	gittest.Run(f.T, f.Worktree(who), "commit", "-q", "-m", "a step")
	gittest.Write(f.T, f.Worktree(who), "precious-"+string(who), precious)
}

func (f *fixture) retires(who state.AgentID, o retire.Outcome) retire.Record {
	f.T.Helper()
	rec := f.publishes(who, o)
	rec, err := carry.Finish(f.T.Context(), carry.RetireDeps{Rig: f.Rig}, rec)
	f.Must(err)
	return rec
}

func (f *fixture) publishes(who state.AgentID, o retire.Outcome) retire.Record {
	f.T.Helper()
	h, err := f.Hooks.Get(string(who))
	f.Must(err)
	rec, won, err := carry.Publish(f.T.Context(), f.Rig, retire.Record{AssignmentID: h.Assignment(), AgentID: who, Outcome: o, Reason: "so it ended"})
	f.Must(err)
	if !won {
		f.Must(errors.New("somebody else published"))
	}
	return rec
}

func (f *fixture) groups(id state.ConvoyID, beads ...state.BeadID) {
	f.T.Helper()
	f.Must(f.Convoys.Put(string(id), convoy.Convoy{ID: id, Name: "two", BeadIDs: beads, Progress: 0.5, CreatedAt: f.At()}))
	for _, b := range beads {
		_, err := f.Beads.Update(f.T.Context(), string(b), func(b *bead.Bead) error { b.ConvoyID = id; b.Touch(f.At()); return nil })
		f.Must(err)
	}
}

func (f *fixture) letters() {
	f.T.Helper()
	ctx := f.T.Context()
	for _, m := range []mail.Message{
		{From: alpha, To: "mayor", Subject: "one", ID: "id-1"}, {From: bravo, To: "mayor", Subject: "two"},
		{From: "mayor", To: state.Human, Subject: "three", Priority: mail.Urgent}, {From: state.Human, To: alpha, Subject: "four"},
	} {
		m.Type, m.Body = mail.Coordination, "a body\n"
		n, err := f.Sender.Send(ctx, m)
		f.Must(err)
		if m.Subject == "two" {
			f.Must(f.Mailbox("mayor").MarkRead(ctx, n))
		}
	}
	_, err := f.Mailbox("mayor").ArchiveOld(ctx, "mayor", f.Now.Add(time.Hour), false)
	f.Must(err)
}

func (f *fixture) pings() {
	f.T.Helper()
	for _, from := range []state.AgentID{"mayor", state.Human} {
		n, err := f.Slot(alpha).Send(f.T.Context(), nudge.Nudge{From: from, Type: nudge.HealthCheck, Message: "how is it?", RequiresResponse: true}, f.At())
		f.Must(err)
		if from == "mayor" {
			f.Must(f.Slot(alpha).MarkSeen(f.T.Context(), n))
		}
	}
}

// files is the content of everything that lies in state/.
type files map[string]string

func (f *fixture) files() files {
	f.T.Helper()
	all := files{}
	root := f.Tree.Abs(state.StateDir)
	f.Must(filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			if errors.Is(err, fs.ErrPermission) {
				return nil
			}
			return err
		}
		info, err := e.Info()
		if err != nil || info.Size() > 8<<20 {
			return err
		}
		data, err := os.ReadFile(path)
		rel, relErr := filepath.Rel(root, path)
		all[filepath.ToSlash(rel)] = string(data)
		return errors.Join(err, relErr)
	}))
	return all
}

// lost says what of before is neither where it was nor in the quarantine. What
// the roles may change must still stand there.
func (f *fixture) lost(before files) []string {
	f.T.Helper()
	after := f.files()
	kept := map[string]bool{}
	for name, content := range after {
		if strings.HasPrefix(name, "quarantine/") {
			kept[content] = true
		}
	}
	var gone []string
	for name, content := range before {
		now, there := after[name]
		folder, _, _ := strings.Cut(name, "/")
		switch {
		case there && now == content, kept[content]:
		case folder == "quarantine" && strings.HasSuffix(name, reasonSuffix):
		case strings.HasPrefix(filepath.Base(name), "."):
		case folder == "mail":
			if archived := after[filepath.Dir(name)+"/archive/"+filepath.Base(name)]; archived == "" {
				gone = append(gone, name)
			}
		case folder == "handoff":
			gone = append(gone, name) // unless it has another name
			for other, same := range after {
				if same == content && strings.HasPrefix(other, filepath.Dir(name)) {
					gone = gone[:len(gone)-1]
					break
				}
			}
		case folder == "events":
			if !strings.HasPrefix(now, content) {
				gone = append(gone, name)
			}
		case folder == "dispatch" || folder == "nudge":
		default:
			var v map[string]any
			if !there || state.Decode(name, []byte(content), &v) != nil {
				gone = append(gone, name)
			}
		}
	}
	return gone
}

// keepsWork reports whether the uncommitted file of an agent is still somewhere.
func (f *fixture) keepsWork(who state.AgentID) bool {
	f.T.Helper()
	name := "precious-" + string(who)
	if data, err := os.ReadFile(filepath.Join(f.Worktree(who), name)); err == nil && string(data) == precious {
		return true
	}
	refs := gittest.Run(f.T, f.Dir, "for-each-ref", "--format=%(refname)", "refs/chipset/salvage/", "refs/heads/")
	for ref := range strings.FieldsSeq(refs) {
		out, err := exec.Command("git", "-C", f.Dir, "show", ref+":"+name).Output()
		if err == nil && string(out) == precious {
			return true
		}
	}
	return false
}
