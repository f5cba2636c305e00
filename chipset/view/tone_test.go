package view

import "testing"

// TestPatchTone: a line of a patch is told by how it begins; a file's name is no change.
func TestPatchTone(t *testing.T) {
	for line, want := range map[string]Tone{
		"diff --git a/x b/x": Heading, "index 1..2 100644": Heading, "--- a/x": Heading, "+++ b/x": Heading,
		"@@ -1 +1 @@ func": Step, "+new": Added, "-old": Removed, "--": Removed, " same": Plain, "": Plain,
	} {
		if got := PatchTone(line); got != want {
			t.Errorf("%q is %d, not %d", line, got, want)
		}
	}
}
