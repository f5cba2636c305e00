package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

// Every verb, cut at every moment on every kind of file system. The names of
// the facts say what the verb promised when it returned.

// long content is torn in more ways than short.
func long(first byte) []byte { return bytes.Repeat([]byte{first}, 5000) }

// later is when every temp file is old.
func later() time.Time { return time.Now().Add(time.Hour) }

// has demands that a file holds one of some contents.
func has(c *model.Crash, p state.Path, contents ...[]byte) error {
	file, ok := c.Files[string(p)]
	for _, content := range contents {
		if ok && bytes.Equal(file.Data, content) || !ok && content == nil {
			return nil
		}
	}
	if !ok {
		return fmt.Errorf("%s is gone", p)
	}
	return fmt.Errorf("%s has the wrong content", p)
}

// noTemps demands that the sweep left no unfinished file.
func noTemps(c *model.Crash) error {
	for p := range c.Files {
		if base := state.Path(p).Base(); base[0] == '.' {
			return fmt.Errorf("%s was left", p)
		}
	}
	return nil
}

func published(p state.Path, data []byte) func(r *model.Run) error {
	return func(r *model.Run) error {
		err := r.Tree.WriteNew(p, data)
		if err == nil || errors.Is(err, state.ErrExists) {
			r.Ack("published")
			return nil
		}
		return err
	}
}

func isPublished(p state.Path, data []byte) func(c *model.Crash) error {
	return func(c *model.Crash) error {
		switch {
		case c.Acked("published"):
			return has(c, p, data)
		case c.Failed:
			return errors.Join(has(c, p, nil), noTemps(c))
		}
		return has(c, p, nil, data)
	}
}

func writeNew() model.Scenario {
	const p = state.Path("state/mail/mayor/new.json")
	return model.Scenario{
		Name: "WriteNew into a new folder",
		Do:   published(p, long('n')), Heal: published(p, long('n')), Check: isPublished(p, long('n')),
	}
}

func TestCrashWriteNew(t *testing.T) {
	const there = state.Path("state/mail/mayor/new.json")
	model.Sweep(t, writeNew())
	model.Sweep(t, model.Scenario{
		Name:    "WriteNew beside another",
		Prepare: func(r *model.Run) error { return r.Tree.WriteNew("state/mail/mayor/old.json", []byte("old")) },
		Do:      published(there, []byte("new")), Heal: published(there, []byte("new")),
		Check: func(c *model.Crash) error {
			return errors.Join(has(c, "state/mail/mayor/old.json", []byte("old")), isPublished(there, []byte("new"))(c))
		},
	})
	model.Sweep(t, model.Scenario{
		Name: "WriteNew and the sweep of its temp file",
		Do:   published(there, long('n')),
		Heal: func(r *model.Run) error {
			_, err := r.Tree.RemoveTempFiles(later())
			return err
		},
		Check: func(c *model.Crash) error {
			if c.Healed && !c.Cut {
				return noTemps(c)
			}
			return isPublished(there, long('n'))(c)
		},
	})
}

// A whole group, at the cost of two barriers where there are any.
func TestCrashWriteAll(t *testing.T) {
	for _, n := range []int{3, 5, 14} {
		news := make([]state.NewFile, n)
		for i := range news {
			news[i] = state.NewFile{Path: state.Path(fmt.Sprintf("state/mail/agent-%d/new-%d.json", i%2, i)), Data: fmt.Appendf(nil, "content %d", i)}
		}
		write := func(r *model.Run) error {
			var failed error
			for i, err := range r.Tree.WriteAll(append([]state.NewFile(nil), news...)) {
				if err == nil || errors.Is(err, state.ErrExists) {
					r.Ack(fmt.Sprint(i))
				} else {
					failed = err
				}
			}
			return failed
		}
		model.Sweep(t, model.Scenario{
			Name: fmt.Sprintf("WriteAll of %d", n), Do: write, Heal: write,
			Check: func(c *model.Crash) error {
				for i, new := range news {
					allowed := [][]byte{nil, new.Data}
					if c.Acked(fmt.Sprint(i)) {
						allowed = allowed[1:]
					} else if c.Failed {
						allowed = allowed[:1]
					}
					if err := has(c, new.Path, allowed...); err != nil {
						return err
					}
				}
				return nil
			},
		})
	}
}

func TestCrashReplace(t *testing.T) {
	const p = state.Path("state/hooks/polecat-alpha.json")
	replace := func(r *model.Run) error {
		for _, next := range []byte{'b', 'c'} {
			if err := r.Tree.Replace(p, long(next)); err != nil {
				return err
			}
			r.Ack(string(next))
		}
		return nil
	}
	model.Sweep(t, model.Scenario{
		Name:    "Replace twice",
		Prepare: func(r *model.Run) error { return r.Tree.WriteNew(p, long('a')) },
		Do:      replace,
		Heal: func(r *model.Run) error {
			if err := r.Tree.Replace(p, long('c')); err != nil {
				return err
			}
			r.Ack("c")
			return nil
		},
		Check: func(c *model.Crash) error {
			switch {
			case c.Acked("c"):
				return has(c, p, long('c'))
			case c.Acked("b"):
				return has(c, p, long('b'), long('c'))
			}
			return has(c, p, long('a'), long('b'), long('c'))
		},
	})
}

func TestCrashMove(t *testing.T) {
	const from, to = state.Path("state/mail/mayor/m.json"), state.Path("state/mail/mayor/archive/m.json")
	const other, otherTo = state.Path("state/mail/mayor/n.json"), state.Path("state/mail/mayor/archive/n.json")
	move := func(r *model.Run) error {
		moved := true
		for _, err := range r.Tree.MoveAll([]state.FileMove{{From: from, To: to}, {From: other, To: otherTo}}) {
			if err != nil && !errors.Is(err, state.ErrNotFound) {
				return err
			}
			moved = moved && err == nil
		}
		if moved {
			r.Ack("moved")
		}
		return nil
	}
	model.Sweep(t, model.Scenario{
		Name: "MoveAll",
		Prepare: func(r *model.Run) error {
			return errors.Join(r.Tree.WriteNew(from, long('m')), r.Tree.WriteNew(other, []byte("n")))
		},
		Do: move, Heal: move,
		Check: func(c *model.Crash) error {
			if c.Acked("moved") {
				return errors.Join(has(c, from, nil), has(c, to, long('m')), has(c, other, nil), has(c, otherTo, []byte("n")))
			}
			return errors.Join(kept(c, from, to, long('m')), kept(c, other, otherTo, []byte("n")))
		},
	})
}

// kept demands a file at one of two places, or the same at both.
func kept(c *model.Crash, a, b state.Path, data []byte) error {
	if err := errors.Join(has(c, a, nil, data), has(c, b, nil, data)); err != nil {
		return err
	}
	if has(c, a, nil) == nil {
		return has(c, b, data)
	}
	return nil
}

func TestCrashQuarantine(t *testing.T) {
	const p = state.Path("state/mail/mayor/broken.json")
	model.Sweep(t, model.Scenario{
		Name:    "Quarantine",
		Prepare: func(r *model.Run) error { return r.Tree.WriteNew(p, long('?')) },
		Do:      quarantine(p), Heal: quarantine(p),
		Check: func(c *model.Crash) error {
			moved := 0
			for _, name := range c.Names("state/quarantine") {
				if bytes.Equal(c.Files[name].Data, long('?')) {
					moved++
					if _, ok := c.Files[name+".reason.json"]; !ok {
						return fmt.Errorf("%s has no reason", name)
					}
				}
			}
			switch there := has(c, p, nil) != nil; {
			case c.Acked("moved") && (there || moved == 0):
				return errors.New("it was not moved")
			case !there && moved == 0:
				return errors.New("it is lost")
			}
			return has(c, p, nil, long('?'))
		},
	})
}

// What is visible is not yet durable: who takes the lock makes it so before it
// looks, also when the one who made it was killed before its own sync.
func TestCrashLock(t *testing.T) {
	const p = state.Path("state/work/gt-abc12.json")
	look := func(r *model.Run) error {
		lock, err := r.Tree.Lock(r, state.LockBead, "gt-abc12", p.Dir())
		if err != nil {
			return err
		}
		defer lock.Unlock()
		if there, err := r.Tree.Exists(p); err != nil || !there {
			return err
		}
		r.Ack("published") // the holder has seen it
		return nil
	}
	model.Sweep(t, model.Scenario{
		Name:    "a lock, and what another process made",
		Prepare: func(r *model.Run) error { return r.Tree.WriteNew("state/work/other.json", nil) },
		Do:      func(r *model.Run) error { return r.Tree.WriteNew(p, long('n')) },
		Heal:    look,
		Check:   isPublished(p, long('n')),
	})
}

func TestCrashRemove(t *testing.T) {
	const p = state.Path("state/dispatch/gt-abc12.json")
	remove := func(r *model.Run) error {
		if err := r.Tree.Remove(p); err != nil {
			return err
		}
		r.Ack("removed")
		return nil
	}
	model.Sweep(t, model.Scenario{
		Name:    "Remove",
		Prepare: func(r *model.Run) error { return r.Tree.WriteNew(p, long('r')) },
		Do:      remove,
		Check: func(c *model.Crash) error {
			if c.Acked("removed") {
				return has(c, p, nil)
			}
			return has(c, p, nil, long('r'))
		},
	})
}

func quarantine(p state.Path) func(r *model.Run) error {
	return func(r *model.Run) error {
		if there, err := r.Tree.Exists(p); err != nil || !there {
			return err
		}
		if _, err := r.Tree.Quarantine(p, "it is no JSON", state.At(later())); err != nil {
			return err
		}
		r.Ack("moved")
		return nil
	}
}

func TestCrashAppend(t *testing.T) {
	const p = state.Path("state/events/2026-03-05.jsonl")
	line := func(i int) []byte { return append(bytes.Repeat([]byte{byte('a' + i)}, 3000), '\n') }
	tell := func(r *model.Run, i int) error {
		if err := r.Tree.Append(p, line(i)); err != nil {
			return err
		}
		return r.Tree.SyncFile(p)
	}
	story := func(r *model.Run) error {
		for i := range 3 {
			if err := tell(r, i); err != nil {
				return err
			}
			r.Ack(fmt.Sprint(i))
		}
		return nil
	}
	// After a failed sync nothing is promised of a log any more: it is the story
	// and not the truth, and it is never written again.
	goOn := func(r *model.Run) error { return tell(r, 0) }
	for name, prepare := range map[string]func(r *model.Run) error{
		"Append to a new file":     nil,
		"Append after a torn line": func(r *model.Run) error { return r.Tree.WriteNew(p, []byte("torn")) },
	} {
		model.Sweep(t, model.Scenario{
			Name: name, Prepare: prepare, Do: story, Heal: goOn,
			Check: func(c *model.Crash) error {
				for i := range 3 {
					whole := append([]byte{'\n'}, line(i)...)
					found := bytes.HasPrefix(c.Files[string(p)].Data, line(i)) || bytes.Contains(c.Files[string(p)].Data, whole)
					if c.Acked(fmt.Sprint(i)) && !found {
						return fmt.Errorf("line %d is not there, or not a line", i)
					}
				}
				return nil
			},
		})
	}
}

// The first process of a tree: what init has acknowledged is there.
func TestCrashMkdirAll(t *testing.T) {
	const dir = state.Path("state/mail/mayor/archive")
	run := func(r *model.Run) error {
		if err := r.Tree.MkdirAll(dir); err != nil {
			return err
		}
		return published(dir.Join("x.json"), []byte("x"))(r)
	}
	model.Sweep(t, model.Scenario{
		Name: "MkdirAll and a file", Do: run, Heal: run, Check: isPublished(dir.Join("x.json"), []byte("x")),
	})
}
