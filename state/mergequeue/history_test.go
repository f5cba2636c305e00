package mergequeue

import (
	"strings"
	"testing"
)

// A request moves by beginnings of a merge, each counted, and is merged as its candidate.
func TestHistory(t *testing.T) {
	one, two := strings.Repeat("1", 40), strings.Repeat("2", 40)
	made := func(s Status, tries int) *Request {
		r := numbered(1)
		r.ID, r.Seq, r.Status, r.Attempts = "mr-gt-1", 1, s, tries
		return &r
	}
	merged := func(tries int, sha, candidate string) *Request {
		r := made(Merged, tries)
		r.MergedSHA, r.Candidate, r.Onto = sha, candidate, strings.Repeat("3", 40)
		return r
	}
	held := merged(1, "", two)
	held.Onto = two
	with := func(r *Request, change func(r *Request)) *Request { change(r); return r }
	for name, c := range map[string]struct {
		before, after *Request
		legal         bool
	}{
		"new":                       {nil, made(Pending, 0), true},
		"new and begun":             {nil, made(Merging, 1), true},
		"new and begun uncounted":   {nil, made(Merging, 0), false},
		"begun":                     {made(Pending, 0), made(Merging, 1), true},
		"put back and begun":        {made(Merging, 1), made(Merging, 2), true},
		"begun uncounted":           {made(Pending, 1), made(Merging, 1), false},
		"counted without a begin":   {made(Merged, 1), made(Merged, 2), false},
		"often":                     {made(Merging, 1), made(Conflicted, 9), true},
		"attempts fell":             {made(Merging, 2), made(Pending, 1), false},
		"merged":                    {made(Merging, 1), merged(1, two, two), true},
		"merged as another":         {made(Merging, 1), merged(1, one, two), false},
		"merged as nothing":         {made(Merging, 1), merged(1, "", two), false},
		"held before":               {made(Merging, 1), held, true},
		"merged as another later":   {merged(1, two, two), merged(1, one, one), false},
		"pending with a merged_sha": {made(Merging, 1), with(made(Pending, 1), func(r *Request) { r.MergedSHA = one }), false},
		"dropped":                   {made(Conflicted, 1), made(Dropped, 1), true},
		"superseded":                {made(Conflicted, 1), made(Superseded, 1), true},
		"back after it was merged":  {merged(1, two, two), made(Pending, 1), false},
		"back after it was dropped": {made(Dropped, 1), made(Pending, 1), false},
		"of another bead":           {made(Pending, 0), with(made(Pending, 0), func(r *Request) { r.BeadID = "gt-2" }), false},
		"with another head":         {made(Pending, 0), with(made(Pending, 0), func(r *Request) { r.Head = one }), false},
	} {
		if err := CheckChange(c.before, c.after); (err == nil) != c.legal {
			t.Errorf("%s: %v", name, err)
		}
	}
	if History().CheckChange == nil {
		t.Error("nobody asks")
	}
}

// The queue is read in its order, whichever way: what has ended is left out, what was not
// announced is not.
func TestReadingTheQueue(t *testing.T) {
	s := queueOf(t, Pending, Merging, Conflicted, Dropped)
	for _, seq := range []int64{1, 2} { // behind all others, so that names and numbers differ
		if err := s.Renumber(t.Context(), idFor(numbered(int(seq)).BeadID, 1), seq, now); err != nil {
			t.Fatal(err)
		}
	}
	ids := func(all []Request, bad []error, err error) string {
		t.Helper()
		if err != nil || len(bad) > 0 {
			t.Fatal(err, bad)
		}
		var names []string
		for i := range all {
			names = append(names, string(all[i].ID))
		}
		return strings.Join(names, " ")
	}
	if got := ids(s.Live()); got != "mr-gt-3 mr-gt-1 mr-gt-2" {
		t.Errorf("live: %s", got)
	}
	if got := ids(s.Unfinished()); !strings.HasPrefix(got, "mr-gt-3") || !strings.HasSuffix(got, "mr-gt-1 mr-gt-2") {
		t.Errorf("unfinished: %s", got)
	}
	if got := ids(s.Queue()); got != "mr-gt-3 mr-gt-4 mr-gt-1 mr-gt-2" {
		t.Errorf("all: %s", got)
	}
}

// queueOf holds a request for each status, numbered from 1.
func queueOf(t *testing.T, all ...Status) Store {
	t.Helper()
	s := newQueue(t)
	for n, status := range all {
		q, err := s.Submit(t.Context(), numbered(n+1), now)
		if err != nil {
			t.Fatal(err)
		}
		var way []Status
		switch status {
		case Pending:
		case Conflicted:
			way = []Status{Merging, Conflicted}
		case Merging, Merged, Superseded, Dropped:
			way = []Status{status}
		}
		for _, to := range way {
			if _, err := s.Update(t.Context(), string(q.ID), func(q *Request) error { return q.Become(to, now) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}
