package measure

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bench"
)

// dirtied is the size of the file that is overwritten again and again during a series,
// and dirtyPause the pause after each part, so that the page cache is never clean but the
// disk is not saturated.
const (
	dirtied    = 32 << 20
	dirtyPart  = 256 << 10
	dirtyPause = 5 * time.Millisecond
)

// dirty keeps the page cache of the scratch folder's file system dirty until stop, as
// builds and tests do: it never syncs.
func (y *yard) dirty() (stop func() error, err error) {
	f, err := os.OpenFile(filepath.Join(y.scratch, "dirty"), os.O_WRONLY|os.O_CREATE, 0o644) //nolint:forbidigo // not state: what others write
	if err != nil {
		return nil, err
	}
	quit, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		part := make([]byte, dirtyPart)
		for at := int64(0); ; at = (at + dirtyPart) % dirtied {
			select {
			case <-quit:
				ended <- f.Close()
				return
			case <-time.After(dirtyPause):
			}
			if _, err := f.WriteAt(part, at); err != nil {
				ended <- errors.Join(err, f.Close())
				return
			}
		}
	}()
	return func() error { close(quit); return <-ended }, nil
}

// dirtySends is sends while others write and do not sync.
func (y *yard) dirtySends(ctx context.Context, senders, total, rounds int) (SendRow, error) {
	stop, err := y.dirty()
	if err != nil {
		return SendRow{}, err
	}
	row, err := y.sends(ctx, senders, total, rounds)
	row.Dirty = true
	return row, errors.Join(err, stop())
}

// Command starts a process of this program for a measurement, with arguments.
type Command func(ctx context.Context, args ...string) *exec.Cmd

// crowd measures several processes with one sender each.
func (y *yard) crowd(ctx context.Context, processes, total, rounds int, command Command) (SendRow, error) {
	row := SendRow{Senders: 1, Processes: processes}
	var plain, own, ratio []float64
	for range rounds {
		var rates [3]float64
		for i, mine := range []bool{false, true, false} {
			var err error
			if rates[i], err = y.crowdOnce(ctx, processes, total, mine, command); err != nil {
				return row, err
			}
		}
		base := (rates[0] + rates[2]) / 2
		plain, own, ratio = append(plain, base), append(own, rates[1]), append(ratio, rates[1]/base)
	}
	row.Plain, row.Own, row.Ratio = median(plain), median(own), median(ratio)
	return row, nil
}

func (y *yard) crowdOnce(ctx context.Context, processes, total int, own bool, command Command) (rate float64, err error) {
	how, dir := "plain", ""
	if own {
		to := y.fresh()
		how, dir, err = y.tree.Root(), string(to), y.tree.MkdirAll(to)
	} else {
		dir, err = y.folder()
	}
	if err != nil {
		return 0, err
	}
	var all []*child
	defer func() {
		for _, c := range all {
			err = errors.Join(err, c.end())
		}
	}()
	for i := range processes {
		c, err := begin(command(ctx, "--sender", how, dir, fmt.Sprint(i), fmt.Sprint(total/processes)))
		if err != nil {
			return 0, err
		}
		all = append(all, c)
	}
	began := time.Now() //nolint:forbidigo // a measurement
	for _, c := range all {
		if _, err := fmt.Fprintln(c.in, "go"); err != nil {
			return 0, err
		}
	}
	var wg sync.WaitGroup
	errs := make([]error, len(all))
	for i, c := range all {
		wg.Go(func() { errs[i] = c.wait("done") })
	}
	wg.Wait()
	return float64(total/processes*processes) / time.Since(began).Seconds(), errors.Join(errs...)
}

// child is the process of a sender.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// begin starts a sender, and returns when it is ready to send.
func begin(cmd *exec.Cmd) (*child, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, in: in, out: bufio.NewScanner(out)}
	if err := c.wait("ready"); err != nil {
		return nil, errors.Join(err, c.end())
	}
	return c, nil
}

func (c *child) wait(word string) error {
	if c.out.Scan() && c.out.Text() == word {
		return nil
	}
	return fmt.Errorf("a sender's process said %q and not %q", c.out.Text(), word)
}

func (c *child) end() error {
	_ = c.in.Close() // this ends a sender that is still waiting
	return c.cmd.Wait()
}

// Sender is a sender in a process of its own. how is "plain", or the root of the tree. It
// prints "ready", waits for a line on in, sends n messages into dir, whose names contain
// number, and prints "done".
func Sender(how, dir, number string, n int, in io.Reader, out io.Writer) error {
	m := Message(recipient, 0)
	data, err := m.Encode(1 << 16)
	if err != nil {
		return err
	}
	var send bench.Send
	if how == "plain" {
		send = bench.PlainNamed(dir, number+"-", data)
	} else {
		tree, err := state.Open(how)
		if err != nil {
			return err
		}
		if err := tree.MkdirAll(state.Path(dir)); err != nil {
			return err
		}
		send = bench.OwnNamed(tree, state.Path(dir), number+"-", data)
	}
	_, _ = fmt.Fprintln(out, "ready") // if it fails, no line comes either
	if !bufio.NewScanner(in).Scan() {
		return nil // the measurement was ended
	}
	for i := range n {
		if err := send(i); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(out, "done")
	return err
}
