// Package definition reads chipset.yaml, the definition of a rig: its agents, what
// they know, how work is dispatched, watched, tested and merged.
//
// # The file
//
// One YAML document of at most 1 MiB, a mapping of sections. Only agents is
// required; a section or key that is left out, or has no value, has a default. The
// sections header, skills, agents, communication, dispatch, evaluation and runtime
// are those of existing chipset definitions: such a file is accepted as it is. gupp,
// rig, worker, merge, mail and audit are what a running rig needs in addition.
//
// # How it is read
//
//	parse.go               text → one document of YAML nodes
//	read.go, formats.go    nodes → what chipset.schema.json accepts of them
//	definition.go          → a Definition, decoded by its tags
//	defaults.go            + what the file leaves out
//	check.go, agents.go    what no schema can express
//
// A new key is a property of the schema and a field of the Definition; a test holds
// the two equal.
//
// # Strictness
//
// Ignoring a misspelt key costs more than refusing the file. So unknown keys, duplicate
// keys and values of the wrong type are errors, and all of them are reported at once
// with line and column. The file is untrusted: the expansion of aliases is bounded,
// and every name, path and branch is checked.
package definition
