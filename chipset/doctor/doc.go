// Package doctor checks every rule of a rig's files, and repairs what can be
// repaired without loss. The rules are the rows of one table, and docs/doctor.md
// shows it.
//
// Only --fix writes. A rig that runs changes while it is looked at, so the doctor
// looks again before it calls a relation broken.
package doctor
