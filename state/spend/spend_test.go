package spend

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/statetest/decodetest"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

func noon(day int) state.Time {
	return state.At(time.Date(2026, 3, day, 12, 0, 0, 0, time.Local))
}

// A session that goes on over midnight is split between the days, and what is noted twice counts once.
func TestNoteByDay(t *testing.T) {
	var r Record
	used := func(in, out int64, usd USD) []Model {
		return []Model{{"m", Usage{In: in, Out: out, CostUSD: usd}}}
	}
	r.Note("se-1", used(100, 10, 1000), time.Minute, noon(5))
	r.Note("se-1", used(150, 15, 1500), time.Minute, noon(5))
	r.Note("se-1", used(150, 15, 1500), 0, noon(5))
	r.Note("se-1", used(200, 30, 1750), 2*time.Minute, noon(6))
	r.Note("se-2", used(7, 1, 500), time.Second, noon(6))
	want := []Part{
		{"se-1", "2026-03-05", 2 * time.Minute, used(150, 15, 1500)},
		{"se-1", "2026-03-06", 2 * time.Minute, used(50, 15, 250)},
		{"se-2", "2026-03-06", time.Second, used(7, 1, 500)},
	}
	if !reflect.DeepEqual(r.Parts, want) {
		t.Errorf("%+v\nnot\n%+v", r.Parts, want)
	}
	r.Note("se-2", used(7, 1, 100), 0, noon(6))
	if got := r.Parts[2].Models[0].CostUSD; got != 100 {
		t.Errorf("the client said less, and %s is recorded", got)
	}
}

// However a session's use was noted, all of it is in the rows, and the attempt once.
func TestRowsHoldAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Record{BeadID: "gt-1", AgentID: "polecat-alpha"}
		total := map[string]Usage{}
		var ran time.Duration
		day := 1
		for range rapid.IntRange(1, 8).Draw(t, "notes") {
			day += rapid.IntRange(0, 1).Draw(t, "days")
			m := fmt.Sprint("m", rapid.IntRange(0, 2).Draw(t, "model"))
			u := total[m]
			u.Add(Usage{In: rapid.Int64Range(0, 99).Draw(t, "in"), Cached: 1, Out: rapid.Int64Range(0, 9).Draw(t, "out"), CostUSD: 250_000})
			total[m] = u
			var used []Model
			for name, u := range total {
				used = append(used, Model{name, u})
			}
			longer := time.Duration(rapid.IntRange(0, 5).Draw(t, "ran")) * time.Second
			ran += longer
			r.Note("se-1", used, longer, noon(day))
		}
		var want, got Usage
		for _, u := range total {
			want.Add(u)
		}
		attempts := 0
		for _, row := range r.Rows() {
			got.Add(row.Usage)
			ran -= row.Time
			attempts += row.Attempts
		}
		if got != want || ran != 0 || attempts != 1 {
			t.Fatalf("%+v, not %+v; %s of the time is missing; %d attempts", got, want, ran, attempts)
		}
		if err := check("", &r); err != nil {
			t.Fatal(err)
		}
	})
}

// What is written is read again, and a person sees what is less than a cent.
func TestUSD(t *testing.T) {
	for amount, want := range map[USD]string{0: "$0.00", 1: "$0.0000", 1200: "$0.0012", 460_288: "$0.46", 12_345_678: "$12.35", Dollars(0.46028800000000003): "$0.46", Dollars(1e300): "$0.00"} {
		data, err := amount.MarshalJSON()
		var again USD
		if err != nil || again.UnmarshalJSON(data) != nil || again != amount || amount.String() != want {
			t.Errorf("%d is %s, %s in JSON, and %d again", amount, amount, data, again)
		}
	}
}

func TestCheck(t *testing.T) {
	for what, change := range map[string]func(r *Record){
		"another name":  func(r *Record) { r.AssignmentID = "as-2" },
		"no bead":       func(r *Record) { r.BeadID = "" },
		"no day":        func(r *Record) { r.Parts[0].Day = "monday" },
		"time":          func(r *Record) { r.Parts[0].Time = -1 },
		"negative":      func(r *Record) { r.Parts[0].Models[0].Out = -1 },
		"negative cost": func(r *Record) { r.Parts[0].Models[0].CostUSD = -1 },
	} {
		r := Record{AssignmentID: "as-1", BeadID: "gt-1", AgentID: "polecat-alpha"}
		r.Note("se-1", []Model{{"m", Usage{In: 1}}}, 0, noon(5))
		if err := check("as-1", &r); err != nil {
			t.Fatal(err)
		}
		if change(&r); check("as-1", &r) == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}

func TestHistory(t *testing.T) {
	made := func(times ...time.Duration) *Record {
		r := &Record{BeadID: "gt-1"}
		for i, d := range times {
			r.Note("se-1", nil, d, noon(5+i))
		}
		return r
	}
	for _, c := range []struct {
		name          string
		before, after *Record
		legal         bool
	}{
		{"new", nil, made(1), true},
		{"grown", made(1), made(2, 3), true},
		{"less time", made(2), made(1), false},
		{"a day less", made(1, 1), made(1), false},
		{"another bead", made(1), &Record{BeadID: "gt-2"}, false},
	} {
		if err := moved(c.before, c.after); (err == nil) != c.legal {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A crash leaves what was noted before, or what is noted now.
func TestCrashSpend(t *testing.T) {
	attempt := Record{AssignmentID: "as-1", BeadID: "gt-1", AgentID: "polecat-alpha", UpdatedAt: noon(5)}
	note := func(name string, in int64) model.Step {
		return model.Step{Name: name, Shows: fmt.Sprintf(`"tokens_in": %d`, in), Do: func(ctx context.Context, t *state.Tree) error {
			return NewStore(t).Note(ctx, attempt, "se-1", []Model{{"m", Usage{In: in}}}, time.Second)
		}}
	}
	model.Sweep(t, model.Steps("a spend record", Dir.Join("as-1.json"), nil, "", note("made", 5), note("grown", 7)))
}

// FuzzDecodeRecord: what is accepted has one form, and loses nothing that it does not know.
func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(`{"assignment_id":"as-1","bead_id":"gt-1","agent_id":"a","parts":[{"session":"se-1","day":"2026-03-05","time_ns":5,"models":[{"model":"m","tokens_in":1,"tokens_out":2,"cost_usd":0.5}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		decodetest.Object(t, data, func(v *Record) error { return check(string(v.AssignmentID), v) })
	})
}
