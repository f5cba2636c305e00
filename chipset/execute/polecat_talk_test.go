package execute

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/spend"
)

// saying is a reader of a client that has said something.
type saying struct {
	agentcli.PlainText
	session string
	figures agentcli.Figures
	used    []spend.Model
}

func (r *saying) Session() string           { return r.session }
func (r *saying) Figures() agentcli.Figures { return r.figures }
func (r *saying) Used() []spend.Model       { return r.used }

// A process that takes a session over has read what the earlier one had read, the last line of its last run too, and counts on from there.
func TestTalkIsTakenOver(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	begun := `{"type":"system","subtype":"init","session_id":"sess-1"}` + "\n"
	ended := `{"type":"result","subtype":"success","is_error":true,"api_error_status":401,"result":"bad key","modelUsage":{"m":{"inputTokens":2000}}}` // cut off
	again := "\n" + `{"type":"result","subtype":"success","result":"done","modelUsage":{"m":{"inputTokens":500}}}` + "\n"
	gittest.Write(t, filepath.Dir(log), "log", begun+ended+again)
	talk := newTalk(clients.Named("claude"))
	before := int64(len(begun + ended))
	talk.takeOver(&agentcli.Progress{ClientSession: "sess-0", Resumes: 2, Began: before}, log)
	if got := talk.reader.Figures().TokensIn; talk.offset != before || talk.began != before || talk.resumed != 2 || talk.clientSession() != "sess-1" || got != 2000 {
		t.Fatalf("%+v, %d tokens", talk, got)
	}
	if !talk.reader.Trying().IsZero() {
		t.Error("how the earlier run ended is taken for how this one stands")
	}
	talk.readAll(log)
	if got := talk.reader.Figures().TokensIn; got != 2500 || talk.began != before {
		t.Errorf("%d tokens, of both runs", got)
	}
	// Nothing was read before: the run that is left is read as one that goes on.
	talk = newTalk(clients.Named("claude"))
	talk.takeOver(&agentcli.Progress{ClientSession: "sess-0"}, log)
	if talk.readAll(log); talk.clientSession() != "sess-1" || talk.offset != int64(len(begun+ended+again)) {
		t.Errorf("%+v", talk)
	}
	talk = newTalk(clients.Named("claude"))
	if talk.takeOver(&agentcli.Progress{ClientSession: "sess-0", Began: 5}, log+".none"); talk.clientSession() != "sess-0" || talk.began != 0 {
		t.Errorf("without a transcript: %+v", talk)
	}
}

// Of a transcript that is a flood the end counts, and a last line without an end is read with the rest. What is no file is no transcript.
func TestTalkReadsWhatCounts(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	gittest.Write(t, dir, "log", `{"type":"system","subtype":"init","session_id":"sess-1"}`)
	one := newTalk(clients.Named("claude"))
	if one.readAll(log); one.clientSession() != "sess-1" {
		t.Error("its last line is not read")
	}
	var lines []string
	flood := &talk{reader: &saying{}, lines: &agentcli.Lines{To: func(line []byte) { lines = append(lines, string(line)) }}}
	log = filepath.Join(dir, "flood")
	gittest.Write(t, dir, "flood", "the beginning\n")
	f, err := os.OpenFile(log, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("\nthe end"), maxBehind+100); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if flood.readAll(log); !slices.Equal(lines, []string{"the end"}) || flood.offset != maxBehind+108 {
		t.Errorf("read %d lines up to %d", len(lines), flood.offset)
	}
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := errors.Join(unix.Mkfifo(pipe, 0o600), os.Symlink(log, link)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openLog(pipe); !errors.Is(err, state.ErrNotRegular) {
		t.Errorf("a pipe: %v", err)
	}
	if _, _, err := openLog(link); err == nil {
		t.Error("a link is followed")
	}
	if got := logTail(link); got != "" || one.readMore(pipe, 1) {
		t.Errorf("read %q", got)
	}
}

// The progress of a session is written when it has changed, not more often than it can be read, and at once when it matters. That it can't
// be is told.
func TestProgressIsShown(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	r := &saying{}
	w := &worker{session: deadSession, talk: &talk{name: "claude", reader: r, resumed: 1, began: 7}}
	now := k.p.Now()
	shown := func() *agentcli.Progress { return agentcli.ReadProgress(k.rig.Tree, deadSession) }
	if k.p.show(w, now, true); shown() != nil {
		t.Errorf("nothing is known, and shown is %+v", shown())
	}
	r.session = "sess-1"
	if k.p.show(w, now, false); shown() == nil || shown().ClientSession != "sess-1" || shown().Resumes != 1 || shown().Began != 7 {
		t.Fatalf("shown is %+v", shown())
	}
	for _, step := range []struct {
		turns  int
		after  time.Duration
		atOnce bool
		want   int
	}{{1, 0, false, 0}, {1, showInterval - 1, false, 0}, {1, showInterval, false, 1}, {2, showInterval, true, 2}, {3, showInterval - 1, false, 3}} {
		r.figures.Turns = step.turns
		if k.p.show(w, state.At(now.Add(step.after)), step.atOnce); shown().Turns != step.want {
			t.Errorf("%+v: shown are %d turns", step, shown().Turns)
		}
	}
	k.spoilt(agentcli.ProgressDir, func() {
		r.figures.Turns = 9
		k.p.show(w, now, true)
	})
	k.p.show(w, now, true)
	if told := k.story("progress.not_written"); len(told) != 1 {
		t.Errorf("told %q", told)
	}
}

// What a worker uses is recorded in time, sooner where a budget depends on it; that it can't be is told once, and made up for.
func TestUsageIsRecorded(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	w := &worker{assignment: "as-1", bead: "tt-abc12", session: deadSession, preset: agentcli.Preset{Command: []string{"claude", "--model", "m"}},
		talk: &talk{name: "claude", reader: &saying{used: []spend.Model{{Usage: spend.Usage{In: 1e6}}, {Model: "m", Usage: spend.Usage{In: 1e6, CostUSD: 7}},
			{Model: "n", Usage: spend.Usage{Cached: 1e6, Written: 1e6, Out: 1e6}}}}}}
	k.rig.Def.Prices = map[string]definition.Price{"m": {In: 1}, "n": {Out: 4}}
	now := k.p.Now()
	recorded := func() time.Duration {
		t.Helper()
		rec, err := k.rig.Spend.Get("as-1")
		if errors.Is(err, state.ErrNotFound) {
			return -1
		}
		k.fail(err)
		var sum time.Duration
		for _, row := range rec.Rows() {
			sum += row.Time
		}
		return sum
	}
	account := func(after time.Duration, atOnce bool, want time.Duration) {
		t.Helper()
		if k.p.account(t.Context(), w, state.At(now.Add(after)), atOnce); recorded() != want {
			t.Errorf("after %s %s are recorded, not %s", after, recorded(), want)
		}
	}
	account(time.Hour, false, -1) // nothing says since when
	account(0, true, 0)
	account(accountInterval-1, false, 0)
	account(accountInterval, false, accountInterval)
	account(accountInterval-time.Hour, true, accountInterval) // the clock was set back
	w.spent.upTo = state.At(now.Add(accountInterval))
	k.rig.Def.Budget.Day.Tokens = 1
	account(accountInterval+k.rig.Def.Rig.Tick-1, false, accountInterval)
	account(accountInterval+k.rig.Def.Rig.Tick, false, accountInterval+k.rig.Def.Rig.Tick)
	k.spoilt(spend.Dir, func() {
		for range 2 {
			k.p.account(t.Context(), w, state.At(now.Add(time.Minute)), true)
		}
	})
	if told := k.story("warning"); len(told) != 1 || !strings.Contains(told[0], "can't be recorded") {
		t.Errorf("told %q", told)
	}
	account(2*time.Minute, false, 2*time.Minute)
	want := []spend.Model{{Model: "m", Usage: spend.Usage{In: 2e6, CostUSD: spend.Dollars(1) + 7}}, {Model: "n", Usage: spend.Usage{Cached: 1e6, Written: 1e6, Out: 1e6}}}
	got := k.p.used(w)
	if price := got[1].CostUSD; price == 0 {
		t.Error("a model without a cost has none by its price")
	}
	got[1].CostUSD = 0
	if !reflect.DeepEqual(got, want) {
		t.Errorf("used %+v, want %+v", got, want)
	}
}

// A worker's end is what its client says of it, completed by what is known otherwise.
func TestEndIsJudged(t *testing.T) {
	t.Parallel()
	k := newKennel(t, "")
	k.dead()
	busy, own := fault.New(fault.Overloaded, "busy"), fault.New(fault.ClientMissing, "none")
	for name, c := range map[string]struct {
		exit    polecat.Exit
		end     agentcli.End
		session string
		want    polecat.Exit
	}{
		"by its code":            {polecat.Exit{Tail: "tail", Code: 1}, agentcli.End{Said: "said"}, "", polecat.Exit{Tail: "tail", Code: 1}},
		"by its code, resumable": {polecat.Exit{Tail: "tail", Code: 1}, agentcli.End{}, "s", polecat.Exit{Code: 1, Resumable: true, Changed: true}},
		"finished":               {polecat.Exit{Tail: "tail"}, agentcli.End{Verdict: agentcli.Finished, Said: "said"}, "", polecat.Exit{Tail: "said", Ending: polecat.Clean, Changed: true}},
		"finished, without words": {polecat.Exit{Tail: "tail"}, agentcli.End{Verdict: agentcli.Finished, Reason: "why"}, "",
			polecat.Exit{Tail: "tail", Why: "why", Ending: polecat.Clean, Changed: true}},
		"a fault":                    {polecat.Exit{Code: 1}, agentcli.End{Verdict: agentcli.Broken, Fault: busy}, "", polecat.Exit{Code: 1, Ending: polecat.Broken, Fault: busy}},
		"it has not started":         {polecat.Exit{Code: 127, Fault: own}, agentcli.End{Verdict: agentcli.Broken, Fault: busy}, "", polecat.Exit{Code: 127, Ending: polecat.Broken, Fault: own}},
		"refused, not to be resumed": {polecat.Exit{}, agentcli.End{Verdict: agentcli.Refused}, "", polecat.Exit{Ending: polecat.Refused}},
	} {
		exit := c.exit
		if k.p.judge(t.Context(), &exit, c.end, c.session); !reflect.DeepEqual(exit, c.want) {
			t.Errorf("%s: %+v, want %+v", name, exit, c.want)
		}
	}
}

// An exit record tells how a worker ended, and quotes the last lines that it printed.
func TestExitOfAWorker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lines := strings.Repeat("one more\n", 50)
	gittest.Write(t, dir, "log", strings.Repeat("x", maxTailBytes)+lines)
	tail := strings.TrimSpace(strings.Repeat("one more\n", maxTailLines))
	begun := state.At(time.Now())
	over := state.At(begun.Add(time.Minute))
	for name, c := range map[string]struct {
		exit process.Exit
		want polecat.Exit
	}{
		"by itself":       {process.Exit{PID: 1, NotFound: true, Error: "e", Code: 127}, polecat.Exit{Code: 127}},
		"stopped":         {process.Exit{PID: 1, Stopped: true, Code: 143, Signal: "SIGTERM"}, polecat.Exit{Code: 143, Signal: "SIGTERM", Lost: true}},
		"orphaned":        {process.Exit{PID: 1, Orphaned: true}, polecat.Exit{Lost: true}},
		"killed with all": {process.Exit{PID: 1, Code: -1}, polecat.Exit{Code: -1, Lost: true}},
		"too late":        {process.Exit{PID: 1, TimedOut: true}, polecat.Exit{TimedOut: true}},
		"too much":        {process.Exit{PID: 1, Over: process.OverMemory}, polecat.Exit{TimedOut: true, Exceeded: "its processes take more memory than limits.memory"}},
		"not found":       {process.Exit{NotFound: true, Error: "e"}, polecat.Exit{NotStarted: "e"}},
		"not executable":  {process.Exit{NotExecutable: true, Error: "e"}, polecat.Exit{NotStarted: "e"}},
		"not followed":    {process.Exit{Error: "e"}, polecat.Exit{}},
	} {
		c.exit.StartedAt, c.exit.EndedAt = begun, over
		c.want.Ran, c.want.Tail = time.Minute, tail
		if got := exitOf(c.exit, filepath.Join(dir, "log")); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	gittest.Write(t, dir, "short", "  short \n\n")
	if got := logTail(filepath.Join(dir, "short")); got != "short" {
		t.Errorf("the tail is %q", got)
	}
}

// A session has one name for clients that want a UUID, of the version for names that somebody else made up.
func TestUUIDOfASession(t *testing.T) {
	is := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for _, s := range []state.SessionID{"ses-1", "ses-2", "ses-3", "ses-4", "ses-5"} {
		if id := uuidOf(s); !is.MatchString(id) || id != uuidOf(s) || seen[id] {
			t.Errorf("%s: %s", s, id)
		}
		seen[uuidOf(s)] = true
	}
}
