package process

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// host is a bench's own.
func (b *bench) host() *Host {
	self, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	h := NewHost(self)
	b.t.Cleanup(h.Close)
	return h
}

func (b *bench) startOn(h *Host, spec Spec) *Job {
	b.t.Helper()
	job, err := h.Start(b.t.Context(), spec)
	if err != nil {
		b.t.Fatal(err)
	}
	return job
}

// One supervisor runs job after job, and each finds nothing of the one before.
func TestHostKeepsItsSupervisor(t *testing.T) {
	b := newBench(t)
	h := b.host()
	supervisors := map[int]bool{}
	for i, c := range []struct {
		script string
		want   Exit
	}{
		{"true", Exit{}},
		{"exit 3", Exit{Code: 3}},
		{"sleep 1000 & exit 0", Exit{}}, // what it leaves behind is ended first
		{"kill -9 $$", Exit{Code: 137, Signal: "SIGKILL"}},
		{"no-such-command-at-all", Exit{Code: 127, NotFound: true}},
	} {
		spec := b.spec(c.script)
		job := b.startOn(h, spec)
		exit := b.wait(job)
		if exit.Code != c.want.Code || exit.Signal != c.want.Signal || exit.NotFound != c.want.NotFound || !exit.Done || exit.ID != spec.ID {
			t.Errorf("%d: %+v, want %+v", i, exit, c.want)
		}
		supervisors[exit.SupervisorPID] = true
		if n := len(descendants(exit.SupervisorPID)); n != 0 {
			t.Errorf("%d: %d processes are left", i, n)
		}
		job.Stop(0) // too late, and no business of the next one
	}
	if len(supervisors) != 1 {
		t.Errorf("%d supervisors", len(supervisors))
	}
}

func TestHostTakesAnotherSupervisorWhenItMust(t *testing.T) {
	b := newBench(t)
	h := b.host()
	first := b.wait(b.startOn(h, b.spec("true"))).SupervisorPID
	if err := unix.Kill(first, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.until("the kept supervisor is gone", func() bool { p, there := readProcess(first); return !there || p.dead })
	second := b.wait(b.startOn(h, b.spec("true"))).SupervisorPID
	// One that was told to end while it had a job ends after it.
	job := b.startOn(h, b.spec("echo up; exec sleep 1000"))
	b.await("up")
	other := b.startOn(h, b.spec("true")) // while the first is busy
	if exit := b.wait(other); exit.SupervisorPID == job.Exit().SupervisorPID {
		t.Error("two jobs at a time have one supervisor")
	}
	if err := unix.Kill(job.Exit().SupervisorPID, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if exit := b.wait(job); !exit.Stopped || exit.SupervisorPID != second {
		t.Errorf("exit %+v, supervisor %d", exit, second)
	}
	if last := b.wait(b.startOn(h, b.spec("true"))).SupervisorPID; last == first || last == second {
		t.Errorf("supervisor %d again", last)
	}
}

// Processor time of earlier jobs is no progress of this one.
func TestHostCountsEachJobAlone(t *testing.T) {
	b := newBench(t)
	h := b.host()
	b.wait(b.startOn(h, b.spec("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")))
	job := b.startOn(h, b.spec("echo up; exec sleep 1000"))
	b.await("up")
	_, cpu, err := job.Activity()
	if err != nil || cpu > 50*time.Millisecond {
		t.Errorf("%v of processor time, %v", cpu, err)
	}
	job.Stop(0)
	b.wait(job)
}

// A closed host holds no process, and its supervisor dies with the host's own process anyway.
func TestHostHoldsNothingAfterClose(t *testing.T) {
	b := newBench(t)
	h := b.host()
	exit := b.wait(b.startOn(h, b.spec("true")))
	h.Close()
	if _, there := readProcess(exit.SupervisorPID); there {
		t.Error("the supervisor is still there")
	}
	late := b.wait(b.startOn(h, b.spec("echo late")))
	b.until("the supervisor is gone", func() bool { _, there := readProcess(late.SupervisorPID); return !there })
	if !strings.Contains(b.log(), "late") {
		t.Errorf("log %q", b.log())
	}
}
