package process

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/state"
)

func TestRecordFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s1.json")
	at := time.Date(2026, 3, 5, 11, 30, 0, 120, time.FixedZone("", 3600))
	exit := Exit{ID: "s1", PID: 7, PGID: 7, BootID: "b", StartTime: 99, SupervisorPID: 6, SupervisorStart: 98,
		StartedAt: state.At(at), Code: 1, Error: "<&>", Stopped: true}
	if err := writeRecord(path, exit); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "boot_id": "b",
  "code": 1,
  "done": false,
  "error": "<&>",
  "id": "s1",
  "pgid": 7,
  "pid": 7,
  "start_time": 99,
  "started_at": "2026-03-05T10:30:00.000000120Z",
  "stopped": true,
  "supervisor_pid": 6,
  "supervisor_start": 98
}
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestRecordRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "s"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC()
		exit := Exit{
			ID:  rapid.StringMatching(`[a-z0-9][a-z0-9._-]{0,20}`).Filter(func(id string) bool { return state.CheckID(id) == nil }).Draw(t, "id"),
			PID: rapid.IntRange(0, 1<<22).Draw(t, "pid"), StartTime: rapid.Uint64().Draw(t, "start"),
			Code: rapid.IntRange(-1, 255).Draw(t, "code"), Error: rapid.String().Draw(t, "error"),
			StartedAt: state.At(at), Done: rapid.Bool().Draw(t, "done"), TimedOut: rapid.Bool().Draw(t, "timed out"),
		}
		if err := writeRecord(path, exit); err != nil {
			t.Fatal(err)
		}
		got, found, err := ReadExit(path)
		if err != nil || !found {
			t.Fatalf("found %v, %v", found, err)
		}
		if diff := cmp.Diff(exit, got, cmp.Comparer(func(a, b state.Time) bool { return a.Equal(b.Time) })); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestReadExit(t *testing.T) {
	dir := t.TempDir()
	if _, found, err := ReadExit(filepath.Join(dir, "missing.json")); found || err != nil {
		t.Errorf("missing: found %v, %v", found, err)
	}
	for name, text := range map[string]string{
		"empty": "", "cut": `{"id": "s1", "co`, "other": `[]`, "no-id": `{"code": 0}`, "bad-id": `{"id": "../x"}`,
		"bad-time": `{"id": "s1", "started_at": "yesterday"}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, found, err := ReadExit(path); found || !errors.Is(err, ErrBadRecord) {
			t.Errorf("%s: found %v, %v", name, found, err)
		}
	}
	if _, _, err := ReadExit(dir); !errors.Is(err, ErrBadRecord) {
		t.Errorf("directory: %v", err)
	}
}
