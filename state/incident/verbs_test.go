package incident

import (
	"errors"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

// What is so already is left as it is.
func TestVerbs(t *testing.T) {
	at := func(minute int) state.Time { return state.At(time.Date(2026, 3, 5, 10, minute, 0, 0, time.UTC)) }
	told := at(0)
	i := Incident{Severity: Warning, Detail: "quiet", MailName: "a", EscalatedAt: &told}
	unchanged := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, state.ErrUnchanged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	unchanged("raised to what it is", i.Raise(Warning, "b", ""))
	if err := i.Raise(Alert, "b", ""); err != nil || i.Severity != Alert || i.MailName != "b" || i.EscalatedAt != nil || i.Detail != "quiet" {
		t.Errorf("raised: %v, %+v", err, i)
	}
	i.Ask(2, at(1))
	if i.Ask(1, at(2)); i.Nudges != 2 || !i.LastNudge.Equal(at(2).Time) {
		t.Errorf("asked: %+v", i)
	}
	if err := i.Answer(at(3)); err != nil || i.Answers != 1 {
		t.Errorf("answered: %v, %+v", err, i)
	}
	unchanged("answered twice", i.Answer(at(3)))
	for minute := 4; minute < 7; minute++ {
		if err := i.Answer(at(minute)); err != nil || i.Answers > i.Nudges {
			t.Errorf("answered: %v, %+v", err, i)
		}
	}
	if err := i.Resolve("progress", at(8)); err != nil || i.Open() || i.Resolution != "progress" {
		t.Errorf("resolved: %v, %+v", err, i)
	}
	unchanged("resolved twice", i.Resolve("again", at(9)))
	unchanged("raised after it was resolved", i.Raise(Critical, "c", ""))
}
