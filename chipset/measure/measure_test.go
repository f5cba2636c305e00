package measure

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/bench"
)

// sizes are those of the curves. The largest takes minutes to fill, so it has
// to be asked for.
func sizes() []int {
	if os.Getenv("CHIPSET_BENCH_LARGE") != "" {
		return []int{1000, 10_000, 100_000}
	}
	return []int{1000, 10_000}
}

func testYard(t testing.TB) *yard {
	t.Helper()
	y, err := newYard(t.Context(), t.TempDir(), time.Now)
	must(t, err)
	return y
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A whole run, small, leaves nothing behind and every figure filled.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	var told int
	r, err := Run(t.Context(), Options{Dir: dir, Quick: true, Clock: time.Now, Say: func(string, ...any) { told++ }})
	must(t, err)
	if len(r.Sends) != 6 || len(r.Polls) != 2 || len(r.Wakes) != 1 || told == 0 || r.Drift <= 0 {
		t.Errorf("%+v", r)
	}
	for _, s := range r.Sends {
		if s.Own <= 0 || s.Plain <= 0 || s.Ratio <= 0 || (s.Senders == 1) != (s.OfCheapest > 0) || s.text() == "" {
			t.Errorf("%+v", s)
		}
	}
	for _, p := range r.Polls {
		if p.Naive <= 0 || p.Running <= 0 || p.First <= 0 || p.Again <= 0 {
			t.Errorf("%+v", p)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestRunIsInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Run(ctx, Options{Dir: dir, Quick: true, Clock: time.Now, Say: func(string, ...any) { cancel() }})
	if err == nil {
		t.Error("no error")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestQuantile(t *testing.T) {
	if median(nil) != 0 || median([]float64{3, 1, 2}) != 2 || quantile([]float64{1, 2, 3, 4}, 1) != 4 {
		t.Error("wrong")
	}
}

// BenchmarkSends: each iteration is a round of sends between two of the plain
// protocol.
func BenchmarkSends(b *testing.B) {
	for _, senders := range []int{1, 8, 64, 0} {
		b.Run(sendersText(senders), func(b *testing.B) {
			y := testYard(b)
			var own, ratio, of []float64
			for b.Loop() {
				row, err := y.sends(b.Context(), senders, 500, 1)
				must(b, err)
				own, ratio, of = append(own, row.Own), append(ratio, row.Ratio), append(of, row.OfCheapest)
			}
			b.ReportMetric(median(own), "sends/s")
			b.ReportMetric(median(ratio), "x-plain")
			if senders == 1 {
				b.ReportMetric(median(of), "x-cheapest")
			}
		})
	}
}

// BenchmarkFetch: what 10 unread messages cost a running role, a command, and
// one that reads everything.
func BenchmarkFetch(b *testing.B) {
	for _, n := range sizes() {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			y := testYard(b)
			row, err := y.poll(b.Context(), n, 5)
			must(b, err)
			for b.Loop() { // the rows are medians of their own
			}
			b.ReportMetric(row.Running, "running-ms")
			b.ReportMetric(row.First, "first-ms")
			b.ReportMetric(row.Again, "again-ms")
			b.ReportMetric(row.Naive, "naive-ms")
			b.ReportMetric(row.Naive/row.Running, "x-naive")
		})
	}
}

// BenchmarkMarkRead: marking one of many, which is to cost the same however
// many there are, beside the plain protocol replacing one file.
func BenchmarkMarkRead(b *testing.B) {
	for _, n := range sizes() {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var y *yard
			var box *mail.Mailbox
			var replace bench.Send
			var own, bare []float64
			for b.Loop() {
				i := len(own) % n
				if i == 0 { // all have been read
					y = testYard(b)
					must(b, Fill(b.Context(), y.tree, Size{To: recipient, Messages: n, Unread: n}))
					box = mail.NewMailbox(y.tree, recipient)
					dir, err := y.folder()
					must(b, err)
					replace = bench.Plain(dir, y.data)
				}
				m := Message(recipient, i)
				took := func(into *[]float64, call func() error) {
					ms, err := times(1, call)
					must(b, err)
					*into = append(*into, ms)
				}
				took(&own, func() error { return box.MarkRead(b.Context(), mail.NameAt(m.Timestamp, m.From)) })
				took(&bare, func() error { return replace(0) })
			}
			b.ReportMetric(median(own), "own-ms")
			b.ReportMetric(median(bare), "plain-ms")
			b.ReportMetric(median(own)/median(bare), "x-plain")
		})
	}
}

// BenchmarkAll: a look of a running role at all beads of which one changed,
// beside that of a new process.
func BenchmarkAll(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			y := testYard(b)
			must(b, Fill(b.Context(), y.tree, Size{Open: n}))
			w, err := state.NewWatcher(y.tree)
			must(b, err)
			defer w.Close()
			followed := bead.NewStore(y.tree, nil)
			followed.Follow(w)
			all := func(s bead.Store) float64 {
				ms, err := times(1, func() error { _, _, err := s.All(); return err })
				must(b, err)
				return ms
			}
			all(followed)
			var changed, same, fresh []float64
			other := bead.NewStore(y.tree, nil)
			for b.Loop() {
				_, err := other.Update(b.Context(), "me-00000", func(v *bead.Bead) error { v.Gen++; return nil })
				must(b, err)
				changed, same = append(changed, all(followed)), append(same, all(followed))
				fresh = append(fresh, all(bead.NewStore(y.tree, nil)))
			}
			b.ReportMetric(median(changed), "one-changed-ms")
			b.ReportMetric(median(same), "none-changed-ms")
			b.ReportMetric(median(fresh), "fresh-ms")
			b.ReportMetric(median(fresh)/median(changed), "x-fresh")
		})
	}
}

// BenchmarkStatus: a new process's look at a rig in which much has landed.
func BenchmarkStatus(b *testing.B) {
	for _, size := range []Size{{Agents: 10, Landed: 100}, {Agents: 100, Landed: 1000}, {Agents: 1000, Landed: 10_000, To: "polecat-00000", Archived: 100_000}} {
		if size.Archived > 0 && os.Getenv("CHIPSET_BENCH_LARGE") == "" {
			size.Archived = 1000
		}
		b.Run(fmt.Sprintf("%d-agents-%d-beads", size.Agents, size.Landed), func(b *testing.B) {
			dir := b.TempDir()
			_, err := git.Init(b.Context(), dir, "main")
			must(b, err)
			tree, err := state.Create(filepath.Join(dir, rig.DirName))
			must(b, err)
			must(b, Fill(b.Context(), tree, size))
			look := func() float64 {
				ms, err := times(1, func() error {
					r, err := rig.OpenState(b.Context(), dir, time.Now)
					if err != nil {
						return err
					}
					_, err = view.GetStatus(b.Context(), r)
					return err
				})
				must(b, err)
				return ms
			}
			first := look()
			var again []float64
			for b.Loop() {
				again = append(again, look())
			}
			b.ReportMetric(first, "first-ms")
			b.ReportMetric(median(again), "again-ms")
		})
	}
}

// BenchmarkWake: each iteration is one message to a recipient that sleeps.
func BenchmarkWake(b *testing.B) {
	y := testYard(b)
	row, err := y.wakeHere(b.Context(), 200)
	must(b, err)
	for b.Loop() { // the row is of 200 messages
	}
	b.ReportMetric(row.P50, "p50-ms")
	b.ReportMetric(row.P99, "p99-ms")
	b.ReportMetric(row.Whole50, "whole-p50-ms")
	b.ReportMetric(row.Send, "send-ms")
}
