// Package rolestest plays transcripts: text files that say what happens to a
// role, and what it decides.
//
// A test of a role keeps them in testdata/*.txt, one story a file. Most are
// paragraphs, with one empty line between two of them:
//
//	# A line that begins with # is a comment.
//	bead gt-1
//	polecat alpha
//	----
//	sling gt-1 to polecat-alpha
//
// Above ---- stands what happens, one thing a line, in the words of the role's
// own test; below it the decisions that follow. What a paragraph leads to goes on
// into the next. One without ---- only sets the scene. A role whose steps follow
// upon one another without a scene to set may write what happens behind "> " and
// each decision right below it, indented; that test reads its own lines.
//
// `go test ./roles/mayor -update` writes the decisions as they are now into the
// files, and the difference is reviewed like code.
package rolestest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the decisions as they are now into the transcripts")

// Run gives each transcript of the package under test to replay, as a subtest of
// the file's name. replay returns the transcript with the decisions that are made
// now; a difference is an error, or with -update is written to the file. It gives
// each decision to Faults: an action of the package that no transcript leads to is
// an error.
func Run(t *testing.T, replay func(t *testing.T, seen Seen, transcript string) string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts in testdata: %v", err)
	}
	seen, played := Seen{}, 0
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := string(data)
			got := replay(t, seen, want)
			played++
			switch {
			case got == want:
			case *update:
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			default:
				t.Errorf("%s (- the transcript, + what is decided now):\n%s", file, cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
			}
		})
	}
	if played == len(files) {
		seen.covered(t)
	}
}

const dashes = "----"

// Paragraphs replays a transcript of paragraphs. play gets the lines of each,
// without comments, and whether the transcript holds decisions below them; it
// returns those of now, one a line, or "" where the paragraph only sets the scene.
func Paragraphs(t *testing.T, transcript string, play func(lines []string, asked bool) string) string {
	t.Helper()
	var out []string
	decided := false
	for paragraph := range strings.SplitSeq(strings.TrimRight(transcript, "\n"), "\n\n") {
		story, _, asked := strings.Cut(paragraph, "\n"+dashes)
		var lines []string
		for line := range strings.SplitSeq(story, "\n") {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
		if decisions := strings.TrimRight(play(lines, asked), "\n"); decisions != "" {
			decided = true
			story += "\n" + dashes + "\n" + decisions
		}
		out = append(out, story)
	}
	if !decided {
		t.Error("nothing is decided")
	}
	return strings.Join(out, "\n\n") + "\n"
}
