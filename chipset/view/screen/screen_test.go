package screen

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
)

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m", 200 * time.Minute: "3h 20m",
		52 * time.Hour: "2d 4h", -time.Minute: "in the future"} {
		if got := Age(d); got != want {
			t.Errorf("Age(%v) = %q, want %q", d, got, want)
		}
	}
}

// A table is as wide as its text needs, and no wider than the screen: its widest columns are cut, and
// wide characters count as what they are.
func TestTableFits(t *testing.T) {
	rows := [][]Cell{
		{Dim("ID"), Dim("STATUS"), Dim("TITLE"), Dim("ASSIGNEE")},
		{Plain("gt-abc12"), OfStatus("blocked"), Plain("把问候语翻译成德语，并写上如何运行它"), Plain("polecat-alpha")},
		{Plain("gt-def34"), OfStatus("open"), Plain("Say how to run it, and what it prints then\x1b[31m"), Plain("")},
	}
	for _, width := range []int{0, 200, 80, 60, 50, 40, 20, 5} {
		s := New(Options{Width: width, Colour: width != 0})
		s.Table("", rows)
		text := ansi.Strip(s.String())
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if len(lines) != 3 {
			t.Fatalf("width %d: %q", width, text)
		}
		for _, line := range lines {
			if width > 0 && ansi.StringWidth(line) > width {
				t.Errorf("width %d: %d columns in %q", width, ansi.StringWidth(line), line)
			}
		}
		if width == 0 && (!strings.Contains(text, "，并写上如何运行它 ") || strings.Contains(s.String(), "\x1b")) {
			t.Errorf("a table that is not cut: %q", s)
		}
		if width == 60 && (!strings.Contains(lines[1], "…") || !strings.HasSuffix(lines[1], "polecat-alpha") ||
			ansi.StringWidth(lines[1][:strings.Index(lines[1], "polecat")]) != strings.Index(lines[0], "ASSIGNEE")) {
			t.Errorf("the columns do not stand below each other:\n%s", text)
		}
	}
}
