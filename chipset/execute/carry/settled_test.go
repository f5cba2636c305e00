package carry

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/retire"
)

// Finished work lands only when somebody has seen to it that it is on the disk: the
// supervisor of its worker, or, where there was none, whoever published the end.
func TestWorkLandsOnlyWhenItIsSettled(t *testing.T) {
	tests := []struct {
		name string
		// before and after are the exit record when the end is published, and when it is
		// finished; nil is none.
		before, after *process.Exit
		lands         bool
	}{
		{"nobody supervised it", nil, nil, true},
		{"the worker runs, then its supervisor settles", &process.Exit{}, &process.Exit{Done: true, Settled: true}, true},
		{"settled before it was published", &process.Exit{Done: true, Settled: true}, nil, true},
		{"the machine stopped before the worker ended", &process.Exit{}, &process.Exit{}, false},
		{"the record is gone after the crash", &process.Exit{}, nil, false},
		{"the disk failed the sync", &process.Exit{Done: true}, &process.Exit{Done: true}, false},
		{"settled, but not final", &process.Exit{}, &process.Exit{Settled: true}, false},
		{"of another session", &process.Exit{}, &process.Exit{ID: "ses-other", Done: true, Settled: true}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := newAttempt(t, nil)
			a.write("new.txt", "the work\n")
			a.exitRecord(test.before)
			rec := a.publish(retire.Done, "")
			a.exitRecord(test.after)
			rec, err := Finish(t.Context(), RetireDeps{Rig: a.rig}, rec)
			a.must(err)
			b, err := a.rig.Beads.Get(string(a.bead))
			a.must(err)
			if test.lands {
				if rec.Outcome != retire.Done || rec.Lost || b.Status != bead.Done || a.git(a.rig.Dir, "cat-file", "blob", rec.Head+":new.txt") != "the work" {
					t.Errorf("%+v; the bead is %s", rec, b.Status)
				}
				return
			}
			if rec.Outcome != retire.Fail || !rec.Lost || rec.Reason == "" || b.Status != bead.Failed || rec.MR != "" {
				t.Errorf("%+v; the bead is %s", rec, b.Status)
			}
			if rec.Salvage == "" || a.git(a.rig.Dir, "cat-file", "blob", rec.Salvage+":new.txt") != "the work" {
				t.Errorf("what was left is not saved: %+v", rec)
			}
		})
	}
}

// An exit record that can't be read says nothing of what is on the disk: the work is saved, and done again.
func TestExitRecordThatCantBeRead(t *testing.T) {
	a := newAttempt(t, nil)
	a.write("new.txt", "the work\n")
	a.exitRecord(&process.Exit{Done: true, Settled: true})
	a.must(os.WriteFile(a.rig.Tree.Abs(rig.ExitRecord("ses-one")), []byte("{torn"), 0o600))
	rec := a.publish(retire.Done, "")
	rec, err := Finish(t.Context(), RetireDeps{Rig: a.rig}, rec)
	if err != nil || rec.Outcome != retire.Fail || !rec.Lost || rec.Salvage == "" || a.git(a.rig.Dir, "cat-file", "blob", rec.Salvage+":new.txt") != "the work" {
		t.Errorf("%+v, %v", rec, err)
	}
}

// exitRecord leaves the exit record of the hook's session as it is given.
func (a *attempt) exitRecord(exit *process.Exit) {
	a.t.Helper()
	h, err := a.rig.Hooks.Get(string(alpha))
	a.must(err)
	path := a.rig.Tree.Abs(rig.ExitRecord(h.WorkItem.Session))
	if exit == nil {
		_ = os.Remove(path)
		return
	}
	record := *exit
	if record.ID == "" {
		record.ID = string(h.WorkItem.Session)
	}
	data, err := json.Marshal(record)
	a.must(err)
	a.must(os.MkdirAll(filepath.Dir(path), 0o700))
	a.must(os.WriteFile(path, data, 0o600))
}
