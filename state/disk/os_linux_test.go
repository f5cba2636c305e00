package disk

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state/statetest"
	"github.com/gastown-chipset/chipset/state/statetest/lostsync"
)

// A short cut is taken where it is known to keep what was promised, and nowhere else: docs/durability.md says what
// each file system does.
func TestFeaturesOfFileSystems(t *testing.T) {
	for name, c := range map[string]struct {
		mkfs []string
		want Features
	}{
		"ext4":                 {[]string{"mkfs.ext4", "-q", "-F"}, Features{Unnamed: true, Ordered: true, Journal: true, Barrier: true}},
		"ext4 without journal": {[]string{"mkfs.ext4", "-q", "-F", "-O", "^has_journal"}, Features{Barrier: true}},
		"xfs":                  {[]string{"mkfs.xfs", "-q", "-f"}, Features{Unnamed: true, Ordered: true, Journal: true}},
		"btrfs":                {[]string{"mkfs.btrfs", "-q", "-f"}, Features{Unnamed: true, Journal: true, Barrier: true}},
		"tmpfs":                {nil, Features{}},
	} {
		t.Run(name, func(t *testing.T) {
			image, at := filepath.Join(t.TempDir(), "image"), t.TempDir()
			mount := exec.Command("mount", "-t", "tmpfs", "none", at)
			if c.mkfs != nil {
				must(t, os.WriteFile(image, nil, 0o600))
				must(t, os.Truncate(image, 320<<20)) // xfs wants so much
				if out, err := exec.Command(c.mkfs[0], append(c.mkfs[1:], image)...).CombinedOutput(); err != nil {
					statetest.Missing(t, "no "+c.mkfs[0]+": "+err.Error()+string(out))
				}
				mount = exec.Command("mount", "-o", "loop", image, at)
			}
			if out, err := mount.CombinedOutput(); err != nil {
				statetest.Missing(t, "nothing can be mounted: "+err.Error()+string(out))
			}
			defer func() { must(t, exec.Command("umount", at).Run()) }()
			c.want.Parallel = parallel
			if got := (OS{}).Features(at); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// syncfs says what it could not write since Linux 5.8.
func TestSyncfsReports(t *testing.T) {
	for release, want := range map[string]bool{
		"5.8.0": true, "5.7.19": false, "5.8-rc1": true, "4.19.0-21-amd64": false, "4.9": false, "6.0": true, "6.1+": true, "10.2.3": true,
		"": false, "5": false, "5.": false, "x.9": false, "Linux": false,
	} {
		if got := reportsSince58(release); got != want {
			t.Errorf("%q: %v", release, got)
		}
	}
}

// A file of another disk gets no name. The error of Unnamed says whether this disk has no unnamed files, or whether
// making one failed.
func TestUnnamedFilesThatFail(t *testing.T) {
	dir := t.TempDir()
	var d OS
	if _, err := d.Unnamed("/proc"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("where there are none: %v", err)
	}
	if _, err := d.Unnamed(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("in no folder: %v", err)
	}
	f, err := d.Create(filepath.Join(dir, "a"))
	must(t, err)
	if err := d.Link(struct{ File }{f}, filepath.Join(dir, "b")); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a file of another disk: %v", err)
	}
	must(t, f.Close())
	if _, err := d.Barrier(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a barrier of nothing: %v", err)
	}
	b, err := d.Barrier(dir)
	must(t, err)
	must(t, b.Close())
	if err := b.Settle(); err == nil {
		t.Error("a closed barrier settles")
	}
}

// What syncfs could not write is reported, though the fsync that follows succeeds.
func TestSettleReportsWhatSyncfsDoes(t *testing.T) {
	lostsync.Run(t, func(fail func()) {
		b, err := OS{}.Barrier(t.TempDir())
		must(t, err)
		fail()
		if err := b.Settle(); !errors.Is(err, unix.EIO) {
			t.Errorf("Settle: %v", err)
		}
		must(t, b.Close())
	})
}

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
