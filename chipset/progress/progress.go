// Package progress keeps what a running session has done so far, as its client
// tells it: run/progress/{session}.json. It is there for people who look, may be
// removed at any time, and ends with its session; the totals go into the story.
package progress

import (
	"strconv"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/state"
)

// Record is the progress of one session.
type Record struct {
	Session state.SessionID `json:"session"`
	// Client is the program, ClientSession its own name for the session.
	Client        string `json:"client"`
	ClientSession string `json:"client_session,omitempty"`
	agentcli.Figures
	// Resumes is how often the session was continued.
	Resumes int `json:"resumes,omitempty"`
	// Began is where the output of the present run begins in the transcript.
	Began     int64      `json:"began,omitempty"`
	UpdatedAt state.Time `json:"updated_at"`
}

// maxRecord bounds what is read of one, in bytes.
const maxRecord = 64 << 10

func path(s state.SessionID) state.Path { return state.RunDir.Join("progress", string(s)+".json") }

// ExitRecord is where the supervisor of a session's worker says whether it runs,
// and how it ended.
func ExitRecord(s state.SessionID) state.Path {
	return state.RunDir.Join("workers", string(s)+".json")
}

// Read returns what is known of a session, nil when nothing is. It is never worth
// an error: a record that can't be read is none.
func Read(t *state.Tree, s state.SessionID) *Record {
	if s == "" {
		return nil
	}
	data, err := t.Read(path(s), maxRecord)
	if err != nil {
		return nil
	}
	var rec Record
	if state.Decode(string(path(s)), data, &rec) != nil || rec.Session != s {
		return nil
	}
	return &rec
}

// Write replaces the record of a session.
func Write(t *state.Tree, rec Record) error {
	if err := t.MkdirAll(path(rec.Session).Dir()); err != nil {
		return err
	}
	data, err := state.Encode(rec)
	if err != nil {
		return err
	}
	return t.Replace(path(rec.Session), data)
}

// Remove ends a session's record; one that is not there is no error.
func Remove(t *state.Tree, s state.SessionID) error { return t.Remove(path(s)) }

// String is one short phrase for a person, "" when there is nothing to say.
func (r *Record) String() string {
	if r == nil || !r.Known() {
		return ""
	}
	text := r.Figures.String()
	switch {
	case r.Resumes == 1:
		text += ", resumed once"
	case r.Resumes > 1:
		text += ", resumed " + strconv.Itoa(r.Resumes) + " times"
	}
	return text
}
