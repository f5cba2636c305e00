package environment

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/rig"
)

// mounted looks at a rig on a small file system that runs full and turns read-only.
func mounted(f *fixture) {
	f.Helper()
	small := f.TempDir()
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=64m"); err != nil {
		f.Skip("no file system can be mounted here: ", err)
	}
	f.Cleanup(func() { _ = unix.Unmount(small, unix.MNT_DETACH) })
	dir := filepath.Join(small, "repo")
	f.must(os.CopyFS(dir, os.DirFS(f.Dir)))
	r, err := rig.Open(f.Context(), dir, f.Clock)
	f.must(err)
	f = &fixture{f.T, r}
	f.wants("")
	f.must(os.WriteFile(filepath.Join(small, "filler"), make([]byte, 61<<20), 0o600))
	f.wants(DiskLow, "MiB free of 64 MiB")
	if d := DiskOf(dir); !d.Low() || d.Critical() {
		f.Errorf("%s", d)
	}
	f.must(unix.Mount("", small, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	f.wants(ReadOnly+" "+ReadOnly+" "+DiskLow, filepath.Join(dir, ".git")+" can't be written: read-only file system")
}
