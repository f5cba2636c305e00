package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state/disk"
)

// Path names a file or folder relative to .chipset, with slashes, for example
// "state/hooks/polecat-alpha.json". Every verb checks all of its components.
type Path string

// Join appends components.
func (p Path) Join(elem ...string) Path {
	return Path(path.Join(append([]string{string(p)}, elem...)...))
}

// Dir is the folder that holds p.
func (p Path) Dir() Path { return Path(path.Dir(string(p))) }

// Base is the last component.
func (p Path) Base() string { return path.Base(string(p)) }

// StateDir, RunDir, LogDir and WorktreeDir are the four folders below .chipset.
const (
	StateDir    Path = "state"
	RunDir      Path = "run"
	LogDir      Path = "logs"
	WorktreeDir Path = "worktrees"
	rigFile     Path = "state/rig.json"
)

// Format is the version of the tree that this package reads and writes.
const Format = 1

// Identity is rig.json: the proof that a tree is the live one of its rig.
type Identity struct {
	RigID  RigID `json:"rig_id"`
	Format int   `json:"format"`
}

// Tree is one open .chipset folder. It is safe for concurrent use, in one
// process and across processes.
type Tree struct {
	root     string
	identity Identity
	verified atomic.Pointer[Stamp] // of the rig.json that was last found to match identity
	disk     disk.Disk
	pid      int // of this process; saves a system call for each temp name
	groups   groups
	syncs    dirSyncs

	looked   sync.Once
	features disk.Features // of the file system, once looked
	// barrier is nil unless groups settle by one. It is opened before any content is
	// written, so that it reports each failed write.
	barrier disk.Barrier

	mu      sync.Mutex
	durable map[Path]knownFolder // folders whose entry this process has synced
}

// Create makes a new tree in root (the .chipset folder, which is created if it is
// missing) with a new rig ID. When it returns nil, the tree and its identity are durable.
// Errors: ErrExists when root has a tree; ErrNoTree when state/ is not empty but has no
// rig.json.
func Create(root string) (*Tree, error) { return CreateAs(root, NewRigID()) }

// NewRigID returns a fresh rig-… name.
func NewRigID() RigID { return RigID("rig-" + Random(10)) }

// CreateAs is Create with a given rig ID.
func CreateAs(root string, id RigID) (*Tree, error) { return create(disk.OS{}, root, id) }

// CreateOn is Create on another disk, for tests.
func CreateOn(d disk.Disk, root string) (*Tree, error) { return create(d, root, NewRigID()) }

func create(d disk.Disk, root string, rigID RigID) (*Tree, error) {
	id := Identity{RigID: rigID, Format: Format}
	t := &Tree{root: filepath.Clean(root), identity: id, disk: d, pid: os.Getpid(), durable: map[Path]knownFolder{}}
	if err := d.Mkdir(t.root); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := d.SyncDir(filepath.Dir(t.root)); err != nil {
		return nil, err
	}
	for _, dir := range []Path{StateDir, RunDir, LogDir, WorktreeDir} {
		if err := t.mkdir(dir); err != nil {
			return nil, err
		}
	}
	if err := t.unowned(); err != nil {
		return nil, err
	}
	data, err := Encode(id)
	if err != nil {
		return nil, err
	}
	if err := t.WriteNew(rigFile, data); err != nil {
		return nil, err
	}
	return t, nil
}

// unowned refuses to create a tree over the remains of one that has lost its rig.json.
func (t *Tree) unowned() error {
	entries, err := t.List(StateDir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == rigFile.Base() {
			return fmt.Errorf("%s: %w", rigFile, ErrExists)
		}
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s: %w: %s is not empty, but rig.json is missing", t.root, ErrNoTree, StateDir)
	}
	return nil
}

// Open opens the live tree in root. It returns ErrNoTree when rig.json is
// missing, so that no caller makes a new tree over one that was moved away.
func Open(root string) (*Tree, error) { return OpenOn(disk.OS{}, root) }

// OpenOn is Open on another disk, for tests.
func OpenOn(d disk.Disk, root string) (*Tree, error) {
	t := &Tree{root: filepath.Clean(root), disk: d, pid: os.Getpid(), durable: map[Path]knownFolder{}}
	id, err := t.readIdentity()
	if errors.Is(err, ErrHardLinked) {
		// Without rig.json nothing, not even doctor, can open the tree.
		if _, err := t.BreakAllHardLinks(); err != nil {
			return nil, err
		}
		id, err = t.readIdentity()
	}
	if err != nil {
		return nil, err
	}
	t.identity = id
	return t, nil
}

// Close releases the file system of the tree, which can't be unmounted before. The tree
// must not be used afterwards. Published files are durable without Close.
func (t *Tree) Close() error {
	t.looked.Do(func() {}) // no barrier is opened from here on
	if t.barrier == nil {
		return nil
	}
	return t.barrier.Close()
}

// Verify returns ErrNoTree when the tree is no longer the one that was opened.
func (t *Tree) Verify() error {
	if err := t.check(rigFile); err != nil {
		return t.missing(err)
	}
	stamp, err := lstat(t.Abs(rigFile))
	if known := t.verified.Load(); err == nil && known != nil && *known == stamp {
		return nil
	}
	now := time.Now() //nolint:forbidigo // the age of a file, not what time it is
	id, err := t.readIdentity()
	if err != nil {
		return err
	}
	if id.RigID != t.identity.RigID {
		return fmt.Errorf("%s: %w: it says %s, expected %s", t.Abs(rigFile), ErrNoTree, id.RigID, t.identity.RigID)
	}
	if stamp.Settled(now) {
		t.verified.Store(&stamp)
	}
	return nil
}

// missing turns the ErrNotFound of rig.json into an ErrNoTree.
func (t *Tree) missing(err error) error {
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("%s: %w: rig.json is missing", t.root, ErrNoTree)
	}
	return err
}

func (t *Tree) readIdentity() (Identity, error) {
	var id Identity
	data, err := t.Read(rigFile, MaxFile)
	if err != nil {
		return id, t.missing(err)
	}
	if err := Decode(string(rigFile), data, &id); err != nil {
		return id, err
	}
	if id.RigID == "" || id.Format != Format {
		return id, &Corruption{Path: string(rigFile), Reason: fmt.Sprintf("format %d is not %d", id.Format, Format)}
	}
	return id, nil
}

// RigID is the ID of the tree's rig.
func (t *Tree) RigID() RigID { return t.identity.RigID }

// Root is the absolute path of .chipset.
func (t *Tree) Root() string { return t.root }

// Abs is the absolute path of p.
func (t *Tree) Abs(p Path) string { return filepath.Join(t.root, filepath.FromSlash(string(p))) }

// at is the inverse of Abs.
func (t *Tree) at(abs string) Path {
	return Path(filepath.ToSlash(strings.TrimPrefix(abs, t.root+string(filepath.Separator))))
}

// valid returns an error for a path that could leave the tree.
func (p Path) valid() error {
	bad := p == "" || strings.ContainsRune(string(p), 0)
	for part := range strings.SplitSeq(string(p), "/") {
		bad = bad || part == "" || part == "." || part == ".." || len(part) > 255
	}
	if bad {
		return &Corruption{Path: string(p), Reason: "invalid path", Cause: ErrBadID}
	}
	return nil
}

// check returns an error for a path that could leave the tree, and for one that leads
// through a symbolic link.
func (t *Tree) check(p Path) error {
	if err := p.valid(); err != nil {
		return err
	}
	full := t.Abs(p)
	for at := len(t.root) + 1; ; at++ {
		next := strings.IndexByte(full[at:], filepath.Separator)
		if next < 0 {
			return nil
		}
		at += next
		stamp, err := lstat(full[:at])
		if err != nil {
			return wrapPath(p, err)
		}
		if !stamp.IsDir() {
			return &Corruption{Path: string(p), Reason: "reached through " + stamp.kind(), Cause: ErrNotRegular}
		}
	}
}

// folder returns an error unless dir is a folder and its path leads through no link.
func (t *Tree) folder(dir Path) error {
	if err := t.check(dir); err != nil {
		return err
	}
	info, err := os.Lstat(t.Abs(dir))
	if err != nil {
		return wrapPath(dir, err)
	}
	if !info.IsDir() {
		return &Corruption{Path: string(dir), Reason: "it is " + kind(info.Mode()) + ", not a folder", Cause: ErrNotRegular}
	}
	return nil
}

func kind(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode.IsDir():
		return "a folder"
	}
	return "a file"
}

// wrapPath wraps an error of the system with the path relative to .chipset. A missing
// file becomes an ErrNotFound, and a file in place of a folder a Corruption.
func wrapPath(p Path, err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", p, ErrNotFound)
	case errors.Is(err, unix.ENOTDIR):
		return &Corruption{Path: string(p), Reason: "a file stands where a folder belongs", Cause: ErrNotRegular}
	case errors.As(err, &pe):
		return &fs.PathError{Op: pe.Op, Path: string(p), Err: pe.Err}
	case errors.As(err, &le):
		return fmt.Errorf("%s %s: %w", le.Op, p, le.Err)
	}
	return fmt.Errorf("%s: %w", p, err)
}

// Read returns the content of a regular file of at most limit bytes. Errors: ErrNotFound;
// a *Corruption when the file is too large, not regular, or has a second hard link. A FIFO
// or a device can't make it hang.
func (t *Tree) Read(p Path, limit int64) ([]byte, error) {
	f, size, err := t.openRegular(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > limit {
		return nil, &Corruption{Path: string(p), Cause: ErrTooLarge,
			Reason: fmt.Sprintf("%d bytes, more than the %d allowed", size, limit)}
	}
	data := make([]byte, size)
	n, err := f.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, wrapPath(p, err)
	}
	return data[:n], nil
}

// ReadPart returns at most limit bytes of a file of any size, from an offset on, and that
// offset. A negative offset counts from the end of the file; one outside of the file is
// moved to the nearer end. Errors are those of Read, except for the size.
func (t *Tree) ReadPart(p Path, offset, limit int64) ([]byte, int64, error) {
	f, size, err := t.openRegular(p)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if offset < 0 {
		offset += size
	}
	offset = min(max(0, offset), size)
	data := make([]byte, min(limit, size-offset))
	n, err := f.ReadAt(data, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, offset, wrapPath(p, err)
	}
	return data[:n], offset, nil
}

// openRegular opens a regular file of the tree and returns its size.
func (t *Tree) openRegular(p Path) (*os.File, int64, error) {
	if err := t.check(p); err != nil {
		return nil, 0, err
	}
	f, err := os.OpenFile(t.Abs(p), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		return nil, 0, &Corruption{Path: string(p), Reason: "it is a link or a special file", Cause: ErrNotRegular}
	}
	if err != nil {
		return nil, 0, wrapPath(p, err)
	}
	info, err := f.Stat()
	if err != nil {
		err = wrapPath(p, err)
	} else {
		err = t.regular(p, info)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// regular returns an error unless info is that of a regular file with one name, not
// counting temp files beside it: on ext4 without a journal a power cut can leave both
// names of a rename.
func (t *Tree) regular(p Path, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return &Corruption{Path: string(p), Reason: "it is " + kind(info.Mode()), Cause: ErrNotRegular}
	}
	st, ok := info.Sys().(*unixStat)
	if !ok || st.Nlink <= 1 {
		return nil
	}
	entries, err := os.ReadDir(t.Abs(p.Dir()))
	if err != nil {
		return wrapPath(p, err)
	}
	elsewhere := int(st.Nlink) - 1
	for _, e := range entries {
		if other, err := e.Info(); err == nil && IsTemp(e.Name()) && os.SameFile(info, other) {
			elsewhere--
		}
	}
	if elsewhere == 0 {
		return nil
	}
	return &Corruption{Path: string(p), Reason: "it has a second hard link", Cause: ErrHardLinked}
}

// Exists reports whether there is a file, folder or link at p.
func (t *Tree) Exists(p Path) (bool, error) {
	if err := t.check(p); errors.Is(err, ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	_, err := os.Lstat(t.Abs(p))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, wrapPath(p, err)
}

// List returns the entries of a folder in the order of their names, without temp files
// and other dot-files, and none for a folder that does not exist. Errors: a *Corruption
// if dir is not a folder.
func (t *Tree) List(dir Path) ([]fs.DirEntry, error) {
	if err := t.folder(dir); errors.Is(err, ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	all, err := os.ReadDir(t.Abs(dir))
	if err != nil {
		return nil, wrapPath(dir, err)
	}
	visible := all[:0]
	for _, e := range all {
		if !IsTemp(e.Name()) {
			visible = append(visible, e)
		}
	}
	return visible, nil
}
