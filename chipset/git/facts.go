package git

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

const (
	// maxFacts bounds how many answers of one kind a Repo remembers.
	maxFacts = 1024
	// maxFactPaths bounds the lists of changed paths that it remembers.
	maxFactPaths = 1000
)

// facts are answers about pairs of commits. A commit's name covers its whole history, so they never change, and
// each that is known saves a process.
type facts struct {
	commits   memo[commitFacts]
	ranges    memo[commitRange]
	ancestors memo[bool]
	bases     memo[Hash]
	paths     memo[[]string]
}

type pair struct{ base, head Hash }

// memo forgets everything when it is full: what is asked again is mostly recent.
type memo[V any] struct {
	mu    sync.Mutex
	known map[pair]V
}

func (m *memo[V]) get(k pair) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.known[k]
	return v, ok
}

func (m *memo[V]) put(k pair, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= maxFacts {
		m.known = map[pair]V{}
	}
	m.known[k] = v
}

// historyFixed reports whether commits have the parents that their names cover. Shallow clones, grafts and
// replacements give them others, which can change at any time.
func (r *Repo) historyFixed() bool {
	for _, name := range []string{"shallow", "info/grafts", "refs/replace"} {
		if _, err := os.Lstat(filepath.Join(r.common, filepath.FromSlash(name))); err == nil {
			return false
		}
	}
	return true
}

func recall[V any](r *Repo, m *memo[V], k pair) (v V, ok bool) {
	if v, ok = m.get(k); ok && r.historyFixed() {
		return v, true
	}
	var none V
	return none, false
}

func remember[V any](r *Repo, m *memo[V], k pair, v V) {
	if r.historyFixed() {
		m.put(k, v)
	}
}

// commitRange is what head has and base has not.
type commitRange struct {
	count int
	// fork is where a linear range leaves the history of base, and with that their only merge base: head itself
	// if the range is empty, base if it stands on base. It is empty if there are merges or roots in the range.
	fork Hash
}

// commitRange answers most questions about two commits with one process.
func (r *Repo) commitRange(ctx context.Context, base, head Hash) (commitRange, error) {
	if err := checkCommits(base, head); err != nil {
		return commitRange{}, err
	}
	k := pair{base, head}
	if known, ok := recall(r, &r.facts.ranges, k); ok {
		return known, nil
	}
	if walked, known := r.walkRange(base, head); known {
		rememberRange(r, k, walked)
		return walked, nil
	}
	out, err := r.read(ctx, "rev-list", "--parents", string(base)+".."+string(head), "--")
	if err != nil {
		return commitRange{}, err
	}
	parents := map[Hash][]string{}
	for l := range strings.Lines(string(out)) {
		names := strings.Fields(l)
		h, err := ParseHash(names[0])
		if err != nil {
			return commitRange{}, err
		}
		parents[h] = names[1:]
	}
	result := commitRange{count: len(parents), fork: head}
	for {
		next, inside := parents[result.fork]
		if !inside {
			break
		}
		if len(next) != 1 {
			result.fork = ""
			break
		}
		result.fork = Hash(next[0])
	}
	rememberRange(r, k, result)
	return result, nil
}

func rememberRange(r *Repo, k pair, c commitRange) {
	remember(r, &r.facts.ranges, k, c)
	if c.fork != "" && c.fork != k.base {
		remember(r, &r.facts.ranges, pair{c.fork, k.head}, c)
	}
}

// knownAncestor answers IsAncestor from what is remembered or plain to see.
func (r *Repo) knownAncestor(ancestor, h Hash) (is, known bool) {
	if ancestor == h {
		return true, true
	}
	if c, ok := recall(r, &r.facts.ranges, pair{ancestor, h}); ok && c.fork != "" {
		return c.fork == ancestor, true
	}
	if c, ok := recall(r, &r.facts.ranges, pair{h, ancestor}); ok {
		return c.count == 0, true
	}
	if c, walked := r.walkRange(ancestor, h); walked {
		rememberRange(r, pair{ancestor, h}, c)
		return c.fork == ancestor, true
	}
	return recall(r, &r.facts.ancestors, pair{ancestor, h})
}

// knownMergeBase answers MergeBase from what is remembered or plain to see.
func (r *Repo) knownMergeBase(a, b Hash) (Hash, bool) {
	for _, k := range []pair{{a, b}, {b, a}} {
		if c, ok := recall(r, &r.facts.ranges, k); ok && c.fork != "" {
			return c.fork, true
		}
	}
	if c, walked := r.walkRange(a, b); walked {
		rememberRange(r, pair{a, b}, c)
		return c.fork, true
	}
	return recall(r, &r.facts.bases, pair{a, b})
}
