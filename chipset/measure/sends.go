package measure

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bench"
)

// recipient gets the measured mail.
const recipient state.AgentID = "recipient"

// yard is a scratch tree to measure on.
type yard struct {
	scratch string
	tree    *state.Tree
	sender  *mail.Sender
	data    []byte
	series  int
}

func newYard(ctx context.Context, scratch string, clock state.Clock) (*yard, error) {
	tree, err := state.Create(filepath.Join(scratch, ".chipset"))
	if err != nil {
		return nil, err
	}
	agents := agent.NewStore(tree, nil)
	for _, id := range []state.AgentID{recipient, "measurer"} {
		if _, err := agents.Register(ctx, id, agent.Polecat, "measured", nil, clock.Now()); err != nil {
			return nil, err
		}
	}
	m := Message(recipient, 0)
	data, err := m.Encode(mail.MaxSize)
	return &yard{scratch: scratch, tree: tree, sender: mail.NewSender(tree, agents, clock, 0), data: data}, err
}

// folder makes a new folder for a series.
func (y *yard) folder() (string, error) {
	y.series++
	return bench.Folder(y.scratch, fmt.Sprintf("plain-%d", y.series))
}

func (y *yard) plain(senders, total int) (float64, error) {
	dir, err := y.folder()
	if err != nil {
		return 0, err
	}
	return bench.Rate(senders, total, bench.Plain(dir, y.data))
}

func (y *yard) cheapest(total int) (float64, error) {
	dir, err := y.folder()
	if err != nil {
		return 0, err
	}
	send, closer, err := bench.Cheapest(dir, y.data)
	if err != nil {
		return 0, err
	}
	defer closer() //nolint:errcheck // only synced through
	return bench.Rate(1, total, send)
}

func (y *yard) own(senders, total int) (float64, error) {
	dir := y.fresh()
	if err := y.tree.MkdirAll(dir); err != nil {
		return 0, err
	}
	return bench.Rate(senders, total, bench.Own(y.tree, dir, y.data))
}

func (y *yard) batch(total int) (float64, error) {
	dir := y.fresh()
	if err := y.tree.MkdirAll(dir); err != nil {
		return 0, err
	}
	return bench.OwnBatch(y.tree, dir, y.data, total)
}

func (y *yard) fresh() state.Path {
	y.series++
	return mail.Dir.Join(fmt.Sprintf("own-%d", y.series))
}

// SendRow is the number of messages of 500 bytes that become durable in a second.
type SendRow struct {
	// Senders at once in each process; 0 is one batch.
	Senders int `json:"senders"`
	// Processes is how many processes send, 0 for this one alone.
	Processes int `json:"processes,omitempty"`
	// Dirty is true if other data is written at the same time, without syncing it.
	Dirty bool `json:"dirty_page_cache,omitempty"`
	// Plain is the plain protocol, measured before and after the others in the same run.
	Plain float64 `json:"plain_per_second"`
	// Cheapest is a bare loop of the cheapest system calls, only for one sender.
	Cheapest float64 `json:"cheapest_per_second,omitempty"`
	Own      float64 `json:"own_per_second"`
	// Ratio is Own to Plain, OfCheapest Own to Cheapest: medians of the rounds'
	// ratios, each between neighbours in time.
	Ratio      float64 `json:"ratio"`
	OfCheapest float64 `json:"of_cheapest,omitempty"`
}

// sends measures a number of senders, in rounds.
func (y *yard) sends(ctx context.Context, senders, total, rounds int) (SendRow, error) {
	row := SendRow{Senders: senders}
	var plain, cheapest, own, ratio, of []float64
	for range rounds {
		if err := ctx.Err(); err != nil {
			return row, err
		}
		before, err := y.plain(max(senders, 1), total)
		if err != nil {
			return row, err
		}
		var bare, mine float64
		if senders == 1 {
			if bare, err = y.cheapest(total); err != nil {
				return row, err
			}
		}
		if senders == 0 {
			mine, err = y.batch(total)
		} else {
			mine, err = y.own(senders, total)
		}
		if err != nil {
			return row, err
		}
		after, err := y.plain(max(senders, 1), total)
		if err != nil {
			return row, err
		}
		base := (before + after) / 2
		plain, own, ratio = append(plain, base), append(own, mine), append(ratio, mine/base)
		if senders == 1 {
			cheapest, of = append(cheapest, bare), append(of, mine/bare)
		}
	}
	row.Plain, row.Own, row.Ratio = median(plain), median(own), median(ratio)
	if senders == 1 {
		row.Cheapest, row.OfCheapest = median(cheapest), median(of)
	}
	return row, nil
}

func median(of []float64) float64 { return quantile(of, 0.5) }

// quantile returns the value below which a share of all values is, 0 if there are none.
func quantile(of []float64, share float64) float64 {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}
