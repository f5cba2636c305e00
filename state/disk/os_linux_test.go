package disk

import (
	"os"
	"path/filepath"
	"testing"
)

// The kernel lists the journals it runs beside what sysfs says of each device.
func TestJournalIsSeen(t *testing.T) {
	devices, err := os.ReadDir("/sys/fs/ext4")
	if err != nil {
		t.Skip("no ext4 is mounted here")
	}
	seen := 0
	for _, d := range devices {
		if _, err := os.Stat(filepath.Join("/sys/fs/ext4", d.Name(), "journal_task")); err != nil {
			continue // features
		}
		seen++
		journals, _ := filepath.Glob(filepath.Join("/proc/fs/jbd2", d.Name()+"-*"))
		if got, want := journalOf(d.Name()), len(journals) > 0; got != want {
			t.Errorf("%s: journal %t, want %t", d.Name(), got, want)
		}
	}
	if seen == 0 {
		t.Skip("no ext4 is mounted here")
	}
}
