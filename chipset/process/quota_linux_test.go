package process

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A log that is too long keeps its end, at the same offsets, while who writes it goes on.
func TestTrimLogKeepsTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	writer, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	write := func(b []byte) {
		t.Helper()
		if _, err := writer.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	const most = 1 << 20
	write(bytes.Repeat([]byte("a line of output\n"), 4*most/17))
	s := supervisor{spec: Spec{Log: path, Limits: Limits{Log: most}}}
	s.trimLog()
	write([]byte("the last words\n"))
	var info unix.Stat_t
	if err := unix.Stat(path, &info); err != nil {
		t.Fatal(err)
	}
	if onDisk(&info) > most {
		t.Errorf("%d bytes on the disk, at most %d", onDisk(&info), most)
	}
	data, err := os.ReadFile(path)
	if err != nil || len(data) < 4*most || !bytes.HasSuffix(data, []byte("a line of output\nthe last words\n")) || data[0] != 0 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	before := onDisk(&info)
	s.trimLog()
	if err := unix.Stat(path, &info); err != nil || onDisk(&info) != before {
		t.Errorf("a short log was cut: %d, %v", onDisk(&info), err)
	}
}

// Holes count nothing, and what can't be read is left out.
func TestDiskUse(t *testing.T) {
	dir := t.TempDir()
	hole := filepath.Join(dir, "hole")
	if err := os.WriteFile(hole, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(hole, 1<<40); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a", "b", "c"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := diskUse(nil, dir, "", filepath.Join(dir, "gone")); n < 1<<20 || n > 2<<20 {
		t.Errorf("%d bytes", n)
	}
}

// A command that holds too much memory, or starts too many processes, is ended with all it started; what several share counts
// once.
func TestCommandOverALimit(t *testing.T) {
	tests := []struct {
		name, script, over string
		limits             Limits
	}{
		{"memory", `perl -e '$x = "x" x 200_000_000; sleep 60'`, OverMemory, Limits{Memory: 64 << 20}},
		{"memory of several", `for i in 1 2 3; do perl -e '$x = "x" x 40_000_000; sleep 60' & done; wait`, OverMemory, Limits{Memory: 64 << 20}},
		{"processes", `for i in $(seq 60); do sleep 60 & done; wait`, OverTasks, Limits{Tasks: 32}},
		{"processes that leave the group", `for i in $(seq 60); do setsid sleep 60 & done; sleep 60`, OverTasks, Limits{Tasks: 32}},
		{"memory that is shared", `perl -e '$x = "x" x 20_000_000; fork for 1 .. 2; sleep 3'`, "", Limits{Memory: 64 << 20}},
		{"neither", `for i in $(seq 10); do sleep 1.5 & done; wait`, "", Limits{Tasks: 32, Memory: 64 << 20}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			spec := b.spec(test.script)
			spec.Limits, spec.Grace = test.limits, time.Hour // it gets none
			if exit := b.run(spec); exit.Over != test.over || (exit.Code == 0) != (test.over == "") {
				t.Errorf("%+v: %s", exit, b.log())
			}
		})
	}
}
