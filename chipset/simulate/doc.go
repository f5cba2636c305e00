// Package simulate runs whole rigs under virtual time: the decisions of the
// roles and the rules of every transition are the real ones (roles/*, hook,
// state/bead, state/mergequeue, state/incident), the disk, git, workers, tests
// and persons are models. A year of a rig takes seconds, and a seed gives the
// same run to the byte.
//
//	arrivals ─▶ beads ◀── mayor ──▶ hooks ◀── polecats ──▶ workers (durations, ends)
//	               ▲        ▲  mail    ▲          │
//	               │        │          │ scan     ▼
//	           refinery ◀───┴── queue ─┼─── merge requests
//	               │ tests        witness ──▶ incidents, nudges, mail
//
// Each role is a process: it is woken, fetches, decides, and carries its actions
// out one durable step after the other, each of which takes time. A fault may hit
// between any two steps: the process ends there, as kill -9 would end it, and its
// successor heals what it finds. What a real executor does in one write is one
// step here.
//
// Beside the run stands its judge: every change of a hook, a bead, a request or an
// incident is held against the rules by which `chipset audit verify` judges
// history, and against what must be true of the rig as a whole (checks.go). The
// first violation ends the run.
package simulate
