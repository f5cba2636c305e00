// Package session answers the hooks of coding-agent clients: what a client asks
// at the steps of its session, and what the rig has to say to the agent then.
//
// The events and the answers are those of package agentcli, in which each client's
// own form of them is read and written:
//
//	event              what the agent gets
//	SessionStart       who it is, its hook, assignment, hand-off, unread mail
//	UserPromptSubmit   mail and nudges that it was not shown yet, once
//	PostToolUse        the same, also where the tool failed; and its hook is touched
//	PreToolUse         how work is proposed here, when it enters or leaves plan mode;
//	                   who a subagent is that it spawns, in the prompt of that subagent;
//	                   the identity of a subagent, before its command that calls the rig;
//	                   a refusal of what changes something before its plan is approved
//	PermissionRequest  what the person has granted to a worker, or how to ask for it
//	Stop               a reason to go on while work is on its hook and no question is open
//	SubagentStart      the identity of a subagent whose prompt could not say it
//	SubagentStop       nothing; what became free is told to its parent at its next step
//	TeammateIdle       a reason to go on while work is on its hook
//	TaskCompleted      a task tagged chipset:bead:ID ends the assignment of that bead
//	Idle               a reason to begin a turn, as soon as there is news for the agent of a
//	                   person's own session; the prompt that it begins with shows it
//	SessionEnd         nothing; a hand-off is written and what lies in run/ is removed
//
// A hook has nothing to say most of the time, and then says nothing. What goes wrong
// is an error of Answer and never a reason to hold a client up.
//
// What a session was shown lies in run/clients/SESSION/, which may be deleted:
// the agent is then shown its unread mail once more.
//
//	run/clients/{session}/memory.json            what was shown
//	run/clients/{session}/pending/{call}.json    a subagent that is being spawned, by the call that does it
//	run/clients/{session}/claimed/{agent}.json   a subagent that runs, under the client's id
//	run/clients/{session}/rested/{agent}.json    one that has ended, and may be spoken to again
package session
