package measure

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

// WakeRow is the time until a sleeping recipient has a message, in milliseconds.
type WakeRow struct {
	Between string `json:"between"`
	// From the acknowledgement on: 0 if the recipient was faster, because a name is visible
	// a moment before it is durable.
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	Worst float64 `json:"worst_ms"`
	// From the start of the send on; Send is how long the send itself takes.
	Whole50 float64 `json:"whole_p50_ms"`
	Whole99 float64 `json:"whole_p99_ms"`
	Send    float64 `json:"send_p50_ms"`
}

// wakePause lets both sides fall asleep between two messages.
const wakePause = 10 * time.Millisecond

// Await follows the mailbox of recipient in the tree at root, and calls got with
// each message as soon as it has read it, until ctx ends.
func Await(ctx context.Context, root string, ready func(), got func(mail.Name)) error {
	tree, err := state.Open(root)
	if err != nil {
		return err
	}
	w, err := state.NewWatcher(tree)
	if err != nil {
		return err
	}
	defer w.Close()
	box := mail.NewMailbox(tree, recipient)
	box.Follow(w)
	news, err := w.Subscribe(box.Dir())
	if err != nil {
		return err
	}
	if _, _, err := box.Unread(); err != nil {
		return err
	}
	ready()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-news:
		}
		unread, _, err := box.Unread()
		if err != nil {
			return err
		}
		for i := range unread {
			got(unread[i].Name)
			// The next look finds only the next message.
			if err := box.MarkRead(ctx, unread[i].Name); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// arrival is when a message was read, on the machine's monotonic clock, which all
// processes share.
type arrival struct {
	name mail.Name
	at   int64
}

func machineTime() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // can't fail with this clock
	return ts.Nano()
}

// wakeHere measures with sender and recipient in one process.
func (y *yard) wakeHere(ctx context.Context, n int) (WakeRow, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready, arrived, ended := make(chan struct{}), make(chan arrival), make(chan error, 1)
	go func() {
		ended <- Await(ctx, y.tree.Root(), func() { close(ready) }, func(name mail.Name) {
			at := machineTime()
			select {
			case arrived <- arrival{name, at}:
			case <-ctx.Done():
			}
		})
	}()
	select {
	case <-ready:
	case err := <-ended:
		return WakeRow{}, err
	}
	return y.wake(ctx, "agents of one process", n, arrived, ended)
}

// wakeThere measures with the recipient in another process, in which command runs Echo.
func (y *yard) wakeThere(ctx context.Context, n int, command Command) (WakeRow, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := command(ctx, "--echo", y.tree.Root())
	out, err := cmd.StdoutPipe()
	if err != nil {
		return WakeRow{}, err
	}
	if err := cmd.Start(); err != nil {
		return WakeRow{}, err
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		return WakeRow{}, fmt.Errorf("the recipient's process ended: %w", cmd.Wait())
	}
	arrived, ended := make(chan arrival), make(chan error, 1)
	go func() {
		for lines.Scan() {
			at, name, _ := strings.Cut(lines.Text(), " ")
			if ns, err := strconv.ParseInt(at, 10, 64); err == nil {
				select {
				case arrived <- arrival{mail.Name(name), ns}:
				case <-ctx.Done():
				}
			}
		}
		ended <- fmt.Errorf("the recipient's process ended: %w", cmd.Wait())
	}()
	row, err := y.wake(ctx, "processes", n, arrived, ended)
	cancel()
	return row, err
}

// Echo is the recipient in a process of its own. It prints a line when it is ready, and one
// with the machine's time for each message.
func Echo(ctx context.Context, root string, out io.Writer) error {
	return Await(ctx, root, func() { _, _ = fmt.Fprintln(out, "ready") }, func(name mail.Name) {
		_, _ = fmt.Fprintln(out, machineTime(), name)
	})
}

func (y *yard) wake(ctx context.Context, between string, n int, arrived <-chan arrival, ended <-chan error) (WakeRow, error) {
	row := WakeRow{Between: between}
	var took, whole, sends []float64
	since := func(then, at int64) float64 { return milliseconds(time.Duration(at - then)) }
	for range n {
		select {
		case <-ctx.Done():
			return row, ctx.Err()
		case <-time.After(wakePause):
		}
		began := machineTime()
		name, err := y.sender.Send(ctx, mail.Message{From: "measurer", To: recipient, Type: mail.Coordination, Subject: "wake up"})
		acknowledged := machineTime()
		if err != nil {
			return row, err
		}
		for waiting := true; waiting; {
			select {
			case a := <-arrived:
				if waiting = a.name != name; !waiting {
					took = append(took, max(0, since(acknowledged, a.at)))
					whole, sends = append(whole, since(began, a.at)), append(sends, since(began, acknowledged))
				}
			case err := <-ended:
				return row, err
			case <-ctx.Done():
				return row, ctx.Err()
			}
		}
	}
	row.P50, row.P99, row.Worst = median(took), quantile(took, 0.99), quantile(took, 1)
	row.Whole50, row.Whole99, row.Send = median(whole), quantile(whole, 0.99), median(sends)
	return row, nil
}
