// Package spend stores what attempts have used: state/spend/{assignment}.json. A record
// is made when the first worker of an attempt starts, and grows while a worker runs, by
// what its client reports, by day and by model. Only the polecat of the assignment writes
// it.
package spend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

// Usage is what was used of a model.
type Usage struct {
	// In counts input tokens, including Cached, which were read from a cache, and Written,
	// which were written to one. Out counts output tokens.
	In      int64 `json:"tokens_in"`
	Cached  int64 `json:"tokens_cached,omitempty"`
	Written int64 `json:"tokens_cache_written,omitempty"`
	Out     int64 `json:"tokens_out"`
	// CostUSD is the cost that the client reports, or else that by the rig's prices.
	CostUSD USD `json:"cost_usd"`
}

// Add adds another usage.
func (u *Usage) Add(o Usage) {
	u.In, u.Cached, u.Written, u.Out, u.CostUSD = u.In+o.In, u.Cached+o.Cached, u.Written+o.Written, u.Out+o.Out, u.CostUSD+o.CostUSD
}

// less returns u minus o, with no field below 0.
func (u Usage) less(o Usage) Usage {
	return Usage{In: max(0, u.In-o.In), Cached: max(0, u.Cached-o.Cached), Written: max(0, u.Written-o.Written), Out: max(0, u.Out-o.Out),
		CostUSD: max(0, u.CostUSD-o.CostUSD)}
}

// Tokens is the number of input and output tokens.
func (u *Usage) Tokens() int64 { return u.In + u.Out }

// Model is the usage of one model, "" if the client does not name it.
type Model struct {
	Model string `json:"model,omitempty"`
	Usage
}

// Part is the usage of one session on one day.
type Part struct {
	Session state.SessionID `json:"session"`
	// Day is a local date, 2006-01-02.
	Day string `json:"day"`
	// Time is how long its worker ran on that day.
	Time   time.Duration `json:"time_ns"`
	Models []Model       `json:"models,omitempty"`
}

// Record is the usage of one attempt.
type Record struct {
	AssignmentID state.AssignmentID `json:"assignment_id"`
	BeadID       state.BeadID       `json:"bead_id"`
	ConvoyID     state.ConvoyID     `json:"convoy_id,omitempty"`
	AgentID      state.AgentID      `json:"agent_id"`
	// Client is the program of the worker.
	Client    string     `json:"client,omitempty"`
	Parts     []Part     `json:"parts"`
	CreatedAt state.Time `json:"created_at"`
	UpdatedAt state.Time `json:"updated_at"`

	Extra state.Extra `json:"-"`
}

// UnmarshalJSON keeps unknown fields.
func (r *Record) UnmarshalJSON(b []byte) error {
	type plain Record
	return state.UnmarshalWithExtra(b, (*plain)(r), &r.Extra)
}

// MarshalJSON writes unknown fields back.
func (r Record) MarshalJSON() ([]byte, error) {
	type plain Record
	return state.MarshalWithExtra(plain(r), r.Extra)
}

// Day returns the local date of an instant in the form of Part.Day.
func Day(t time.Time) string { return t.Local().Format(time.DateOnly) }

// Note records the total usage of a session so far, and for how much longer it has run. The difference to
// earlier days counts for the day of now. It is idempotent if longer is 0.
func (r *Record) Note(s state.SessionID, used []Model, longer time.Duration, now state.Time) {
	day := Day(now.Time)
	before := map[string]Usage{}
	at := -1
	for i, p := range r.Parts {
		if p.Session == s && p.Day == day {
			at = i
		}
		for _, m := range p.Models {
			if u := before[m.Model]; p.Session == s && p.Day != day {
				u.Add(m.Usage)
				before[m.Model] = u
			}
		}
	}
	r.Parts = slices.Clone(r.Parts)
	if at < 0 {
		at, r.Parts = len(r.Parts), append(r.Parts, Part{Session: s, Day: day})
	}
	part := &r.Parts[at]
	part.Time += max(0, longer)
	part.Models = nil
	for _, m := range used {
		if m.Usage = m.Usage.less(before[m.Model]); m.Usage != (Usage{}) {
			part.Models = append(part.Models, m)
		}
	}
	r.UpdatedAt = now
}

// Row is the usage of one attempt, of one model, on one day. The time of a day, and the attempt
// itself on its first day, are in the row of the most used model, so that sums count them
// once.
type Row struct {
	Bead     state.BeadID   `json:"bead_id"`
	Convoy   state.ConvoyID `json:"convoy_id,omitempty"`
	Agent    state.AgentID  `json:"agent_id"`
	Client   string         `json:"client,omitempty"`
	Day      string         `json:"day"`
	Model    string         `json:"model,omitempty"`
	Attempts int            `json:"attempts"`
	Time     time.Duration  `json:"time_ns"`
	Usage
}

// Rows returns the rows of a record.
func (r *Record) Rows() []Row {
	var rows []Row
	for i, p := range r.Parts {
		row := Row{Bead: r.BeadID, Convoy: r.ConvoyID, Agent: r.AgentID, Client: r.Client, Day: p.Day}
		most := 0
		for k := range p.Models {
			if p.Models[k].Tokens() > p.Models[most].Tokens() {
				most = k
			}
		}
		first := len(rows)
		for _, m := range p.Models {
			row.Model, row.Usage = m.Model, m.Usage
			rows = append(rows, row)
		}
		if len(p.Models) == 0 {
			rows = append(rows, row)
		}
		rows[first+most].Time = p.Time
		if i == 0 {
			rows[first+most].Attempts = 1
		}
	}
	return rows
}

// Dir is the folder of the records.
const Dir = state.StateDir + "/spend"

// Store is state/spend/.
type Store struct{ *state.Store[Record] }

// NewStore opens the records of a tree.
func NewStore(t *state.Tree) Store {
	records := state.NewStore(t, Dir, "spend record", state.LockRecord, check)
	return Store{records.WithSummaries("1", func(r *Record) []string {
		rows, _ := json.Marshal(r.Rows()) // numbers and text
		return []string{string(rows)}
	})}
}

// AllRows returns the rows of all records, and an error for each file that could not be read. It is for a
// process that looks once; see state.Store.Summaries.
func (s Store) AllRows() ([]Row, []error, error) {
	all, bad, err := s.Summaries()
	if err != nil {
		return nil, bad, err
	}
	var rows []Row
	for _, of := range all {
		var some []Row
		if err := json.Unmarshal([]byte(of.Fields[0]), &some); err != nil {
			return nil, bad, fmt.Errorf("the rows of %s: %w", of.Name, err)
		}
		rows = append(rows, some...)
	}
	return rows, bad, nil
}

// Note stores the usage of a session of an attempt so far; see Record.Note. attempt identifies the
// attempt; its Parts are ignored. Durable when it returns nil.
func (s Store) Note(ctx context.Context, attempt Record, session state.SessionID, used []Model, longer time.Duration) error {
	now := attempt.UpdatedAt
	_, err := s.Upsert(ctx, string(attempt.AssignmentID), func(r *Record, found bool) error {
		if !found {
			*r = Record{AssignmentID: attempt.AssignmentID, BeadID: attempt.BeadID, AgentID: attempt.AgentID, CreatedAt: now}
		}
		r.ConvoyID, r.Client = attempt.ConvoyID, attempt.Client
		r.Note(session, used, longer, now)
		return nil
	})
	return err
}

func check(name string, r *Record) error {
	switch {
	case string(r.AssignmentID) != name:
		return fmt.Errorf("assignment_id %q contradicts the file's name", r.AssignmentID)
	case r.BeadID == "" || r.AgentID == "":
		return errors.New("no bead_id or agent_id")
	}
	for _, p := range r.Parts {
		if _, err := time.Parse(time.DateOnly, p.Day); err != nil {
			return fmt.Errorf("day %q is not a date", p.Day)
		}
		if p.Time < 0 {
			return fmt.Errorf("time %s is negative", p.Time)
		}
		for _, m := range p.Models {
			if min(m.In, m.Cached, m.Written, m.Out) < 0 || m.CostUSD < 0 {
				return fmt.Errorf("the usage of %q on %s is negative", m.Model, p.Day)
			}
		}
	}
	return nil
}
