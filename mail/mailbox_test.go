package mail

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

var now = state.At(time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC))

func fixed() time.Time { return now.Time }

const (
	childEnv  = "MAIL_TEST_CHILD"
	childSend = 8
)

// TestMain lets the test binary be a second process that sends with the same clock.
func TestMain(m *testing.M) {
	if root := os.Getenv(childEnv); root != "" {
		os.Exit(child(root))
	}
	os.Exit(m.Run())
}

func child(root string) int {
	tree, err := state.Open(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	o := NewSender(tree, agent.NewStore(tree, nil), fixed, 0)
	for range childSend {
		n, err := o.Send(testContext(), hello())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(n)
	}
	return 0
}

func hello() Message {
	return Message{From: "polecat-alpha", To: "mayor", Type: Coordination, Subject: "hello", Body: "there"}
}

type post struct {
	*Sender
	tree   *state.Tree
	agents agent.Store
	box    *Mailbox
}

func newPost(t *testing.T) post {
	t.Helper()
	tree, err := state.Create(filepath.Join(t.TempDir(), ".chipset"))
	must(t, err)
	agents := agent.NewStore(tree, nil)
	for id, role := range map[state.AgentID]agent.Role{"mayor": agent.Mayor, "polecat-alpha": agent.Polecat, "witness": agent.Witness} {
		_, err := agents.Register(t.Context(), id, role, "rig", nil, now)
		must(t, err)
	}
	return post{NewSender(tree, agents, fixed, 0), tree, agents, NewMailbox(tree, "mayor")}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// plant puts a file into the mailbox of the mayor the way a foreign tool would.
func (p post) plant(t *testing.T, name, content string) string {
	t.Helper()
	at := p.tree.Abs(p.box.Dir().Join(name))
	must(t, os.MkdirAll(filepath.Dir(at), 0o755))
	must(t, os.WriteFile(at, []byte(content), 0o644))
	return at
}

func (p post) send(t *testing.T, m Message) Name {
	t.Helper()
	n, err := p.Send(t.Context(), m)
	must(t, err)
	return n
}

func names(entries []Entry) string {
	var all []string
	for _, e := range entries {
		all = append(all, string(e.Name))
	}
	return strings.Join(all, " ")
}

func TestSameClockNeverReplaces(t *testing.T) {
	p := newPost(t)
	var mu sync.Mutex
	seen := map[string]bool{}
	add := func(n string) {
		mu.Lock()
		defer mu.Unlock()
		if seen[n] {
			t.Errorf("the name %s was given twice", n)
		}
		seen[n] = true
	}
	self, err := os.Executable()
	must(t, err)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), childEnv+"="+p.tree.Root())
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Error(err)
			}
			for n := range strings.FieldsSeq(string(out)) {
				add(n)
			}
		})
	}
	for range 4 {
		wg.Go(func() {
			for range childSend {
				n, err := p.Send(t.Context(), hello())
				if err != nil {
					t.Error(err)
				}
				add(string(n))
			}
		})
	}
	wg.Wait()
	all, bad, err := p.box.List()
	if err != nil || len(bad) > 0 || len(all) != 6*childSend || len(seen) != len(all) {
		t.Fatalf("%d messages, %d names, %v, %v; want %d", len(all), len(seen), bad, err, 6*childSend)
	}
	for i, e := range all {
		if want := now.Add(time.Duration(i)); !e.Timestamp.Equal(want) || e.Name != NameAt(e.Timestamp, e.From) {
			t.Errorf("message %d is %s at %s", i, e.Name, e.Timestamp)
		}
	}
}

// An archival of unread mail that was broken off leaves none of it to the next one, which takes read mail alone.
func TestArchivalsAreTheirOwn(t *testing.T) {
	p := newPost(t)
	for range archiveSlice + 2 {
		p.send(t, hello())
	}
	cutoff := now.Add(time.Hour)
	some, more, err := p.box.ArchiveBatch(t.Context(), "mayor", cutoff, true)
	if err != nil || len(some) != archiveSlice || !more {
		t.Fatalf("%d moved, more %v, %v", len(some), more, err)
	}
	if rest, err := p.box.ArchiveOld(t.Context(), "mayor", cutoff, false); err != nil || len(rest) > 0 {
		t.Errorf("unread mail was moved: %v, %v", rest, err)
	}
}

func TestArchivedNamesAreTaken(t *testing.T) {
	p := newPost(t)
	first := p.send(t, hello())
	must(t, p.box.MarkRead(t.Context(), first))
	moved, err := p.box.ArchiveOld(t.Context(), "mayor", now.Add(time.Hour), false)
	if err != nil || len(moved) != 1 {
		t.Fatal(moved, err)
	}
	if second := p.send(t, hello()); second == first {
		t.Errorf("%s was given again", first)
	}
}

const foreign = `{"from": "%s", "to":"mayor","type":"coordination","subject":"s","body":"b","timestamp":"%s","read":false,"priority":"normal"}`

func TestForeignNamesAndOrder(t *testing.T) {
	p := newPost(t)
	p.plant(t, "2026-03-05T10-30-00Z-polecat-alpha.json", fmt.Sprintf(foreign, "polecat-alpha", "2026-03-05T10:30:00Z"))
	p.plant(t, "2026-03-05T12-29-59+02-00-witness.json", fmt.Sprintf(foreign, "witness", "2026-03-05T12:29:59+02:00"))
	p.plant(t, "2026-03-05T10-30-00Z-mayor-a1b2c.json", fmt.Sprintf(foreign, "mayor-a1b2c", "2026-03-05T10:30:00.7Z"))
	p.plant(t, ".msg.tmp", "half")
	p.send(t, hello())
	all, bad, err := p.box.List()
	if err != nil || len(bad) > 0 {
		t.Fatal(bad, err)
	}
	want := "2026-03-05T12-29-59+02-00-witness.json 2026-03-05T10-30-00.000000000Z-polecat-alpha.json " +
		"2026-03-05T10-30-00Z-polecat-alpha.json 2026-03-05T10-30-00Z-mayor-a1b2c.json"
	if got := names(all); got != want {
		t.Errorf("order\n%s\nwant\n%s", got, want)
	}
}

func TestMarkReadChangesOnlyTheFlag(t *testing.T) {
	p := newPost(t)
	const name = "2026-03-05T10-30-00Z-polecat-alpha.json"
	layouts := []string{
		`{"read":false,"from":"polecat-alpha","to":"mayor","type":"coordination","subject":"\"read\":false","body":"b","timestamp":"2026-03-05T10:30:00Z","priority":"low"}`,
		"\t{ \"x\" : {\"read\": false}, \"from\":\"polecat-alpha\",\n\n\"to\":\"mayor\",\"type\":\"coordination\",\"subject\":\"s\",\"body\":\"\\u00fc <&>\",\"timestamp\":\"2026-03-05T10:30:00Z\",\"priority\":\"normal\",  \"read\" :\tfalse  }  \r\n",
		`{"r\u0065ad":false,"from":"polecat-alpha","to":"mayor","type":"coordination","subject":"s","body":"b","timestamp":"2026-03-05T10:30:00Z","priority":"later","n":1e400}`,
	}
	for _, layout := range layouts {
		at := p.plant(t, name, layout)
		must(t, p.box.MarkRead(t.Context(), name))
		got, err := os.ReadFile(at)
		must(t, err)
		flip := -1 // the layouts place the flag where exactly one replacement of its value makes the file
		for i := range layout {
			if strings.HasPrefix(layout[i:], "false") && layout[:i]+"true"+layout[i+5:] == string(got) {
				flip = i
			}
		}
		if flip < 0 {
			t.Errorf("%s\nbecame\n%s", layout, got)
		}
		e, err := p.box.Get(name)
		if err != nil || !e.Read {
			t.Errorf("%+v, %v", e, err)
		}
		before, _ := os.Stat(at)
		must(t, p.box.MarkRead(t.Context(), name))
		if after, _ := os.Stat(at); !os.SameFile(before, after) {
			t.Error("marking again wrote the file")
		}
	}
}

func TestReadingNeverFlips(t *testing.T) {
	p := newPost(t)
	n := p.send(t, hello())
	at := p.tree.Abs(p.box.Dir().Join(string(n)))
	before, _ := os.ReadFile(at)
	if _, _, err := p.box.List(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.box.Get(n); err != nil {
		t.Fatal(err)
	}
	if unread, _, err := p.box.Unread(); err != nil || len(unread) != 1 {
		t.Fatal(unread, err)
	}
	if after, _ := os.ReadFile(at); !bytes.Equal(before, after) {
		t.Errorf("changed to %s", after)
	}
}

func TestArchive(t *testing.T) {
	p := newPost(t)
	old, young := hello(), hello()
	old.Timestamp = state.At(now.Add(-25 * time.Hour))
	oldRead, oldUnread := p.send(t, old), p.send(t, old)
	youngRead := p.send(t, young)
	const zoned = "2026-03-05T23-00-00+14-00-witness.json" // 09:00 UTC of that day, whatever the name looks like
	p.plant(t, zoned, strings.Replace(fmt.Sprintf(foreign, "witness", "2026-03-05T23:00:00+14:00"), "false", "true", 1))
	for _, n := range []Name{oldRead, youngRead} {
		must(t, p.box.MarkRead(t.Context(), n))
	}
	moved, err := p.box.ArchiveOld(t.Context(), "mayor", now.Add(-time.Hour), false)
	if err != nil || fmt.Sprint(moved) != fmt.Sprint([]Name{oldRead, zoned}) {
		t.Errorf("moved %v, %v", moved, err)
	}
	left, _, _ := p.box.List()
	if got, want := names(left), string(oldUnread)+" "+string(youngRead); got != want {
		t.Errorf("left %s, want %s", got, want)
	}
	archived, bad, err := p.box.Archive()
	if err != nil || len(bad) > 0 || len(archived) != 2 || !archived[0].Archived {
		t.Errorf("archive %v, %v, %v", archived, bad, err)
	}
	if e, err := p.box.Get(oldRead); err != nil || !e.Archived {
		t.Errorf("Get of an archived one: %+v, %v", e, err)
	}
	must(t, p.box.MarkRead(t.Context(), oldRead)) // a late marker can't bring it back
	if there, _ := p.tree.Exists(p.box.Dir().Join(string(oldRead))); there {
		t.Error("a late marker brought it back")
	}
	if moved, err := p.box.ArchiveOld(t.Context(), "mayor", now.Add(-time.Hour), true); err != nil || len(moved) != 1 {
		t.Errorf("unread, asked for: %v, %v", moved, err)
	}
}

// A name that is taken in the archive is an error of that message alone.
func TestArchiveGoesOnPastAProblem(t *testing.T) {
	p := newPost(t)
	first, second := p.send(t, hello()), p.send(t, hello())
	for _, n := range []Name{first, second} {
		must(t, p.box.MarkRead(t.Context(), n))
	}
	p.plant(t, "archive/"+string(first), "something else")
	moved, err := p.box.ArchiveOld(t.Context(), "mayor", now.Add(time.Hour), false)
	if !errors.Is(err, state.ErrExists) || len(moved) != 1 || moved[0] != second {
		t.Errorf("moved %v, %v", moved, err)
	}
	if e, err := p.box.Get(first); err != nil || e.Archived {
		t.Errorf("the one in the way: %+v, %v", e, err)
	}
}

func TestIDsAreDeliveredOnce(t *testing.T) {
	p := newPost(t)
	m := hello()
	m.ID = "report-as-1"
	first := p.send(t, m)
	if again := p.send(t, m); again != first {
		t.Errorf("delivered again as %s", again)
	}
	must(t, p.box.MarkRead(t.Context(), first))
	if _, err := p.box.ArchiveOld(t.Context(), "mayor", now.Add(time.Hour), false); err != nil {
		t.Fatal(err)
	}
	if again := p.send(t, m); again != first {
		t.Errorf("delivered again as %s after it was archived", again)
	}
	m.From = "witness"
	if other := p.send(t, m); other == first {
		t.Error("another sender's id counts as this one's")
	}
	m.From, m.ID = "polecat-alpha", "many"
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := p.Send(t.Context(), m); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	all, _, _ := p.box.List()
	if len(all) != 2 {
		t.Errorf("%d messages: %s", len(all), names(all))
	}
}

func TestSendAs(t *testing.T) {
	p := newPost(t)
	m := hello()
	n := NameAt(now, m.From)
	if err := p.SendAs(t.Context(), n, m); err == nil {
		t.Error("without an id it was sent")
	}
	m.ID = "a"
	for range 2 {
		must(t, p.SendAs(t.Context(), n, m))
	}
	other := m
	other.ID = "b"
	if err := p.SendAs(t.Context(), n, other); !errors.Is(err, state.ErrExists) {
		t.Errorf("another message at the name: %v, want ErrExists", err)
	}
	if err := p.SendAs(t.Context(), NameAt(now, "witness"), m); err == nil {
		t.Error("a name of another sender was taken")
	}
	must(t, p.box.MarkRead(t.Context(), n))
	if _, err := p.box.ArchiveOld(t.Context(), "mayor", now.Add(time.Hour), false); err != nil {
		t.Fatal(err)
	}
	must(t, p.SendAs(t.Context(), n, m))
	if all, _, _ := p.box.List(); len(all) != 0 {
		t.Errorf("delivered again: %s", names(all))
	}
	next := NameAt(state.At(now.Add(1)), m.From)
	p.plant(t, string(next), "{")
	if err := p.SendAs(t.Context(), next, m); !errors.Is(err, state.ErrExists) {
		t.Errorf("a corrupt file at the name: %v, want ErrExists", err)
	}
}

func TestRecipients(t *testing.T) {
	p := newPost(t)
	m := hello()
	m.To = "mayr"
	_, err := p.Send(t.Context(), m)
	var unknown *state.Unknown
	if !errors.As(err, &unknown) || unknown.Hint() != "did you mean mayor?" {
		t.Errorf("unknown: %v, want *Unknown with mayor", err)
	}
	m.To = state.Human
	p.send(t, m)
	must(t, p.agents.SetStatus(t.Context(), "witness", agent.Retired, now))
	m.To = "witness"
	if _, err := p.Send(t.Context(), m); !errors.Is(err, state.ErrConflict) {
		t.Errorf("retired: %v, want ErrConflict", err)
	}
	if there, _ := p.tree.Exists(Dir.Join("mayr")); there {
		t.Error("a mailbox was made for nobody")
	}
}

func TestSizeLimits(t *testing.T) {
	p := newPost(t)
	m := hello()
	m.Body = strings.Repeat("x", MaxSize)
	if _, err := p.Send(t.Context(), m); !errors.Is(err, state.ErrTooLarge) {
		t.Errorf("%v, want ErrTooLarge", err)
	}
	small := NewSender(p.tree, p.agents, fixed, 300)
	m.Body = strings.Repeat("x", 300)
	if _, err := small.Send(t.Context(), m); !errors.Is(err, state.ErrTooLarge) {
		t.Errorf("own limit: %v, want ErrTooLarge", err)
	}
	if all, _, _ := p.box.List(); len(all) != 0 {
		t.Errorf("a failed send left %s", names(all))
	}
}

func TestDropArchived(t *testing.T) {
	p := newPost(t)
	n := p.send(t, hello())
	must(t, p.box.MarkRead(t.Context(), n))
	data, err := os.ReadFile(p.box.tree.Abs(p.box.path(n, false)))
	must(t, err)
	must(t, p.box.DropArchived(t.Context(), n)) // nothing is archived
	if _, err := p.box.ArchiveOld(t.Context(), "mayor", now.Add(time.Hour), false); err != nil {
		t.Fatal(err)
	}
	p.plant(t, string(n), strings.Replace(string(data), `"body": "`, `"body": "another `, 1))
	if err := p.box.DropArchived(t.Context(), n); !errors.Is(err, state.ErrConflict) {
		t.Errorf("a message that differs: %v, want ErrConflict", err)
	}
	p.plant(t, string(n), strings.Replace(string(data), `"read": true`, `"read": false`, 1))
	must(t, p.box.DropArchived(t.Context(), n))
	if left, bad, err := p.box.List(); err != nil || len(left)+len(bad) > 0 {
		t.Errorf("left %v, %v, %v", left, bad, err)
	}
	if e, err := p.box.Get(n); err != nil || !e.Archived {
		t.Errorf("the archived one: %+v, %v", e, err)
	}
}
