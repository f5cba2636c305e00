// Package private makes folders outside of a rig that only this user may enter.
package private

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Name is the name of this user's folder in a folder that everybody may write to.
func Name() string { return "chipset-" + strconv.Itoa(os.Getuid()) }

// Make makes a folder for this user alone, or checks that it is one. Its parent exists.
func Make(dir string) error {
	if err := os.Mkdir(dir, 0o700); err == nil || !errors.Is(err, os.ErrExist) { //nolint:forbidigo // nothing here is state
		return err
	}
	var info unix.Stat_t
	if err := unix.Lstat(dir, &info); err != nil {
		return err
	}
	//nolint:unconvert // Mode has 16 bits on macOS
	if uint32(info.Mode)&unix.S_IFMT != unix.S_IFDIR || int(info.Uid) != os.Getuid() || info.Mode&0o077 != 0 {
		return fmt.Errorf("%s is not a folder that only you may enter", dir)
	}
	return nil
}

// Temp returns the folder for temporary folders of this user's commands, and makes it. It lies in no repository, so
// that tools which look for a project above their folder find none, and its path is short, because tests make sockets
// there. /var/tmp comes before /tmp: it has few entries, and each costs a sandbox a rule.
func Temp() (string, error) {
	var failed []error
	for _, parent := range []string{os.Getenv("TMPDIR"), "/var/tmp", "/tmp"} {
		if !filepath.IsAbs(parent) {
			continue
		}
		dir := filepath.Join(parent, Name())
		err := Make(dir)
		if err == nil {
			return dir, nil
		}
		failed = append(failed, err)
	}
	cache, err := os.UserCacheDir() // no other user can have taken a name in it
	if err == nil {
		dir := filepath.Join(cache, "chipset", "tmp")
		if err = os.MkdirAll(dir, 0o700); err == nil { //nolint:forbidigo // nothing here is state
			return dir, nil
		}
	}
	return "", errors.Join(append(failed, err)...)
}
