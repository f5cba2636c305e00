package execute

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gastown-chipset/chipset/state"
)

// standDir holds, by session, what clients have instead of their folders in the home of their user.
const standDir = state.RunDir + "/homes"

// makeStand makes the folder that a client has instead of its own: links to everything in that one, and copies of
// what it rewrites all the time. What is there from an earlier run of the session stays. It returns the variable that
// leads the client there. The worker may have changed the folder, so nothing here follows a link in it.
func (c confined) makeStand() (string, error) {
	home := c.client.Home
	own, name := c.ofClient(c.client, home.Own[:1])[0], filepath.Base(home.Own[0])
	if err := os.MkdirAll(c.stand, 0o700); err != nil { //nolint:forbidigo // the client's folders are no state
		return "", err
	}
	root, err := os.OpenRoot(c.stand) //nolint:forbidigo // as above; no link in it is followed out of it
	if err != nil {
		return "", err
	}
	defer root.Close()
	if err := existing(root.Mkdir(name, 0o700)); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(own)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	copies := []string{}
	for _, path := range c.ofClient(c.client, home.Copied) {
		copies = append(copies, filepath.Base(path))
		for _, from := range []string{filepath.Join(own, filepath.Base(path)), path} {
			if err := existing(copyInto(root, filepath.Join(name, filepath.Base(path)), from)); err != nil {
				return "", err
			}
		}
	}
	for _, entry := range entries {
		if slices.Contains(copies, entry.Name()) {
			continue
		}
		if err := existing(root.Symlink(filepath.Join(own, entry.Name()), filepath.Join(name, entry.Name()))); err != nil {
			return "", err
		}
	}
	if home.MovedAbove {
		return home.Moved + "=" + c.stand, nil
	}
	return home.Moved + "=" + filepath.Join(c.stand, name), nil
}

// copyInto copies a file into a folder, unless there is none or something has its name.
func copyInto(root *os.Root, name, from string) error {
	data, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// existing takes it for done when something is there already.
func existing(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
