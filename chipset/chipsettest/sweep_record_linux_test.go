package chipsettest_test

import (
	"os"
	"path/filepath"
	"time"

	"github.com/gastown-chipset/chipset/state/statetest/powercut"
)

// Most of a state is its judgement: doctor, the act again, doctor. So each disk is judged once, by what is on it and
// what had been acknowledged; and of a run that meets a fault every cut is judged that may come then. Kills
// need no run of their own: what a power cut leaves at the moment of a kill is seen in a run without any.

// judgement is what a judgement depends on.
type judgement struct {
	disk  powercut.Digest
	acked int
}

// moment is a disk as a cut left it.
type moment struct {
	crash
	disk *powercut.Tree
	// printed is how much of its output the act had written.
	printed int64
	at      int // operations until then
	when    time.Time
}

// record plays an act once, without a fault, and judges what power cuts at the moments of the kills would have left.
func (b *bench) record(s *subject, all []take, n *tally) {
	b.t.Helper()
	if len(all) == 0 {
		return
	}
	wanted := map[powercut.Fault][]cutting{}
	for _, p := range all {
		wanted[p.fault] = append(wanted[p.fault], p.cuts...)
	}
	var seen []moment
	known := map[judgement]bool{}
	keep := func(m moment, take func(powercut.Mode) *powercut.Tree) {
		n.states++
		n.cuts++
		m.disk, m.when = take(m.mode), time.Now()
		// What was printed may acknowledge something, and then the same disk is judged by another measure.
		if key := (judgement{m.disk.Digest(), int(m.printed)}); !known[key] {
			known[key] = true
			seen = append(seen, m)
		}
	}
	b.insert(s.image)
	printed := func() int64 {
		info, err := os.Stat(filepath.Join(b.out, "out"))
		if err != nil {
			b.t.Error(err)
			return 0
		}
		return info.Size()
	}
	o := b.observe(s.call, func(op int, after bool, disk *powercut.Tree) {
		fault := powercut.Fault{Kind: powercut.KillBefore, At: op}
		if after {
			fault.Kind = powercut.KillAfter
		}
		for _, c := range wanted[fault] {
			keep(moment{crash: crash{act: s.name, cutting: c, fault: fault}, printed: printed(), at: op},
				func(mode powercut.Mode) *powercut.Tree { return disk.Cut(mode, c.rnd()) })
		}
	})
	b.fs.Stop()
	b.endAll()
	for _, c := range wanted[powercut.Fault{}] {
		keep(moment{crash: crash{act: s.name, cutting: c}, printed: int64(len(o.out)), at: len(o.ops)},
			func(mode powercut.Mode) *powercut.Tree { return b.fs.Left(mode, c.rnd()) })
	}
	for _, m := range seen {
		then := o
		then.out, then.ops = o.out[:m.printed], o.ops[:m.at]
		if then.hit = m.fault.Kind != powercut.None; then.hit {
			then.code, then.errs = -1, ""
		}
		n.met(m.fault, then)
		m.disk.Shift(time.Since(m.when)) // what is young stays young until it is judged
		b.settle(s, m.crash, then, m.disk, n)
	}
}

// play plays an act with a fault, and judges what each of the cuts leaves.
func (b *bench) play(s *subject, p take, n *tally) {
	b.t.Helper()
	b.insert(s.image)
	o := b.run(s.call, p.fault)
	n.met(p.fault, o)
	b.fs.Stop()
	b.endAll()
	disks, when := make([]*powercut.Tree, len(p.cuts)), time.Now()
	for i, c := range p.cuts {
		disks[i] = b.fs.Left(c.mode, c.rnd())
		n.states++
		n.cuts++
	}
	for i, c := range p.cuts {
		disks[i].Shift(time.Since(when))
		b.settle(s, p.crash(s.name, c), o, disks[i], n)
	}
}

// settle judges a disk that a cut left after an outcome, unless it was judged.
func (b *bench) settle(s *subject, c crash, o outcome, disk *powercut.Tree, n *tally) {
	b.t.Helper()
	tr := &trial{bench: b, subject: s, crash: c, tally: n}
	tr.tell("act", c.fault, o)
	tr.ack(o)
	key := judgement{disk.Digest(), tr.acked}
	if c.second == nil && !tr.failed && s.judged[key] {
		return
	}
	s.judged[key] = true
	n.different++
	tr.say("the power is cut after the act: %s", c.mode)
	if c.second != nil {
		b.insert(disk)
	} else {
		b.unpack(disk)
	}
	tr.judge()
}
