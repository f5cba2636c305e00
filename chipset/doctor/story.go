package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/view/screen"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// checkStory looks at the event log, day by day.
func checkStory(ctx context.Context, r *rig.Rig) ([]finding, error) {
	entries, err := r.Tree.List(event.Dir)
	if err != nil {
		return nil, err
	}
	var found []finding
	for _, e := range entries {
		p := event.Dir.Join(e.Name())
		day, data, err := r.Events.Day(p)
		if err != nil {
			found = append(found, oddDay(r, p, err)...)
			continue
		}
		found = append(found, checkDay(r, p, day, data)...)
	}
	return found, ctx.Err()
}

// oddDay tells of what is no day of the log. What can't even be a file is moved
// away; a file may be somebody's.
func oddDay(r *rig.Rig, p state.Path, err error) []finding {
	found := unreadable(err, nil)
	for i := range found {
		if found[i].Rule == ruleUnreadable {
			found[i].Rule, found[i].Severity, found[i].settled = "event-line", Warning, true
		} else if !errors.Is(err, state.ErrHardLinked) {
			found[i].repair = func(context.Context) error { return quarantineOdd(r, p) }
		}
	}
	return found
}

func checkDay(r *rig.Rig, p state.Path, day string, data []byte) []finding {
	events, bad := event.Lines(p, data)
	var found []finding
	for _, err := range bad {
		for _, f := range unreadable(err, nil) {
			f.Rule, f.Severity, f.settled = "event-line", Warning, true
			found = append(found, f)
		}
	}
	if n := len(data); n > 0 && data[n-1] != '\n' {
		found = append(found, finding{Finding: Finding{Rule: "event-torn", Path: string(p), Severity: Warning,
			Detail: fmt.Sprintf("its last line, of %d bytes, has no end", n-1-strings.LastIndexByte(string(data), '\n'))},
			repair: func(context.Context) error { return r.Tree.Append(p, nil) }})
	}
	astray := 0
	for i := range events {
		if !strings.HasPrefix(events[i].Time.String(), day) {
			astray++
		}
	}
	if astray > 0 {
		found = append(found, finding{settled: true, Finding: Finding{Rule: "event-day", Path: string(p), Severity: Warning,
			Detail: screen.Count(astray, "event") + " of other days"}})
	}
	return found
}

func checkQuarantine(ctx context.Context, r *rig.Rig) ([]finding, error) {
	entries, err := r.Tree.List(state.QuarantineDir)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, e := range entries {
		there[e.Name()] = true
	}
	kept, err := r.Tree.Quarantined()
	if err != nil {
		return nil, err
	}
	var found []finding
	told := map[string]bool{}
	for _, q := range kept {
		told[q.File] = true
		p := state.QuarantineDir.Join(q.File)
		if strings.HasSuffix(q.File, reasonSuffix) { // the reason itself can't be read
			found = append(found, finding{settled: true, Finding: Finding{Rule: "quarantine-reason", Path: string(p), Severity: Warning,
				Detail: q.Reason, Hint: "look at it, then remove it by hand"}})
			continue
		}
		if !there[q.File] {
			found = append(found, orphanReason(r, p))
			continue
		}
		found = append(found, finding{settled: true, Finding: Finding{Rule: "quarantine", Path: string(p),
			Severity: Warning, Detail: "from " + q.Path + ": " + q.Reason}})
	}
	for _, e := range entries {
		if name := e.Name(); !strings.HasSuffix(name, reasonSuffix) && !told[name] {
			found = append(found, missingReason(r, name))
		}
	}
	return found, ctx.Err()
}

const reasonSuffix = ".reason.json"

// orphanReason is left by a kill between the reason and the move: what it speaks
// of still stands where it was.
func orphanReason(r *rig.Rig, p state.Path) finding {
	return finding{Finding: Finding{Rule: "quarantine-reason", Path: string(p) + reasonSuffix, Severity: Warning, Detail: "what it speaks of is not here"},
		repair: func(context.Context) error {
			if there, err := r.Tree.Exists(p); err != nil || there {
				return err
			}
			return r.Tree.Remove(p + reasonSuffix)
		}}
}

func missingReason(r *rig.Rig, name string) finding {
	p := state.QuarantineDir.Join(name)
	f := finding{Finding: Finding{Rule: "quarantine-reason", Path: string(p), Severity: Warning, Detail: "nothing says why it is here"}}
	f.repair = func(context.Context) error {
		return r.Tree.Explain(p, "nothing said why it is here: somebody put it here by hand", r.Clock.Now())
	}
	return f
}
