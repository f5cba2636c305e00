package blockcut_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state"
)

// What the actor says: which files it has given a name, and which it has
// acknowledged, each as NAME:VERSION. After a cut the former may be gone but not
// torn, the latter are there.
const (
	named = "named "
	acked = "acked "
)

const (
	// rounds is how often a sequence is carried out.
	rounds = 4
	// groupSize is the number of files of a sequence for a group.
	groupSize = 16
	// contentSize is more than one block, so that a file can be torn between them.
	contentSize = 6000
)

// content is what a file of that name and version holds; no two are alike.
func content(name string, version int) []byte {
	line := fmt.Sprintf("%s %d\n", name, version)
	return bytes.Repeat([]byte(line), contentSize/len(line)+1)[:contentSize]
}

// actor is the program whose writes are cut off.
type actor struct {
	dir     string
	answers *bufio.Reader
	files   []file
}

// file is one that is being published.
type file struct {
	*os.File
	name    string
	version int
}

// act publishes files in dir by a sequence of steps, round after round.
func act(steps, dir string) error {
	a := &actor{dir: dir, answers: bufio.NewReader(os.Stdin)}
	verbs := strings.Fields(steps)
	size := 1
	if verbs[0] == "group" {
		size, verbs = groupSize, verbs[1:]
	}
	for round := range rounds {
		for i := range size {
			f := file{name: fmt.Sprintf("file-%d-%d", round, i)}
			if strings.Contains(strings.ToLower(steps), "replace") {
				f = file{name: "replaced", version: round + 1}
			}
			a.files = append(a.files, f)
		}
		for _, verb := range verbs {
			if err := a.do(verb); err != nil {
				return fmt.Errorf("%s: %w", verb, err)
			}
		}
		if err := a.tell(acked); err != nil {
			return err
		}
		for _, f := range a.files {
			f.Close()
		}
		a.files = nil
	}
	return nil
}

// do carries out one step for all files.
func (a *actor) do(verb string) error {
	switch verb {
	case "temp":
		return a.each(func(f *file) error { return f.open(a.temp(f), os.O_CREATE|os.O_EXCL) })
	case "tmpfile":
		return a.each(func(f *file) error { return f.open(a.dir, unix.O_TMPFILE) })
	case "fsync":
		return a.each(func(f *file) error { return f.Sync() })
	case "range":
		return a.each(func(f *file) error {
			return unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER)
		})
	case "rename", "replace":
		err := a.each(func(f *file) error { return os.Rename(a.temp(f), filepath.Join(a.dir, f.name)) })
		return errors.Join(err, a.tell(named))
	case "link":
		err := a.each(func(f *file) error {
			return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.AT_FDCWD, filepath.Join(a.dir, f.name), unix.AT_SYMLINK_FOLLOW)
		})
		return errors.Join(err, a.tell(named))
	case "any":
		return a.files[len(a.files)-1].Sync()
	case "dir":
		return a.inDir((*os.File).Sync)
	case "barrier": // as state/disk has it
		return a.inFolder(filepath.Dir(a.dir), func(f *os.File) error { return errors.Join(unix.Syncfs(int(f.Fd())), f.Sync()) })
	case "move":
		return a.each(func(f *file) error {
			return os.Rename(filepath.Join(a.dir, f.name), filepath.Join(a.archive(), f.name))
		})
	case "copy": // to where it is to go, before it goes from here
		return a.each(a.copy)
	case "remove":
		return a.each(func(f *file) error { return os.Remove(filepath.Join(a.dir, f.name)) })
	case "archive":
		return a.inFolder(a.archive(), (*os.File).Sync)
	case "WriteNew":
		return a.verb(func(tree *state.Tree, f *file) error { return tree.WriteNew(inTree(f), content(f.name, f.version)) })
	case "Replace":
		return a.verb(func(tree *state.Tree, f *file) error { return tree.Replace(inTree(f), content(f.name, f.version)) })
	case "WriteAll":
		return a.writeAll()
	case "MoveAll":
		return a.moveAll()
	case "ack":
		return a.tell(acked)
	case "reader": // another process, which acts on what it sees
		return errors.Join(a.inDir((*os.File).Sync), a.tell(named))
	case "syncfs":
		return a.inDir(func(f *os.File) error { return unix.Syncfs(int(f.Fd())) })
	}
	return errors.New("no such step")
}

func (a *actor) each(do func(f *file) error) error {
	for i := range a.files {
		if err := do(&a.files[i]); err != nil {
			return err
		}
	}
	return nil
}

func (a *actor) temp(f *file) string { return filepath.Join(a.dir, ".tmp-"+f.name) }

func (f *file) open(name string, flags int) error {
	opened, err := os.OpenFile(name, os.O_RDWR|flags, 0o644)
	if err != nil {
		return err
	}
	f.File = opened
	_, err = f.Write(content(f.name, f.version))
	return err
}

// archive is a second directory.
func (a *actor) archive() string { return filepath.Join(a.dir, "archive") }

func (a *actor) copy(f *file) error {
	to := file{name: f.name, version: f.version}
	temp := filepath.Join(a.archive(), ".tmp-"+f.name)
	if err := to.open(temp, os.O_CREATE|os.O_EXCL); err != nil {
		return err
	}
	return errors.Join(to.Sync(), to.Close(), os.Rename(temp, filepath.Join(a.archive(), f.name)))
}

func (a *actor) inDir(do func(f *os.File) error) error { return a.inFolder(a.dir, do) }

func (a *actor) inFolder(dir string, do func(f *os.File) error) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}

// tell waits for an answer, so that nothing reaches the disk between a word and
// its mark in the record.
func (a *actor) tell(what string) error {
	for _, f := range a.files {
		what += fmt.Sprintf("%s:%d ", f.name, f.version)
	}
	fmt.Println(what)
	_, err := a.answers.ReadString('\n')
	return err
}

// inTree is where a file has its place for the verbs of package state.
func inTree(f *file) state.Path { return boxPath.Join(f.name) }

// tree is the one that the directory belongs to.
func (a *actor) tree() (*state.Tree, error) {
	return state.Open(strings.TrimSuffix(a.dir, "/"+string(boxPath)))
}

func (a *actor) verb(do func(tree *state.Tree, f *file) error) error {
	tree, err := a.tree()
	if err != nil {
		return err
	}
	return a.each(func(f *file) error { return do(tree, f) })
}

func (a *actor) writeAll() error {
	tree, err := a.tree()
	if err != nil {
		return err
	}
	var news []state.NewFile
	for i := range a.files {
		f := &a.files[i]
		news = append(news, state.NewFile{Path: inTree(f), Data: content(f.name, f.version)})
	}
	return errors.Join(tree.WriteAll(news)...)
}

func (a *actor) moveAll() error {
	tree, err := a.tree()
	if err != nil {
		return err
	}
	var moves []state.FileMove
	for i := range a.files {
		f := &a.files[i]
		moves = append(moves, state.FileMove{From: inTree(f), To: boxPath.Join("archive").Join(f.name)})
	}
	return errors.Join(tree.MoveAll(moves)...)
}
