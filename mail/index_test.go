package mail

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/statetest"
)

// followedBox is a mailbox as a running role has it.
func (p post) followedBox(t testing.TB) *Mailbox {
	t.Helper()
	w, err := state.NewWatcher(p.tree)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { w.Close() })
	b := NewMailbox(p.tree, "mayor")
	b.Follow(w)
	return b
}

// cold is a mailbox as a new process has it, with a cache for the smallest.
func (p post) cold() *Mailbox {
	b := NewMailbox(p.tree, "mayor")
	b.cacheFrom = 1
	return b
}

// fill puts n messages into the mailbox, the last unread of them unread.
func (p post) fill(t testing.TB, n, unread int) {
	t.Helper()
	var news []state.NewFile
	for i := range n {
		m := hello()
		m.Timestamp, m.Priority, m.Read = state.At(now.Add(time.Duration(i)*time.Second)), Normal, i < n-unread
		data, err := m.Encode(MaxSize)
		if err != nil {
			t.Fatal(err)
		}
		news = append(news, state.NewFile{Path: p.box.path(NameAt(m.Timestamp, m.From), false), Data: data})
	}
	for _, err := range p.tree.WriteAll(news) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func unreadOf(t testing.TB, b *Mailbox) []Entry {
	t.Helper()
	unread, bad, err := b.Unread()
	if err != nil || len(bad) > 0 {
		t.Fatal(bad, err)
	}
	return unread
}

// A fetch of a running role reads what is new, however many messages lie there.
func TestFetchReadsWhatIsNew(t *testing.T) {
	for _, n := range []int{20, 2000} {
		p := newPost(t)
		p.fill(t, n, 10)
		b := p.followedBox(t)
		if got := len(unreadOf(t, b)); got != 10 {
			t.Fatalf("%d unread, want 10", got)
		}
		old := time.Now().Add(-time.Minute) // past the racy window
		for _, e := range unreadOf(t, b) {
			must(t, os.Chtimes(p.tree.Abs(p.box.path(e.Name, false)), old, old))
		}
		time.Sleep(150 * time.Millisecond) // ctime can't be set
		unreadOf(t, b)
		for round := range 5 {
			before := b.parsed.Load()
			unreadOf(t, b)
			if read := b.parsed.Load() - before; read != 0 {
				t.Errorf("%d messages, round %d: %d files were read though nothing changed", n, round, read)
			}
			sent := p.send(t, hello())
			before = b.parsed.Load()
			if got := len(unreadOf(t, b)); got != 11 {
				t.Fatalf("%d unread, want 11", got)
			}
			if read := b.parsed.Load() - before; read != 1 {
				t.Errorf("%d messages, round %d: %d files were read for one new", n, round, read)
			}
			must(t, b.MarkRead(t.Context(), sent))
			if got := len(unreadOf(t, b)); got != 10 {
				t.Fatalf("%d unread after marking, want 10", got)
			}
		}
	}
}

// What somebody else has marked is not unread any more, also where nobody reports it and the file was long known.
func TestMarkedByAnotherProcess(t *testing.T) {
	p := newPost(t)
	p.fill(t, 3, 3)
	b := NewMailbox(p.tree, "mayor")
	first := unreadOf(t, b)[0].Name
	old := time.Now().Add(-time.Minute) // past the racy window
	for _, e := range unreadOf(t, b) {
		must(t, os.Chtimes(p.tree.Abs(p.box.path(e.Name, false)), old, old))
	}
	time.Sleep(150 * time.Millisecond) // ctime can't be set
	unreadOf(t, b)
	before := b.parsed.Load()
	if unreadOf(t, b); b.parsed.Load() != before {
		t.Fatal("the files are not known yet")
	}
	must(t, p.box.MarkRead(t.Context(), first))
	if got := len(unreadOf(t, b)); got != 2 {
		t.Errorf("%d unread, want 2", got)
	}
}

// A cold look at a mailbox that has a cache reads the unread alone.
func TestColdLookReadsTheUnread(t *testing.T) {
	p := newPost(t)
	p.fill(t, 500, 10)
	first := p.cold()
	unreadOf(t, first)
	if first.parsed.Load() != 500 {
		t.Errorf("the first look read %d files, want 500", first.parsed.Load())
	}
	for _, change := range []string{"nothing", "a message", "the folder's stamp"} {
		want := int64(10)
		switch change {
		case "a message":
			must(t, p.box.MarkRead(t.Context(), p.send(t, hello())))
			want = 11
		case "the folder's stamp":
			must(t, os.Chtimes(p.tree.Abs(p.box.Dir()), time.Now(), now.Time))
			want = -1
		}
		b := p.cold()
		if got := len(unreadOf(t, b)); got != 10 {
			t.Errorf("%s: %d unread, want 10", change, got)
		}
		if read := b.parsed.Load(); want >= 0 && read != want {
			t.Errorf("%s: %d files were read, want %d", change, read, want)
		}
	}
}

// whole is what a look at every file finds: the truth of all that is remembered.
func (p post) whole(t testing.TB) string {
	all, bad, err := NewMailbox(p.tree, "mayor").List()
	var unread []Entry
	for _, e := range all {
		if !e.Read {
			unread = append(unread, e)
		}
	}
	return fmt.Sprint(names(unread), bad, err)
}

// TestIndexIsLikeAFullLook: whatever happens to a mailbox and to its cache, who
// remembers sees what a full look sees.
func TestIndexIsLikeAFullLook(t *testing.T) {
	statetest.Check(t, 40, func(r *rapid.T) {
		p := newPost(t)
		must(t, p.tree.MkdirAll(p.box.Dir()))
		long := map[string]*Mailbox{"followed": p.followedBox(t), "not followed": p.cold()}
		var sent []Name
		damaged := map[Name]bool{}
		pick := func(r *rapid.T) Name { return rapid.SampledFrom(append([]Name{"README"}, sent...)).Draw(r, "name") }
		abs := func(n Name) string { return p.tree.Abs(p.box.path(n, false)) }
		clock, tick := now, 0
		p.Sender = NewSender(p.tree, p.agents, func() time.Time { tick++; return now.Add(time.Duration(tick)) }, 0)
		steps := map[string]func(*rapid.T){
			"send":     func(*rapid.T) { sent = append(sent, p.send(t, hello())) },
			"mark":     func(r *rapid.T) { _ = long["followed"].MarkRead(t.Context(), pick(r)) },
			"mark too": func(r *rapid.T) { _ = p.box.MarkRead(t.Context(), pick(r)) },
			"mark in place": func(r *rapid.T) {
				at := abs(pick(r))
				if data, err := os.ReadFile(at); err == nil {
					must(t, os.WriteFile(at, bytes.Replace(data, []byte(`"read": false`), []byte(`"read": true`), 1), 0o644))
				}
			},
			"archive": func(r *rapid.T) {
				_, err := long[rapid.SampledFrom([]string{"followed", "not followed"}).Draw(r, "box")].ArchiveOld(t.Context(), "mayor", fixed().Add(time.Hour), rapid.Bool().Draw(r, "unread"))
				must(t, err)
			},
			"damage": func(r *rapid.T) {
				n := pick(r)
				if _, err := os.Lstat(abs(n)); n != "README" && (err != nil || damaged[n]) {
					return // a second time the inode of the first version can come back under its name
				}
				damaged[n] = true
				must(t, os.Rename(p.plant(t, ".other", "{"), abs(n)))
			},
			"damage in place": func(r *rapid.T) {
				if n := pick(r); !strings.Contains(p.whole(t), string(n)) {
					return // read: in place it is not noticed, except by a full look
				} else {
					p.plant(t, string(n), "{")
				}
			},
			"foreign": func(r *rapid.T) {
				tick++
				sent = append(sent, Name(filepath.Base(p.plant(t, fmt.Sprintf("2026-03-05T10-30-00.%06dZ-witness.json", tick), fmt.Sprintf(foreign, "witness", "2026-03-05T10:30:00Z")))))
			},
			"remove": func(r *rapid.T) { _ = os.Remove(abs(pick(r))) },
			"quarantine": func(*rapid.T) {
				_, bad, err := p.box.List()
				must(t, err)
				for _, c := range bad {
					_, err := p.box.Quarantine(t.Context(), c, now)
					must(t, err)
				}
			},
			"take the folder away": func(*rapid.T) {
				away := p.tree.Abs(p.box.Dir()) + fmt.Sprint("-", len(sent), rapid.Int().Draw(r, "away"))
				_ = os.Rename(p.tree.Abs(p.box.Dir()), away)
				must(t, os.RemoveAll(away))
				must(t, os.MkdirAll(p.tree.Abs(p.box.Dir()), 0o755))
			},
			"set the clock of the folder": func(r *rapid.T) {
				clock = state.At(clock.Add(time.Duration(rapid.IntRange(-3, 3).Draw(r, "hours")) * time.Hour))
				_ = os.Chtimes(p.tree.Abs(p.box.Dir()), clock.Time, clock.Time)
			},
			"remove the cache": func(*rapid.T) { must(t, os.RemoveAll(p.tree.Abs(state.CacheDir))) },
			"damage the cache": func(r *rapid.T) { p.damageCache(t, r) },
			"": func(r *rapid.T) {
				want := p.whole(t)
				long["cold"] = p.cold()
				for name, b := range long {
					unread, bad, err := b.Unread()
					if got := fmt.Sprint(names(unread), bad, err); got != want {
						r.Fatalf("%s\nsees  %s\nwhole %s", name, got, want)
					}
				}
			},
		}
		r.Repeat(steps)
	})
}

// damageCache leaves the cache torn, changed or foreign.
func (p post) damageCache(t testing.TB, r *rapid.T) {
	at := p.tree.Abs(p.box.cachePath())
	data, err := os.ReadFile(at)
	if err != nil || len(data) == 0 {
		must2(t, os.MkdirAll(filepath.Dir(at), 0o755))
		data = []byte("chipset cache 2\n")
	}
	i := rapid.IntRange(0, len(data)-1).Draw(r, "at")
	switch rapid.SampledFrom([]string{"cut", "flip", "link"}).Draw(r, "damage") {
	case "cut":
		data = data[:i]
	case "flip":
		data[i] ^= 1 << rapid.IntRange(0, 7).Draw(r, "bit")
	case "link":
		must2(t, os.RemoveAll(at))
		must2(t, os.Symlink("/nowhere", at))
		return
	}
	must2(t, os.RemoveAll(at))
	must2(t, os.WriteFile(at, data, 0o644))
}

func must2(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// FuzzCacheReader: whatever is in a cache whose checksum is right, reading it
// ends, and gives names that can be looked up.
func FuzzCacheReader(f *testing.F) {
	f.Add(bytes.Repeat([]byte{0}, 56))
	f.Add(append(bytes.Repeat([]byte{0}, 48), 1, 0, 0, 0, 2, 0, 'a', 'b', 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := state.Create(filepath.Join(t.TempDir(), ".chipset"))
		must(t, err)
		b := NewMailbox(tree, "mayor")
		must(t, tree.WriteCache(b.cachePath(), &state.CacheWriter{Data: data}))
		if live, unchanged := b.load(state.Stamp{Inode: 1}); unchanged && len(live) > len(data) {
			t.Errorf("%d names of %d bytes", len(live), len(data))
		}
		b.unpack()
	})
}

// Many senders, markers and readers at once: a reader that asks after an
// acknowledgement sees what was acknowledged.
func TestFetchAfterAcknowledgement(t *testing.T) {
	p := newPost(t)
	b := p.followedBox(t)
	unreadOf(t, b)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				n, err := p.Send(t.Context(), hello())
				if err != nil {
					t.Error(err)
					return
				}
				if !holds(t, b, n) {
					t.Errorf("%s was acknowledged, and is not there", n)
				}
				if err := p.box.MarkRead(t.Context(), n); err != nil {
					t.Error(err)
				}
				if holds(t, b, n) {
					t.Errorf("%s was marked, and is unread", n)
				}
			}
		})
	}
	wg.Wait()
}

func holds(t *testing.T, b *Mailbox, n Name) bool {
	unread, _, err := b.Unread()
	if err != nil {
		t.Error(err)
	}
	for _, e := range unread {
		if e.Name == n {
			return true
		}
	}
	return false
}

// readAlready vouches only for what Decode accepts.
func TestReadAlreadyIsNeverWrong(t *testing.T) {
	const name = "2026-03-05T10-30-00Z-polecat-alpha.json"
	good := fmt.Sprintf(foreign, "polecat-alpha", "2026-03-05T10:30:00Z")
	read := string(bytes.Replace([]byte(good), []byte(`"read":false`), []byte(`"read":true`), 1))
	if read == good {
		t.Fatal("the sample has no such flag")
	}
	if !vouched("mayor", name, []byte(read)) || vouched("mayor", name, []byte(good)) {
		t.Error("the plain cases are wrong")
	}
}

// FuzzReadAlready: what readAlready vouches for, Decode accepts as read.
func FuzzReadAlready(f *testing.F) {
	const name = "2026-03-05T10-30-00Z-polecat-alpha.json"
	f.Add([]byte(`{"from":"polecat-alpha","to":"mayor","type":"x-a","subject":"","body":"","timestamp":"2026-03-05T10:30:00.9Z","read":true,"priority":"p"}`))
	f.Add([]byte(`{"from":"polecat-alpha","to":"mayor","type":"coordination","subject":"","body":"\n","timestamp":"2026-03-05T10:30:00Z","read":true,"priority":"p","ref":{"bead_id":"gt-a","new":1},"id":"a","task":{"id":"t"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !vouched("mayor", name, data) {
			return
		}
		if m, err := Decode("p", "mayor", name, data); err != nil || !m.Read {
			t.Fatalf("%q: read %v, %v", data, m.Read, err)
		}
	})
}

func vouched(owner state.AgentID, n Name, data []byte) bool {
	sure, _ := readAlready(owner, n, data)
	return sure
}

// Requests of tasks are found among what is read without another look at all of it.
func TestSurveyFindsRequests(t *testing.T) {
	p := newPost(t)
	p.fill(t, 300, 2)
	request := func(id string, read bool) Name {
		m := hello()
		m.Task = json.RawMessage(`{"id":"` + id + `","state":"pending"}`)
		n := p.send(t, m)
		if read {
			must(t, p.box.MarkRead(t.Context(), n))
		}
		return n
	}
	first, second := request("t1", true), request("t2", false)
	done := hello()
	done.Task = json.RawMessage(`{"id":"t3","state":"completed"}`)
	data, err := done.Encode(MaxSize)
	must(t, err)
	must(t, p.tree.WriteNew(p.box.path(NameAt(done.Timestamp, done.From), false), data))
	for _, look := range []string{"first", "from the cache"} {
		b := p.cold()
		unread, asked, _, err := b.UnreadAndRequests()
		must(t, err)
		if len(unread) != 4 || names(asked) != string(first+" "+second) {
			t.Errorf("%s: %d unread, requests %v, want %v", look, len(unread), names(asked), first+" "+second)
		}
		if read := b.parsed.Load(); look == "from the cache" && read > 10 {
			t.Errorf("%d files were read for one request and 4 unread", read)
		}
	}
	must(t, os.Remove(p.tree.Abs(p.box.path(first, false))))
	b := p.cold()
	_, asked, _, err := b.UnreadAndRequests()
	must(t, err)
	if len(asked) != 1 || asked[0].Name != second {
		t.Errorf("after the request went: %v", names(asked))
	}
	must(t, os.WriteFile(p.tree.Abs(p.box.path(second, false)), []byte("{"), 0o644))
	must(t, os.WriteFile(p.tree.Abs(p.box.path("odd.json", false)), []byte("{"), 0o644))
	if unread, left, bad, err := p.cold().UnreadAndRequests(); err != nil || len(unread) != 3 || len(left) != 0 || len(bad) != 2 {
		t.Errorf("a survey of damaged mail: %d unread, requests %v, %v, %v", len(unread), names(left), bad, err)
	}
	due, err := OverdueTasks(asked, now.Time, func(id state.AgentID) *Mailbox { return NewMailbox(p.tree, id) })
	if err != nil || len(due) != 0 {
		t.Errorf("overdue without a deadline: %v, %v", due, err)
	}
}
