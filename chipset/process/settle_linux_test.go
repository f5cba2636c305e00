package process

import (
	"os"
	"testing"

	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/statetest/traced"
)

// A final record vouches for what the command left only where that was asked for, and
// only when a supervisor has come so far.
func TestSettledJobs(t *testing.T) {
	b := newBench(t)
	spec := b.spec("echo content > written; exit 3")
	if exit := b.run(spec); exit.Settled {
		t.Errorf("nobody asked: %+v", exit)
	}
	spec.Settle = true
	if exit := b.run(spec); !exit.Settled || !exit.Done || exit.Code != 3 {
		t.Errorf("exit %+v", exit)
	}
	record, found, err := ReadExit(spec.Record)
	if err != nil || !found || !record.Settled {
		t.Errorf("the record says %+v, %t, %v", record, found, err)
	}
}

const settleEnv = "PROCESS_TEST_SETTLE"

// What the command left is on the disk before the record says so.
func TestSettleReachesTheDiskBeforeTheRecord(t *testing.T) {
	got := traced.Calls(t, "TestSettleChild", settleEnv+"="+t.TempDir())
	if got["ended"] != "syncfs fsync fsync rename fsync" {
		t.Errorf("the end of a job makes the calls %q", got["ended"])
	}
}

// TestSettleChild is the child of the test above.
func TestSettleChild(t *testing.T) {
	dir := os.Getenv(settleEnv)
	if dir == "" {
		t.Skip("it is for a child of another test")
	}
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	say := t.TempDir()
	s := supervisor{spec: Spec{ID: "job", Dir: dir, Record: dir + "/record"}, dir: folder}
	if err := traced.Say(say, "ended"); err != nil {
		t.Fatal(err)
	}
	s.finish()
	if err := traced.Say(say, "over"); err != nil {
		t.Fatal(err)
	}
	if !s.exit.Settled || !s.exit.Done {
		t.Errorf("%+v", s.exit)
	}
}

// A job that is started again, and whose command is not executed, still vouches for what its earlier run left. Where a signal ended its
// box, that is how it ended: nothing is wrong with the command.
func TestSecondRunIsNotExecuted(t *testing.T) {
	b := newBench(t)
	run := func(change func(*Spec)) Exit {
		spec := b.boxed("echo content > written")
		spec.Settle = true
		change(&spec)
		b.run(spec)
		record, found, err := ReadExit(spec.Record)
		if err != nil || !found || !record.Done || !record.Settled {
			t.Errorf("the record says %+v, %t, %v", record, found, err)
		}
		return record
	}
	run(func(*Spec) {})
	if exit := run(func(s *Spec) { s.Argv = []string{"/nowhere/client"} }); !exit.NotFound || exit.Fault.Kind != fault.ClientMissing {
		t.Errorf("a missing command: %+v", exit)
	}
	if exit := run(func(s *Spec) { s.Env = append(s.Env, boxEndsEnv+"=1") }); exit.Signal != "SIGTERM" || exit.Code != 143 || !exit.Fault.IsZero() || exit.NotExecutable {
		t.Errorf("a box that was ended: %+v", exit)
	}
}

// What the record of an earlier run of a job vouches for is not true any more when the next begins.
func TestSecondRunVoidsTheRecord(t *testing.T) {
	b := newBench(t)
	spec := b.spec("exit 0")
	spec.Settle = true
	if exit := b.run(spec); !exit.Settled || !exit.Unbroken(spec.Dir) {
		t.Fatalf("exit %+v", exit)
	}
	s := supervisor{spec: spec, exit: Exit{ID: spec.ID}}
	if err := s.voidRecord(); err != nil {
		t.Fatal(err)
	}
	if record, found, err := ReadExit(spec.Record); err != nil || !found || record.Done || record.Settled {
		t.Errorf("the record says %+v, %t, %v", record, found, err)
	}
	s.spec.Record += "-none"
	if err := s.voidRecord(); err != nil {
		t.Fatal(err)
	}
	if _, found, err := ReadExit(s.spec.Record); found || err != nil {
		t.Errorf("a first run has a record: %v", err)
	}
}
