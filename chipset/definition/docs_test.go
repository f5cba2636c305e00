package definition

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The pages name the thresholds that a definition without any has.
func TestPagesNameTheThresholds(t *testing.T) {
	d, problems := Parse("minimal", []byte(minimal))
	if d == nil {
		t.Fatal(problems)
	}
	g := d.GUPP.Thresholds
	for page, sentences := range map[string][]string{
		"configuration.md": {
			fmt.Sprintf("| `thresholds.stall_detection` | `%.0f` (%.0f min) |", g.StallDetection.Seconds(), g.StallDetection.Minutes()),
			fmt.Sprintf("| `thresholds.nudge_interval` | 2/5 of `stall_detection`: %.0f s |", g.NudgeInterval.Seconds()),
			fmt.Sprintf("| `thresholds.restart_threshold` | 2 × `stall_detection`: %.0f s |", g.RestartThreshold.Seconds()),
			fmt.Sprintf("| `thresholds.slow_start` | 1/5 of `stall_detection`: %.0f s |", g.SlowStart.Seconds()),
		},
		"roles.md": {
			fmt.Sprintf("`stall_detection` (%.0f s)", g.StallDetection.Seconds()),
			fmt.Sprintf("`slow_start` (%.0f s)", g.SlowStart.Seconds()),
		},
	} {
		data, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sentences {
			if !strings.Contains(string(data), s) {
				t.Errorf("docs/%s does not say %q", page, s)
			}
		}
	}
}
