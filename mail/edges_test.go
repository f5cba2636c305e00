package mail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/audit"
	"github.com/gastown-chipset/chipset/state/disk"
)

// seen is what a mailbox tells of itself, which must be what a look at every file finds.
func (p post) seen(t *testing.T, what string, boxes ...*Mailbox) {
	t.Helper()
	for i, b := range boxes {
		unread, bad, err := b.Unread()
		if got, want := fmt.Sprint(names(unread), bad, err), p.whole(t); got != want {
			t.Errorf("%s: mailbox %d sees %s\nwhole %s", what, i, got, want)
		}
	}
}

// rescan makes a change of the folder of which nobody is told.
func (p post) rescan(t *testing.T, n int) {
	t.Helper()
	at := now.Add(time.Duration(n) * time.Hour)
	must(t, os.Chtimes(p.tree.Abs(p.box.Dir()), at, at))
}

// What is not a file, and what stands where the archive should be, is reported, also to those who follow the mailbox.
func TestWhatIsNoMessage(t *testing.T) {
	p := newPost(t)
	boxes := []*Mailbox{p.followedBox(t), p.cold()}
	first := p.send(t, hello())
	p.seen(t, "one message", boxes...)
	must(t, os.Mkdir(p.tree.Abs(p.box.path("2026-03-05T10-30-00Z-witness.json", false)), 0o700))
	p.plant(t, archiveName, "in the way")
	p.seen(t, "a folder, and a file for the archive", boxes...)
	must(t, os.Remove(p.tree.Abs(p.box.Dir().Join(archiveName))))
	p.seen(t, "without the file", boxes...)
	if _, err := p.box.ArchiveOld(t.Context(), "mayor", fixed().Add(time.Hour), true); err != nil {
		t.Error(err)
	}
	p.seen(t, "archived", boxes...)
	must(t, os.Mkdir(p.tree.Abs(p.box.path(archiveName, true)), 0o700))
	if all, bad, err := p.box.Archive(); err != nil || len(all) != 1 || all[0].Name != first || len(bad) != 1 {
		t.Errorf("in the archive: %v, %v, %v; want a message, and a folder that is none", names(all), bad, err)
	}
}

// A message that was damaged after it was read is reported for as long as it lies there.
func TestDamageAfterReading(t *testing.T) {
	p := newPost(t)
	p.fill(t, 3, 0)
	time.Sleep(150 * time.Millisecond) // the system's stamp of a change can't be set
	p.seen(t, "cached", p.cold())
	b := p.followedBox(t)
	b.cacheFrom = 1
	p.seen(t, "from the cache", b)
	list, _, err := p.box.List()
	must(t, err)
	p.plant(t, string(list[1].Name), "{")
	p.seen(t, "damaged", b)
	if moved, err := b.ArchiveOld(t.Context(), "mayor", fixed().Add(-time.Hour), false); err != nil || len(moved) > 0 {
		t.Errorf("archived %v, %v", moved, err)
	}
	for i := range 2 {
		p.rescan(t, i)
		p.seen(t, "looked at whole", b)
	}
}

// A new process archives what its cache alone knows of.
func TestArchiveFromTheCache(t *testing.T) {
	p := newPost(t)
	p.fill(t, 20, 0)
	time.Sleep(150 * time.Millisecond) // the system's stamp of a change can't be set
	p.seen(t, "cached", p.cold())
	b := p.cold()
	moved, err := b.ArchiveOld(t.Context(), "mayor", fixed().Add(time.Hour), false)
	if err != nil || len(moved) != 20 || !slices.IsSorted(moved) || b.parsed.Load() != 0 {
		t.Errorf("archived %v, %v, after %d files were looked at", moved, err, b.parsed.Load())
	}
}

// What another process takes away, or puts into a new folder, is not remembered from before.
func TestNothingIsRememberedOfWhatIsGone(t *testing.T) {
	p := newPost(t)
	boxes := []*Mailbox{p.followedBox(t), p.cold(), NewMailbox(p.tree, "mayor")}
	first := p.send(t, hello())
	p.send(t, hello())
	p.seen(t, "two messages", boxes...)
	must(t, os.Remove(p.tree.Abs(p.box.path(first, false))))
	p.seen(t, "one is gone", boxes...)
	must(t, os.RemoveAll(p.tree.Abs(p.box.Dir())))
	p.seen(t, "all are gone", boxes...)

	read := p.send(t, hello())
	must(t, p.box.MarkRead(t.Context(), read))
	p.seen(t, "one that was read", boxes...)
	data, err := p.tree.Read(p.box.path(read, false), MaxSize)
	must(t, err)
	// The same file, in another folder, says something else.
	dir := p.tree.Abs(p.box.Dir())
	must(t, os.Rename(dir, dir+"-old"))
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.Rename(dir+"-old/"+string(read), dir+"/"+string(read)))
	must(t, os.WriteFile(dir+"/"+string(read), []byte(strings.Replace(string(data), `"read": true`, `"read": false`, 1)), 0o600))
	must(t, os.RemoveAll(dir+"-old"))
	p.seen(t, "another folder", boxes...)

	// The same file, taken away and put back, says something else again.
	must(t, p.box.MarkRead(t.Context(), read))
	p.seen(t, "read again", boxes...)
	at := dir + "/" + string(read)
	data, err = os.ReadFile(at)
	must(t, err)
	must(t, os.Rename(at, dir+"-away"))
	p.seen(t, "taken away", boxes...)
	must(t, os.WriteFile(dir+"-away", []byte(strings.Replace(string(data), `"read": true`, `"read": false`, 1)), 0o600))
	must(t, os.Rename(dir+"-away", at))
	p.seen(t, "put back", boxes...)
	p.rescan(t, 7)
	p.seen(t, "looked at whole", boxes...)

	must(t, os.RemoveAll(p.tree.Abs(Dir)))
	must(t, os.WriteFile(p.tree.Abs(Dir), nil, 0o600))
	for i, b := range boxes {
		if all, _, err := b.Unread(); err == nil {
			t.Errorf("mailbox %d: %v without an error", i, names(all))
		}
	}
}

// A message may hold anything as a task. A card that can't be read allows no task more, and of two
// last words the first counts.
func TestTasksOfOtherWriters(t *testing.T) {
	p := newPost(t)
	boxes := []*Mailbox{p.box, p.followedBox(t)}
	for i, task := range []string{"null", "5", `{"id":"t8","state":"pending"}`} {
		text := fmt.Sprintf(foreign, "polecat-alpha", "2026-03-05T10:30:00Z")
		text = strings.Replace(text[:len(text)-1], `"read":false`, `"read":true`, 1) + `,"task":` + task + "}"
		p.plant(t, fmt.Sprintf("2026-03-05T10-30-00.%dZ-polecat-alpha.json", i), text)
	}
	for i, b := range boxes {
		if unread, asked, bad, err := b.UnreadAndRequests(); err != nil || len(unread)+len(bad) > 0 || len(asked) != 1 {
			t.Errorf("mailbox %d: %v, %v, %v, %v", i, unread, asked, bad, err)
		}
	}

	asked := p.ask(t, "t1", nil)
	for _, to := range []TaskState{TaskAccepted, TaskWorking, TaskCompleted} {
		p.send(t, update("t1", to))
	}
	over := p.status(t, asked)
	late := update("t1", TaskFailed)
	late.Timestamp = state.At(now.Add(time.Hour))
	late.Priority = Normal
	data, err := late.Encode(MaxSize)
	must(t, err)
	p.plant(t, string(NameAt(late.Timestamp, late.From)), string(data))
	if s := p.status(t, asked); s.State != TaskCompleted || s.UpdatedAt != over.UpdatedAt {
		t.Errorf("completed, and then %s at %s", s.State, s.UpdatedAt)
	}

	p.ask(t, "t2", nil)
	must(t, os.WriteFile(p.tree.Abs("state/agents/polecat-alpha.json"), []byte("{"), 0o600))
	if n, err := p.Send(t.Context(), update("t2", TaskAccepted)); err == nil {
		t.Errorf("accepted by %s although nobody knows how many are allowed", n)
	}

	due := state.At(now.Add(-time.Hour))
	e := Entry{Message: Message{From: "polecat-alpha", To: "mayor", Task: json.RawMessage(`{"id":"t9"}`), Deadline: &due}}
	if late, err := OverdueTasks([]Entry{e}, now.Time, func(id state.AgentID) *Mailbox { return NewMailbox(p.tree, id) }); err != nil || len(late) != 1 {
		t.Errorf("overdue: %v, %v", late, err)
	}
}

// Every verb that changes what others change as well waits for the lock of the mailbox.
func TestVerbsWaitForTheLock(t *testing.T) {
	p := newPost(t)
	first := p.send(t, hello())
	must(t, p.box.MarkRead(t.Context(), first))
	held, err := p.box.lock(t.Context())
	must(t, err)
	defer held.Unlock()
	before := p.whole(t)
	keyed := hello()
	keyed.ID = "one"
	task := hello()
	task.Task = json.RawMessage(`{"id":"t1"}`)
	for name, verb := range map[string]func(ctx context.Context) error{
		"send with an ID":   func(ctx context.Context) error { _, err := p.Send(ctx, keyed); return err },
		"send of a task":    func(ctx context.Context) error { _, err := p.Send(ctx, task); return err },
		"send under a name": func(ctx context.Context) error { return p.SendAs(ctx, NameAt(now, "polecat-alpha"), keyed) },
		"send all": func(ctx context.Context) error {
			names, errs := p.SendAll(ctx, []Message{keyed, task, keyed})
			if strings.Join([]string{string(names[0]), string(names[1]), string(names[2])}, "") != "" || errs[1] == nil || errs[2] == nil {
				t.Errorf("%v, %v", names, errs)
			}
			return errs[0]
		},
		"mark": func(ctx context.Context) error { return p.box.MarkRead(ctx, first) },
		"drop": func(ctx context.Context) error { return p.box.DropArchived(ctx, first) },
		"quarantine": func(ctx context.Context) error {
			_, err := p.box.Quarantine(ctx, &state.Corruption{Path: string(p.box.path(first, false))}, now)
			return err
		},
		"archive": func(ctx context.Context) error {
			_, _, err := p.box.ArchiveBatch(ctx, "mayor", fixed().Add(time.Hour), false)
			return err
		},
	} {
		soon, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		if err := verb(soon); !errors.Is(err, state.ErrLockTimeout) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	if after := p.whole(t); after != before {
		t.Errorf("was %s\nis %s", before, after)
	}
}

// What is as old as the limit is not older, and what was not sent has no name.
func TestArchivedToTheNanosecond(t *testing.T) {
	p := newPost(t)
	n := p.send(t, hello())
	must(t, p.box.MarkRead(t.Context(), n))
	if moved, err := p.box.ArchiveOld(t.Context(), "mayor", now.Time, false); err != nil || len(moved) > 0 {
		t.Errorf("%v, %v", moved, err)
	}
	if moved, err := p.box.ArchiveOld(t.Context(), "mayor", now.Add(1), false); err != nil || len(moved) != 1 {
		t.Errorf("%v, %v", moved, err)
	}

	full, err := state.OpenOn(fullDisk{}, p.tree.Root())
	must(t, err)
	sent, errs := NewSender(full, p.agents, fixed, 0).SendAll(t.Context(), []Message{hello(), hello()})
	for i, n := range sent {
		if n != "" || !errors.Is(errs[i], unix.ENOSPC) {
			t.Errorf("on a full disk: %q, %v", n, errs[i])
		}
	}
}

// fullDisk takes no new file.
type fullDisk struct{ disk.OS }

func (fullDisk) Unnamed(string) (disk.File, error) { return nil, unix.ENOSPC }

func (fullDisk) Create(string) (disk.File, error) { return nil, unix.ENOSPC }

// A mailbox may be used by many at once.
func TestMailboxOfMany(t *testing.T) {
	p := newPost(t)
	p.fill(t, 20, 10)
	b := p.followedBox(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 30 {
				unread, _, err := b.Unread()
				_, _, _, requestsErr := b.UnreadAndRequests()
				_, archiveErr := b.ArchiveOld(t.Context(), "mayor", fixed().Add(time.Duration(i)*time.Second), false)
				if err := errors.Join(err, requestsErr, archiveErr); err != nil || len(unread) != 10 {
					t.Errorf("%d unread, %v", len(unread), err)
				}
			}
		})
	}
	all.Wait()
}

// The history tells a message that was damaged from one that was changed, to the last digit.
func TestHistoryOfDamage(t *testing.T) {
	const at = "mail/mayor/2026-03-05T10-30-00Z-polecat-alpha.json"
	message := fmt.Sprintf(foreign, "polecat-alpha", "2026-03-05T10:30:00Z")
	with := func(number string, read string) []byte {
		return []byte(strings.Replace(message[:len(message)-1], `"read":false`, `"read":`+read, 1) + `,"x_big":` + number + "}")
	}
	if err := moved(at, []byte(message), []byte("{")); !errors.Is(err, audit.ErrUnreadable) {
		t.Errorf("damaged: %v", err)
	}
	if err := moved(at, with("9007199254740993", "false"), with("9007199254740992", "true")); err == nil {
		t.Error("a digit was changed, and nobody says so")
	}
	if err := moved(at, with("9007199254740993", "false"), with("9007199254740993", "true")); err != nil {
		t.Error(err)
	}
}

// An agent's own limit of tasks is asked for where it is known alone.
func TestTasksOfAnUnknownAgent(t *testing.T) {
	p := newPost(t)
	p.ask(t, "t1", nil)
	_, err := p.agents.Update(t.Context(), "polecat-alpha", func(a *agent.Agent) error { a.MaxTasks = 1; return nil })
	must(t, err)
	must(t, os.Remove(p.tree.Abs("state/agents/polecat-alpha.json")))
	if _, err := p.Send(t.Context(), update("t1", TaskAccepted)); err != nil {
		t.Error(err)
	}
}
