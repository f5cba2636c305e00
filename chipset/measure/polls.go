package measure

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

// PollRow is the time to find 10 unread messages, in milliseconds.
type PollRow struct {
	Messages int `json:"messages"`
	// Naive reads and parses every file, Running is a fetch of a running role, First a
	// command without a cache, Again the next command.
	Naive   float64 `json:"naive_ms"`
	Running float64 `json:"running_ms"`
	First   float64 `json:"first_ms"`
	Again   float64 `json:"again_ms"`
}

// pollUnread is the number of unread messages in a mailbox.
const pollUnread = 10

// poll measures a mailbox of n messages.
func (y *yard) poll(ctx context.Context, n, rounds int) (PollRow, error) {
	row := PollRow{Messages: n}
	y.series++
	owner := state.AgentID("reader-" + strings.Repeat("x", y.series))
	if err := Fill(ctx, y.tree, Size{To: owner, Messages: n, Unread: pollUnread}); err != nil {
		return row, err
	}
	w, err := state.NewWatcher(y.tree)
	if err != nil {
		return row, err
	}
	defer w.Close()
	running := mail.NewMailbox(y.tree, owner)
	running.Follow(w)
	look := func(box *mail.Mailbox) error {
		_, _, err := box.Unread()
		return err
	}
	if row.First, err = times(1, func() error { return look(mail.NewMailbox(y.tree, owner)) }); err != nil {
		return row, err
	}
	// Files that changed a moment ago are read again: wait until they are old enough.
	select {
	case <-ctx.Done():
		return row, ctx.Err()
	case <-time.After(200 * time.Millisecond):
	}
	for range 2 {
		if err := look(running); err != nil {
			return row, err
		}
		if err := look(mail.NewMailbox(y.tree, owner)); err != nil {
			return row, err
		}
	}
	if row.Naive, err = times(min(rounds, 3), func() error { return naive(y.tree.Abs(running.Dir())) }); err != nil {
		return row, err
	}
	if row.Again, err = times(rounds, func() error { return look(mail.NewMailbox(y.tree, owner)) }); err != nil {
		return row, err
	}
	row.Running, err = times(20*rounds, func() error { return look(running) })
	return row, err
}

// naive is a poll as it is usually written: read and parse all files, keep the unread.
func naive(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var unread []mail.Message
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		var m struct {
			Read          bool
			From, To      string
			Subject, Body string
		}
		if err := json.Unmarshal(data, &m); err != nil {
			return err
		}
		if !m.Read {
			unread = append(unread, mail.Message{Subject: m.Subject, Body: m.Body})
		}
	}
	if len(unread) < pollUnread {
		return state.ErrNotFound
	}
	return nil
}

// times returns the median duration of some calls, in milliseconds.
func times(n int, call func() error) (float64, error) {
	var took []float64
	for range n {
		began := time.Now() //nolint:forbidigo // a measurement
		if err := call(); err != nil {
			return 0, err
		}
		took = append(took, milliseconds(time.Since(began)))
	}
	return median(took), nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
