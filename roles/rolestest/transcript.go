// Package rolestest plays transcripts: text files that say what happens to a
// role, and what it decides.
//
// A test of a role keeps them in testdata/*.txt, one scenario a file, in the grammar
// of github.com/cockroachdb/datadriven:
//
//	# A line that begins with # is a comment.
//	bead gt-1
//	polecat alpha
//	----
//	sling gt-1 to polecat-alpha
//
// Above ---- stands what happens, one thing a line; below it, up to an empty line,
// the decisions that follow. What is stated goes on into the next ----.
//
// A line is a noun, its words, options of the form key=value, and free text behind
// a bar. Every role knows these nouns, each as far as it concerns the role:
//
//	bead ID [STATUS|gone|corrupt] [as=AS] [on=POLECAT] [needs=ID,ID] [P1|P3] [attempts=N]
//	  [conflicts=N] [restarts=N] [convoy=ID] [age=DURATION] [ready_in=DURATION] [| close reason]
//	hook AGENT STATUS [bead=ID] [as=AS] [session=SESSION], or corrupt | WHY
//	mail FROM TYPE [bead=ID] [as=AS] [session=SESSION] [thread=NAME] [| subject]
//	nudge FROM TYPE [as=AS] [session=SESSION] [respond] [early] [| message]
//	request ID STATUS [of=BEAD] [as=AS] [stage=STAGE] [failure=FAILURE] [| reason]
//	policy SWITCH or KEY=N
//	after DURATION       time goes by
//	restart              another process takes over
//
// Each role's own test adds the facts that are its own.
//
// `go test ./roles/mayor -rewrite` writes the decisions as they are now into the
// files, and the difference is reviewed like code.
package rolestest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// Stage is a role with what a transcript has stated so far.
type Stage interface {
	// Happen takes in one line.
	Happen(l Line) error
	// Decide returns what the role decides now, one decision a line.
	Decide() []string
}

// Run plays each transcript of the package under test on a new stage, as a subtest
// of the file's name. A stage gives each decision to Faults: an action of the
// package that no transcript leads to is an error.
func Run(t *testing.T, open func(t *testing.T, seen Seen) Stage) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts in testdata: %v", err)
	}
	seen, played := Seen{}, 0
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			stage := open(t, seen)
			played++
			datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
				for _, line := range happenings(d) {
					if err := stage.Happen(Parse(line)); err != nil {
						d.Fatalf(t, "%q: %v", line, err)
					}
				}
				if decisions := stage.Decide(); len(decisions) > 0 {
					return strings.Join(decisions, "\n") + "\n"
				}
				return "nothing\n"
			})
		})
	}
	if played == len(files) {
		seen.covered(t)
	}
}

// happenings are the lines above a ----. datadriven takes the first one apart.
func happenings(d *datadriven.TestData) []string {
	first := d.Cmd
	for _, arg := range d.CmdArgs {
		first += " " + arg.String()
	}
	lines := []string{first}
	for line := range strings.Lines(d.Input) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}
