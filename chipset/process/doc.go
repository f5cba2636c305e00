// Package process starts, supervises and ends the commands of a rig: the
// workers of the polecats and the test command of the refinery.
//
// A role does not run a command itself. It starts a small supervisor, which is
// this same binary with the hidden argument "supervise", and the supervisor runs
// the command:
//
//	role process ──stdin: spec, then lifeline──▶ supervisor ──fork──▶ command
//	      ▲                                      own session          own group
//	      └────stdout: started, final────────────┘   │
//	                                                 └─▶ the exit record
//
// The pipe into the supervisor is a lifeline. However the role ends, kill -9
// included, the kernel closes the pipe, and the supervisor ends the command's
// whole group and every other descendant: TERM, after the grace KILL, until none
// is left. It says how it went in the exit record, replaced atomically once when
// the command runs and once when everything is over, before the supervisor exits.
//
// On Linux the supervisor is a child subreaper, so a descendant that left the
// group with setsid(2) or a double fork comes back to it, and wait(2) answering
// ECHILD is the proof that nothing is left. The command carries a parent death
// signal: a supervisor that is killed takes the command along, and [KillOrphans]
// finds the rest by its environment. Elsewhere only the process group is ended.
//
// What the command wants of its rig it asks through package broker: the supervisor
// listens on a socket of the job, and runs what is asked for beside the command.
//
// [ParseCommand] turns a command line of the definition into the words to run. Which
// command a worker is, package agentcli knows.
package process
