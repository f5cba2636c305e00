package state

import "time"

// pace learns whether files are published faster in groups or one by one, which
// depends on what else is being written to the disk. The slower way is tried again
// after a pause, which doubles each time that it is slower again.
type pace struct {
	alone  bool          // which way pays; groups, before anything is known
	cost   time.Duration // of a file in that way, lately
	trying bool          // the other way is being tried
	files  int           // in the trial
	took   time.Duration // for them
	pause  time.Duration
	next   time.Time // when the next trial may begin
}

const (
	// trialFiles are enough to judge by.
	trialFiles = 64
	pauseFirst = 250 * time.Millisecond
	pauseMost  = 10 * time.Second
)

// together reports whether a file is to go in a group.
func (p *pace) together(now time.Time) bool {
	switch {
	case p.next.IsZero():
		p.rest(now)
	case !p.trying && !now.Before(p.next):
		p.trying, p.files, p.took = true, 0, 0
	}
	return p.alone == p.trying
}

// note learns what each of some files cost, where the time that they took is
// divided by how many were under way. Stragglers from before a change of the way
// are not counted.
func (p *pace) note(together bool, each time.Duration, files int, now time.Time) {
	switch {
	case together != (p.alone == p.trying):
	case !p.trying:
		p.cost = smooth(p.cost, each)
	default:
		p.files += files
		p.took += each * time.Duration(files)
		p.judge(now)
	}
}

// judge ends the trial when its outcome is known.
func (p *pace) judge(now time.Time) {
	par := p.cost * trialFiles
	if p.files < trialFiles && p.took <= par {
		return
	}
	p.trying = false
	if each := p.took / time.Duration(p.files); p.files >= trialFiles && each < p.cost {
		p.alone, p.cost, p.pause = !p.alone, each, 0
	}
	p.rest(now)
}

func (p *pace) rest(now time.Time) {
	p.pause = min(max(2*p.pause, pauseFirst), pauseMost)
	p.next = now.Add(p.pause)
}

func smooth(was, is time.Duration) time.Duration {
	if was == 0 {
		return is
	}
	return was + (is-was)/16
}
