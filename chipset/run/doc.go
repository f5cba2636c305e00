// Package run wires a rig: which agents this process runs, how they wake
// up, and how they end.
//
//	                   ┌───────────── oklog/run group ─────────────┐
//	                   │                                           │
//	file notification ─┼─▶ mayor     tick: fetch decode execute    │
//	(one watcher for   ├─▶ refinery  tick: …    retire             ├─▶ state tree
//	 the process)      ├─▶ witness   tick: …                       │   and git
//	                   ├─▶ polecat-alpha  tick: …  ── supervisor ──┼─▶ worker
//	timer (rig.tick) ──┼─▶ polecat-bravo  tick: …  ── supervisor ──┼─▶ worker
//	                   │                                           │
//	SIGINT, SIGTERM ───┼─▶ interrupt ends the group                │
//	                   ├─▶ idle      ends it when all is done      │
//	                   ├─▶ needs     says what waits for a person  │
//	                   └─▶ event sync   syncs the event log        │
//	                   └───────────────────────────────────────────┘
//
// An agent is run by whoever holds its liveness lock. The same loop runs it in
// "chipset up", which takes every agent that nobody runs, and in a terminal of
// its own.
package run
