package blockcut_test

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/statetest"
	"github.com/gastown-chipset/chipset/state/statetest/blockcut"
)

const (
	ext4      = "ext4"
	noJournal = "ext4-nojournal"
	xfs       = "xfs"
	btrfs     = "btrfs"
)

// sequence is one way to publish a file, or a group of them.
type sequence struct {
	// steps are those of actor.do; "group" publishes groupSize files at once, each
	// step for all of them before the next.
	steps string
	// breaks names the file systems on which a power cut loses what was
	// acknowledged, or leaves a name with torn content.
	breaks []string
	// rarely names those on which it takes a rare order of writes: nothing may be
	// built on it, and no test can wait for it.
	rarely []string
}

// sequences is the table that docs/durability.md explains.
func sequences() []sequence {
	all := []string{ext4, noJournal, xfs, btrfs}
	return []sequence{
		// One file. The first is the protocol of package state.
		{steps: "temp fsync rename dir"},
		{steps: "temp fsync rename", breaks: all},
		{steps: "temp rename dir", breaks: all},
		{steps: "temp rename", breaks: all},
		{steps: "temp fsync replace dir"},
		{steps: "temp fsync replace", breaks: all},
		{steps: "temp replace dir", breaks: all},
		{steps: "temp fsync rename reader dir"},
		{steps: "temp rename reader fsync dir", breaks: []string{ext4, xfs, btrfs}, rarely: []string{noJournal}},
		{steps: "temp range rename fsync", rarely: []string{noJournal}},
		{steps: "temp range rename reader fsync", breaks: []string{btrfs}, rarely: []string{noJournal}},
		{steps: "tmpfile fsync link dir", breaks: []string{noJournal}},
		{steps: "tmpfile fsync link fsync"},
		{steps: "tmpfile fsync link fsync dir"},
		{steps: "tmpfile range link reader fsync", breaks: []string{btrfs}, rarely: []string{noJournal}},
		// Many files. A barrier is syncfs and an fsync of another directory.
		{steps: "group temp fsync rename dir"},
		{steps: "group temp barrier rename dir"},
		{steps: "group temp syncfs rename syncfs", breaks: []string{noJournal}},
		{steps: "group temp barrier rename", breaks: all},
		{steps: "group temp any rename dir", breaks: all},
		{steps: "group temp range any rename dir", breaks: []string{noJournal, btrfs}},
		{steps: "group tmpfile barrier link dir", breaks: []string{noJournal}},
		{steps: "group temp barrier rename barrier"},
		{steps: "group tmpfile barrier link barrier"},
		{steps: "group temp range rename reader barrier", breaks: []string{btrfs}, rarely: []string{noJournal}},
		// To another directory: at every moment the file is in one of them.
		{steps: "temp fsync rename dir ack move archive dir"},
		{steps: "temp fsync rename dir ack move reader archive dir", breaks: []string{noJournal}},
		{steps: "temp fsync rename dir ack copy archive remove reader dir"},
		// The verbs of package state, each with the short cuts that it takes there.
		{steps: "WriteNew"},
		{steps: "Replace"},
		{steps: "group WriteNew"},
		{steps: "group WriteAll"},
		{steps: "group WriteAll ack MoveAll"},
		{steps: "temp fsync rename dir ack copy archive remove dir"},
	}
}

// TestWhatFileSystemsKeep cuts the power in the midst of sequences of system
// calls on real file systems. What holds on every one of them is what package
// state may promise; each sequence that must break shows that the disk is able
// to show it.
func TestWhatFileSystemsKeep(t *testing.T) {
	images, seed := statetest.Number(t, "CHIPSET_IMAGES", 6), statetest.Number(t, "CHIPSET_SEED", 1)
	if !blockcut.Isolated(t) {
		return
	}
	t.Logf("CHIPSET_IMAGES=%d CHIPSET_SEED=%d", images, seed)
	for _, f := range blockcut.FileSystems() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			lab := blockcut.NewLab(t, f)
			if err := lab.Prepare(fill); err != nil {
				t.Fatal(err)
			}
			for _, s := range sequences() {
				t.Run(s.steps, func(t *testing.T) { check(t, lab, f.Name, s, images, uint64(seed)) })
			}
		})
	}
}

// maxRecords is how many more records a sequence that must break is given to show it.
const maxRecords = 40

func check(t *testing.T, lab *blockcut.Lab, on string, s sequence, images int, seed uint64) {
	breaks := slices.Contains(s.breaks, on)
	got := try(t, lab, s, images, seed)
	// Which writes are in flight at a cut is chance, so a few images may show
	// nothing: a sequence that must break gets more of them, of new records.
	for more := range uint64(maxRecords) {
		if !breaks || got.broken() > 0 {
			break
		}
		got = try(t, lab, s, images, seed+(more+1)<<32)
	}
	statetest.Figures(t, "%-14s %-50s %s", on, s.steps, got)
	if got.dead != nil {
		t.Errorf("a disk can't be mounted: %v", got.dead)
	}
	switch {
	case breaks && got.broken() == 0:
		t.Errorf("none of %d images shows what is wrong with it", got.images*(maxRecords+1))
	case !breaks && got.broken() > 0 && !slices.Contains(s.rarely, on):
		t.Error(got.first)
	}
}

// oldFiles is the number of files that are there before: nothing may take them.
const oldFiles = 40

func oldName(i int) string { return fmt.Sprintf("old-%d", i) }

// boxPath is the folder that the files are published in: one of a state tree, so
// that the verbs of package state can do it too.
const boxPath = state.Path("state/mail/box")

func rootOf(dir string) string { return filepath.Join(dir, ".chipset") }

func box(dir string) string { return filepath.Join(rootOf(dir), string(boxPath)) }

func fill(dir string) error {
	tree, err := state.Create(rootOf(dir))
	if err != nil {
		return err
	}
	if err := tree.Close(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(box(dir), "archive"), 0o755); err != nil {
		return err
	}
	names := []string{"replaced"}
	for i := range oldFiles {
		names = append(names, oldName(i))
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(box(dir), name), content(name, 0), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// outcome counts the images of one sequence.
type outcome struct {
	images, lost, torn int
	writes, flushes    float64 // for one round
	first              string
	dead               error
}

func (o outcome) broken() int { return o.lost + o.torn }

func (o outcome) String() string {
	return fmt.Sprintf("%4.1f writes %4.1f flushes, of %d images %d lost, %d torn", o.writes, o.flushes, o.images, o.lost, o.torn)
}

func try(t *testing.T, lab *blockcut.Lab, s sequence, images int, seed uint64) outcome {
	t.Helper()
	record, err := lab.Record(func(r *blockcut.Record) error { return direct(r, s.steps, box(lab.Dir())) })
	if err != nil {
		t.Fatal(err)
	}
	marks := record.Marks()
	writes, flushes := record.Counts(marks[0], marks[len(marks)-1])
	o := outcome{images: images, writes: float64(writes) / rounds, flushes: float64(flushes) / rounds}
	for _, cut := range record.Cuts(images, seed) {
		err := lab.Look(record.Image(cut), func(dir string) error {
			lost, torn, err := compare(box(dir), record.Told(cut.At))
			if len(lost) > 0 {
				o.lost++
			}
			if len(torn) > 0 {
				o.torn++
			}
			if len(lost)+len(torn) > 0 {
				o.first = cmp.Or(o.first, fmt.Sprintf("%+v: lost %v, torn %v", cut, lost, torn))
			}
			return err
		})
		if err != nil && o.dead == nil {
			o.dead = fmt.Errorf("%+v: %w", cut, err)
		}
	}
	return o
}

// direct runs the actor and marks what it says.
func direct(r *blockcut.Record, steps, dir string) error {
	cmd := exec.Command("/proc/self/exe", dir)
	cmd.Env = append(os.Environ(), actorVar+"="+steps)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		r.Mark(lines.Text())
		if _, err := fmt.Fprintln(in); err != nil {
			break // it has ended early; Wait says why
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", steps, err, &errs)
	}
	return nil
}

// compare holds the directory against what had been said before the cut.
func compare(dir string, told []string) (lost, torn []string, err error) {
	// A process that another test starts at this moment would hold an open file
	// until its exec, and the disk could not be unmounted.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	promised := map[string]int{"replaced": 0}
	for i := range oldFiles {
		promised[oldName(i)] = 0
	}
	for _, text := range told {
		rest, ok := strings.CutPrefix(text, acked)
		if !ok {
			continue
		}
		for _, word := range strings.Fields(rest) {
			name, version, _ := strings.Cut(word, ":")
			if promised[name], err = strconv.Atoi(version); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, folder := range []string{dir, filepath.Join(dir, "archive")} {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") || e.IsDir() {
				continue
			}
			version, whole := read(filepath.Join(folder, e.Name()))
			if !whole {
				torn = append(torn, e.Name())
			}
			if version >= promised[e.Name()] {
				delete(promised, e.Name())
			}
		}
	}
	for name := range promised {
		lost = append(lost, name)
	}
	slices.Sort(lost)
	return lost, torn, nil
}

// read tells which version of itself a file holds; a torn one holds none.
func read(name string) (version int, whole bool) {
	data, err := os.ReadFile(name)
	if err != nil {
		return -1, false
	}
	for v := range rounds + 1 {
		if bytes.Equal(data, content(filepath.Base(name), v)) {
			return v, true
		}
	}
	return -1, false
}
