package process

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	orphanPoll = 10 * time.Millisecond
	// orphanSweep is the time between two sweeps of KILL.
	orphanSweep = 100 * time.Millisecond
	// orphanTimeout is how long a killed process may take to be gone, before it
	// counts as one that the kernel can't end: a full disk queue holds one for many seconds.
	orphanTimeout = time.Minute
)

// KillOrphans ends what an earlier role has left running: every process whose
// environment matches, what descends from it, and what is left of the jobs that the
// given unfinished records name. TERM comes first, after grace KILL. It returns when
// all are verified to be gone, how many there were, and an error when
// some are not.
//
// The calling process and its ancestors are never touched. The environment is the
// one a process was started with; match should ask for EnvSession, which a person's
// shell does not carry, and nil matches nothing. A process of which neither its environment nor an ancestor nor a
// record tells anything is not found. Elsewhere than on Linux only the records count.
func KillOrphans(ctx context.Context, match func(env map[string]string) bool, grace time.Duration, records ...Exit) (int, error) {
	search := orphanSearch{match: match, records: records, boot: BootID(), found: map[process]bool{}}
	started := time.Now()
	kill := started.Add(max(grace, 0))
	for clean := 0; ; {
		left, err := search.find()
		if err != nil {
			return search.gone(nil), fmt.Errorf("find orphans: %w", err)
		}
		if len(left) == 0 {
			// One that forked behind the reader's back shows at the second look.
			if clean++; clean == 2 || len(search.found) == 0 {
				return search.gone(nil), nil
			}
			continue
		}
		clean = 0
		now := time.Now()
		if now.After(kill.Add(orphanTimeout)) {
			return search.gone(left), fmt.Errorf("end orphans: processes survive: pids %v", pids(left))
		}
		until := kill
		if !now.Before(kill) {
			until = now.Add(orphanSweep)
		}
		search.signal(left, !now.Before(kill))
		if err := awaitEnd(ctx, left, until); err != nil {
			return search.gone(left), fmt.Errorf("end orphans: %w", err)
		}
	}
}

// awaitEnd returns when all of list are gone, or at the time until.
func awaitEnd(ctx context.Context, list []process, until time.Time) error {
	ticker := time.NewTicker(orphanPoll)
	defer ticker.Stop()
	for anyAlive(list) && time.Now().Before(until) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return nil
}

// orphanSearch is one run of KillOrphans. found holds who was
// ever found and has had a TERM or a KILL.
type orphanSearch struct {
	match   func(map[string]string) bool
	records []Exit
	boot    string
	found   map[process]bool
}

// identity keeps of a process what does not change while it lives.
func (p process) identity() process { return process{pid: p.pid, start: p.start} }

// find returns the orphans that live now.
func (h *orphanSearch) find() ([]process, error) {
	table, err := processTable()
	if err != nil {
		return nil, err
	}
	spared := ancestors(table)
	roots := make(map[int]bool)
	orphans := make(map[int]process)
	for _, p := range table {
		if spared[p.pid] || p.dead || !h.isOrphan(p) {
			continue
		}
		roots[p.pid] = true
		orphans[p.pid] = p
	}
	if len(roots) > 0 {
		for _, p := range below(table, roots) {
			if !spared[p.pid] {
				orphans[p.pid] = p
			}
		}
	}
	found := make([]process, 0, len(orphans))
	for _, p := range orphans {
		found = append(found, p.identity())
	}
	return found, nil
}

func (h *orphanSearch) isOrphan(p process) bool {
	for _, record := range h.records {
		if h.belongs(p, record) {
			return true
		}
	}
	if h.match == nil {
		return false
	}
	env, ok := environ(p.pid)
	return ok && h.match(env)
}

// belongs reports whether p is of the job of an unfinished record: its supervisor,
// its command, or of the command's group in the supervisor's session. Both numbers
// stay taken while anything of the group lives, so a stranger can't have both.
func (h *orphanSearch) belongs(p process, record Exit) bool {
	if record.Done || record.PID <= 0 || record.SupervisorPID <= 0 || record.BootID == "" || record.BootID != h.boot {
		return false
	}
	if p.pid == record.SupervisorPID {
		return p.start == record.SupervisorStart
	}
	if p.pid == record.PID {
		return p.start == record.StartTime
	}
	return p.pgid == record.PGID && p.session == record.SupervisorPID && p.start >= record.StartTime
}

// signal sends TERM to those that have not had one, or KILL to all.
func (h *orphanSearch) signal(left []process, kill bool) {
	for _, record := range h.records {
		if kill && !record.Done && record.BootID == h.boot {
			killGroup(record.ID)
		}
	}
	if kill {
		stopAll(func() []process { found, _ := h.find(); return found })
	}
	for _, p := range left {
		known := h.found[p]
		h.found[p] = true
		switch {
		case kill:
			_ = p.signal(unix.SIGKILL)
		case !known:
			_ = p.signal(unix.SIGTERM)
			// A stopped process would sleep through its TERM.
			_ = p.signal(unix.SIGCONT)
		}
	}
}

// gone counts those that were found and are not left.
func (h *orphanSearch) gone(left []process) int {
	count := len(h.found)
	for _, p := range left {
		if h.found[p] && p.alive() {
			count--
		}
	}
	return count
}

// ancestors returns the calling process and all that it descends from.
func ancestors(table []process) map[int]bool {
	parent := make(map[int]int, len(table))
	for _, p := range table {
		parent[p.pid] = p.ppid
	}
	spared := make(map[int]bool)
	for pid := os.Getpid(); pid > 0 && !spared[pid]; pid = parent[pid] {
		spared[pid] = true
	}
	return spared
}

func anyAlive(list []process) bool {
	for _, p := range list {
		if p.alive() {
			return true
		}
	}
	return false
}

func pids(list []process) []int {
	numbers := make([]int, 0, len(list))
	for _, p := range list {
		numbers = append(numbers, p.pid)
	}
	return numbers
}
