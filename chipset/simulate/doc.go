// Package simulate runs whole rigs under virtual time: the decisions of the
// roles, the durable sequences, the rules of every transition and the thresholds are
// the real ones (roles/*, chipset/flow, hook, state/*, chipset/execute/policy), the disk, git, workers, tests
// and persons are models. A year of a rig takes seconds, and a seed gives the
// same run to the byte.
//
//	arrivals ─▶ beads ◀── mayor ──▶ hooks ◀── polecats ──▶ workers (durations, ends)
//	               ▲        ▲  mail    ▲          │
//	               │        │          │ scan     ▼
//	           refinery ◀───┴── queue ─┼─── merge requests
//	               │ tests        witness ──▶ incidents, nudges, mail
//
// Each role is a process, and a coroutine of the engine: it is woken, fetches,
// decides, and carries its actions out by the rule of all roles (roles.CarryOut).
// Sequences of several durable steps are those of chipset/flow. Before each step it
// lets virtual time pass, and there a fault may hit: the process is not gone on with,
// as kill -9 would end it, and its successor heals what it finds. What a real process
// does under one lock is one step here.
//
// Beside the run stands its judge: every change of a hook, a bead, a request or an
// incident is held against the rules by which `chipset audit verify` judges
// history, and against what must be true of the rig as a whole (checks.go). The
// first violation ends the run.
package simulate
