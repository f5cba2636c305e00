// Package bd reads and writes the JSON lines of bd, the beads issue tracker: one
// issue a line, as in .beads/issues.jsonl and as bd export prints them.
//
//	bd                         bead
//	id                         id; one that is no legal ID is mapped, always in the same way
//	title, labels, issue_type  the same (type)
//	description                description, followed by design and notes under headings
//	acceptance_criteria        acceptance
//	priority 0, 1 · 2 · 3, 4   P1 · P2 · P3 (bd leaves 0 out, so a missing one is 0)
//	open, in_progress, hooked  open: nobody in this rig works on it yet
//	blocked                    open while an issue it depends on is not closed, else blocked
//	deferred, pinned, others   blocked: a person decides
//	closed                     closed
//	tombstone                  is not made, and cancels the bead that there is
//	blocks, conditional-blocks,
//	waits-for                  blocked_by
//	parent-child               the parent waits for its children, and they for what it waits
//	                           for, as far as that closes no circle (implied dependencies)
//
// What a bead has no field for is kept in its metadata, and written again on
// export: bd_id is the issue's own ID, and bd a JSON object, see source. So an
// import and an export give back the same issues, and so do an export and an
// import of what nobody works on.
//
// An import is planned as a whole before anything is written, and everything in
// it is idempotent: after a crash the same import goes on where it ended.
package bd
