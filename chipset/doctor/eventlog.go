package doctor

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/wording"
)

// eventLog looks at the event log, day by day.
func (l *inspection) eventLog(ctx context.Context) error {
	entries, err := l.r.Tree.List(event.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		p := event.Dir.Join(e.Name())
		day, data, err := l.r.Events.Day(p)
		if err != nil {
			l.notADay(p, err)
			continue
		}
		l.day(p, day, data)
	}
	return ctx.Err()
}

// notADay reports an entry that is not a day of the log. A link or a folder is moved away; a
// file may belong to somebody.
func (l *inspection) notADay(p state.Path, err error) {
	f := l.addUnreadable(err, nil)
	switch {
	case f == nil || errors.Is(err, state.ErrHardLinked):
	case f.Rule == ruleUnreadable:
		f.Rule, f.Severity, f.settled = "event-line", Warning, true
	default:
		f.repair = func(context.Context) error { return quarantineOdd(l.r, p) }
	}
}

func (l *inspection) day(p state.Path, day string, data []byte) {
	events, bad := event.Lines(p, data)
	for _, err := range bad {
		if f := l.addUnreadable(err, nil); f != nil {
			f.Rule, f.Severity, f.settled = "event-line", Warning, true
		}
	}
	if n := len(data); n > 0 && data[n-1] != '\n' {
		l.add("event-torn", p, Warning, "", "its last line, of %d bytes, has no newline", n-1-bytes.LastIndexByte(data, '\n')).repair =
			func(context.Context) error { return l.r.Tree.Append(p, nil) }
	}
	others := 0
	for i := range events {
		if !strings.HasPrefix(events[i].Time.String(), day) {
			others++
		}
	}
	if others > 0 {
		l.addSettled("event-day", p, Warning, "", "it holds %s of other days", wording.Count(others, "event"))
	}
}

// quarantined lists the quarantine. A kill between the two steps leaves a reason without its
// file, which is still where it was.
func (l *inspection) quarantined(ctx context.Context) error {
	entries, err := l.r.Tree.List(state.QuarantineDir)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, e := range entries {
		there[e.Name()] = true
	}
	kept, err := l.r.Tree.Quarantined()
	if err != nil {
		return err
	}
	for _, q := range kept {
		p := state.QuarantineDir.Join(q.File)
		switch {
		case strings.HasSuffix(q.File, reasonSuffix): // the reason itself can't be read
			l.addSettled("quarantine-reason", p, Warning, "look at it, then remove it by hand", "%s", q.Reason)
		case !there[q.File]:
			l.add("quarantine-reason", p+reasonSuffix, Warning, "", "its file is not here").repair = func(context.Context) error {
				if there, err := l.r.Tree.Exists(p); err != nil || there {
					return err
				}
				return l.r.Tree.Remove(p + reasonSuffix)
			}
		default:
			l.addSettled("quarantine", p, Warning, "", "from %s: %s", q.Path, q.Reason)
		}
		delete(there, q.File)
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if !strings.HasSuffix(name, reasonSuffix) {
			p := state.QuarantineDir.Join(name)
			l.add("quarantine-reason", p, Warning, "", "it has no reason beside it").repair = func(context.Context) error {
				return l.r.Tree.Explain(p, "unknown: somebody put it here by hand", l.r.Clock.Now())
			}
		}
	}
	return ctx.Err()
}

const reasonSuffix = ".reason.json"
