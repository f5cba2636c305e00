package state

import (
	"testing"
	"time"
)

// disk of a pace's test: what a file costs in a group and by itself.
type costs struct{ grouped, alone time.Duration }

// play publishes files one at a time for as long as it says, and returns how many
// went each way.
func (c costs) play(p *pace, now *time.Time, long time.Duration) (grouped, alone int) {
	for end := now.Add(long); now.Before(end); {
		together, each := p.together(*now), c.alone
		if together {
			each, grouped = c.grouped, grouped+1
		} else {
			alone++
		}
		*now = now.Add(each)
		p.note(together, each, 1, *now)
	}
	return grouped, alone
}

func TestPaceTakesTheWayThatPays(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name string
		costs
		grouped bool
	}{
		{"groups pay", costs{ms / 4, ms / 2}, true},
		{"groups do not pay", costs{ms / 2, ms / 4}, false},
		{"groups are a catastrophe", costs{100 * ms, ms / 4}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var p pace
			now := time.Unix(1, 0)
			tt.play(&p, &now, 10*time.Second)
			grouped, alone := tt.play(&p, &now, time.Minute)
			took := time.Duration(grouped)*tt.costs.grouped + time.Duration(alone)*tt.alone
			wasted := time.Duration(alone) * tt.alone
			if !tt.grouped {
				wasted = time.Duration(grouped) * tt.costs.grouped
			}
			if wasted == 0 || wasted > took/50 {
				t.Errorf("%v of %v for the way that does not pay, want some, and at most a fiftieth", wasted, took)
			}
			// The disk changes, and so does the way.
			turned := costs{tt.alone, tt.costs.grouped}
			turned.play(&p, &now, 2*pauseMost)
			if p.alone != tt.grouped {
				t.Error("it did not notice that the other way pays now")
			}
		})
	}
}

func TestPaceLeavesStragglersOutOfTheTrial(t *testing.T) {
	var p pace
	now := time.Unix(1, 0)
	p.together(now)
	p.note(true, time.Millisecond, 1, now)
	now = now.Add(pauseFirst)
	if p.together(now) {
		t.Fatal("no trial of files by themselves")
	}
	p.note(true, time.Microsecond, 1, now) // began before the trial
	if p.files != 0 || p.cost != time.Millisecond {
		t.Errorf("a straggler counts: %d files in the trial, cost %v", p.files, p.cost)
	}
}
