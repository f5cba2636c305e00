package chipsettest_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/chipset/measure"
	"github.com/gastown-chipset/chipset/state"
	loops "github.com/gastown-chipset/chipset/state/bench"
)

// series are the milliseconds of calls that take turns, so that a noisy spell
// of the machine hits all of them.
type series struct {
	b     *testing.B
	names []string
	calls []func() error
	took  [][]float64
}

func (s *series) add(name string, call func() error) {
	s.names, s.calls, s.took = append(s.names, name), append(s.calls, call), append(s.took, nil)
}

func (s *series) run() {
	for s.b.Loop() {
		for i, call := range s.calls {
			began := time.Now()
			if err := call(); err != nil {
				s.b.Fatal(s.names[i], err)
			}
			s.took[i] = append(s.took[i], float64(time.Since(began).Microseconds())/1000)
		}
	}
	for i, name := range s.names {
		slices.Sort(s.took[i])
		s.b.ReportMetric(s.took[i][len(s.took[i])/2], name+"-ms")
	}
}

// command is a call of the binary, with something on its standard input.
func command(w *chipsettest.World, stdin string, args ...string) func() error {
	return func() error {
		cmd := w.Command(w.Bin, args...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	}
}

// BenchmarkCommands: what commands cost as processes (median, ms), beside a
// process of git that does nothing and the bare protocol for one message, in the same rounds.
func BenchmarkCommands(b *testing.B) {
	bin := chipsettest.Build(b)
	b.Run("small", func(b *testing.B) {
		w := chipsettest.New(b, bin, chipsettest.Options{Polecats: 1, Test: "true"})
		s := withBaselines(b, w)
		s.add("version", command(w, "", "version"))
		s.add("send", command(w, "", "mail", "send", "mayor", "-s", "hello"))
		s.add("status", command(w, "", "status"))
		s.run()
	})
	b.Run("hook/unread=1000", func(b *testing.B) {
		w := chipsettest.New(b, bin, chipsettest.Options{Polecats: 1, Test: "true"})
		around(b, w, measure.Size{To: "claude", Messages: 1000, Unread: 1000})
		s := withBaselines(b, w)
		const session = `{"session_id":"s","source":"startup","prompt":"go on","tool_name":"Read"}`
		for _, event := range []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"} {
			s.add(event, command(w, session, "client-hook", "claude", event))
		}
		s.run()
	})
	size := measure.Size{Agents: 1000, Landed: 10_000, To: "polecat-00000", Messages: 100_000, Unread: 10, Archived: 100_000}
	if !large() {
		size.Agents, size.Landed, size.Messages, size.Archived = size.Agents/10, size.Landed/10, size.Messages/10, size.Archived/10
	}
	b.Run(fmt.Sprintf("agents=%d/beads=%d/messages=%d", size.Agents, size.Landed, size.Messages+size.Archived), func(b *testing.B) {
		w := chipsettest.New(b, bin, chipsettest.Options{Polecats: 1, Test: "true"})
		around(b, w, size)
		cache := filepath.Join(w.Dir, ".chipset", "run", "cache")
		forgotten := func(call func() error) func() error {
			return func() error { return errors.Join(os.RemoveAll(cache), call()) }
		}
		s := withBaselines(b, w)
		inbox := command(w, "", "mail", "inbox", string(size.To), "--unread")
		status := command(w, "", "status")
		s.add("status-first", forgotten(status))
		s.add("status", status)
		s.add("inbox-first", forgotten(inbox))
		s.add("inbox", inbox)
		s.run()
	})
}

func withBaselines(b *testing.B, w *chipsettest.World) *series {
	b.Helper()
	dir, err := loops.Folder(w.Dir, "plain")
	if err != nil {
		b.Fatal(err)
	}
	send, i := loops.Plain(dir, make([]byte, 500)), 0
	s := &series{b: b}
	s.add("plain-protocol", func() error { i++; return send(i) })
	s.add("git-version", func() error { return w.Command("git", "version").Run() })
	return s
}

// around puts into the world's rig what lies around.
func around(b *testing.B, w *chipsettest.World, size measure.Size) {
	b.Helper()
	t, err := state.Open(filepath.Join(w.Dir, ".chipset"))
	if err == nil {
		err = measure.Fill(b.Context(), t, size)
	}
	if err != nil {
		b.Fatal(err)
	}
}
