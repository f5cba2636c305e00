package git

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

const (
	// maxFacts bounds how many commits a Repo remembers.
	maxFacts = 4096
	// maxWalk bounds how many commits of each side are read for one answer; beyond that git itself is faster.
	maxWalk = 256
)

// memo caches commits by name, which never become stale. It is emptied when it is full, because most questions are about
// recent commits.
type memo struct {
	mu    sync.Mutex
	known map[Hash]commitFacts
}

func (m *memo) get(h Hash) (commitFacts, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.known[h]
	return c, ok
}

func (m *memo) put(h Hash, c commitFacts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= maxFacts {
		m.known = map[Hash]commitFacts{}
	}
	m.known[h] = c
}

// historyFixed reports whether the parents of commits are those in their content. In a shallow clone they are
// not, and can change at any time. Grafts and replacements don't matter: no command here follows them.
func (r *Repo) historyFixed() bool {
	_, err := os.Lstat(filepath.Join(r.common, "shallow"))
	return err != nil
}

// commitRange describes the commits that head has and base has not.
type commitRange struct {
	count int
	// fork is where a linear range leaves the history of base, and with that their only merge base: head itself
	// if the range is empty, base if it stands on base. It is empty if there are merges or roots in the range.
	fork Hash
}

// commitRange computes the range from base to head.
func (r *Repo) commitRange(ctx context.Context, base, head Hash) (commitRange, error) {
	if err := checkCommits(base, head); err != nil {
		return commitRange{}, err
	}
	if walked, known := r.walkRange(ctx, base, head); known {
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
			return result, nil
		}
		if len(next) != 1 {
			result.fork = ""
			return result, nil
		}
		result.fork = Hash(next[0])
	}
}

// lineage is a walk from a commit to its parents, while each has exactly one.
type lineage struct {
	commits []Hash
	at      map[Hash]int
	ended   bool
}

func lineageOf(h Hash) *lineage { return &lineage{commits: []Hash{h}, at: map[Hash]int{h: 0}} }

func (l *lineage) last() Hash { return l.commits[len(l.commits)-1] }

func (l *lineage) extend(ctx context.Context, r *Repo) {
	if l.ended {
		return
	}
	c, err := r.commit(ctx, l.last())
	if l.ended = err != nil || len(c.parents) != 1; l.ended {
		return
	}
	l.at[c.parents[0]] = len(l.commits)
	l.commits = append(l.commits, c.parents[0])
}

// walkRange is commitRange without a process, for histories of head and base that are linear down to their
// fork. The commits of head above the fork can't be in base's history
// by another path: that continues below the fork, and no commit is its own ancestor.
func (r *Repo) walkRange(ctx context.Context, base, head Hash) (result commitRange, known bool) {
	if !r.historyFixed() {
		return commitRange{}, false
	}
	ours, theirs := lineageOf(head), lineageOf(base)
	for range maxWalk {
		if n, met := ours.at[theirs.last()]; met {
			return commitRange{count: n, fork: theirs.last()}, true
		}
		if _, met := theirs.at[ours.last()]; met {
			return commitRange{count: len(ours.commits) - 1, fork: ours.last()}, true
		}
		if ours.ended && theirs.ended {
			break
		}
		ours.extend(ctx, r)
		if n, met := ours.at[theirs.last()]; met {
			return commitRange{count: n, fork: theirs.last()}, true
		}
		theirs.extend(ctx, r)
	}
	return commitRange{}, false
}
