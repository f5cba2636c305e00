package chipsettest_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/state/statetest"
	"github.com/gastown-chipset/chipset/state/statetest/blockcut"
)

// rigOn is a rig on a disk of one file system.
type rigOn struct {
	t    *testing.T
	w    *chipsettest.World
	lab  *blockcut.Lab
	fs   string
	seed uint64
	// green holds the commits on which the test command succeeded. It lies on
	// another disk, which nobody cuts.
	green string
	// base is the commit that the target had at the beginning.
	base string
}

const realDefinition = `rig: {name: cuts, bead_prefix: c, tick: 300ms, patrol: 300ms}
agents:
  agents:
    - {name: mayor, role: mayor}
    - {name: witness, role: witness}
    - {name: refinery, role: refinery}
    - {name: polecat-pool, role: polecat, count: 2}
worker: {default: sh, grace: 1s}
merge: {target: main, test: "sh test.sh"}
gupp: {limits: {restart_cooldown: 0s}}
sandbox: off
`

// TestRealFileSystems runs the real binary on real file systems and cuts the
// power: right after acknowledgements, anywhere, and again while it recovers.
// CHIPSET_IMAGES is the number of power cuts for each file system and scenario;
// CHIPSET_RIGS that of whole rigs.
func TestRealFileSystems(t *testing.T) {
	images, rigs := statetest.Number(t, "CHIPSET_IMAGES", 2), statetest.Number(t, "CHIPSET_RIGS", 1)
	only := os.Getenv("CHIPSET_FS")
	seed := fixedSeed(t)
	if !blockcut.Isolated(t) {
		return
	}
	t.Logf("CHIPSET_IMAGES=%d CHIPSET_RIGS=%d CHIPSET_SEED=%d", images, rigs, seed)
	bin := chipsettest.Build(t)
	for _, f := range blockcut.FileSystems() {
		if only != "" && only != f.Name {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			r := newRigOn(t, f, bin, seed)
			r.play("mail", r.sendMail, images)
			r.play("hook", r.moveHook, images)
			if last := r.play("rig", r.landBeads, rigs); last != nil {
				if err := r.lab.Restart(last); err != nil {
					t.Fatal(err)
				}
				r.play("rig, again", r.goOn, rigs)
			}
		})
	}
}

func newRigOn(t *testing.T, f blockcut.FileSystem, bin string, seed uint64) *rigOn {
	r := &rigOn{t: t, lab: blockcut.NewLab(t, f), fs: f.Name, seed: seed, green: filepath.Join(t.TempDir(), "green")}
	err := r.lab.Prepare(func(dir string) error {
		r.w = chipsettest.New(t, bin, chipsettest.Options{Definition: realDefinition, Dir: filepath.Join(dir, "repo")})
		r.w.Write("test.sh", fmt.Sprintf("for f in marks/*; do [ ! -f \"$f\" ] || [ \"$(cat $f)\" = ran ] || exit 1; done\ngit rev-parse HEAD >> %s\n", r.green))
		r.w.Git("add", "test.sh")
		r.w.Git("commit", "-q", "-m", "test")
		r.base = r.w.Git("rev-parse", "main")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// scenario does something that is recorded, and returns what must be true after
// a power cut, given what had been acknowledged.
type scenario func(record *blockcut.Record) (check func(told []string))

// play returns the disk that the last of its power cuts left, which is not one
// right after an acknowledgement unless there is no other.
func (r *rigOn) play(name string, do scenario, images int) (last *blockcut.Image) {
	r.t.Helper()
	var check func(told []string)
	record, err := r.lab.Record(func(record *blockcut.Record) error {
		check = do(record)
		return nil
	})
	if err != nil {
		r.t.Fatalf("%s: %v", name, err)
	}
	writes, flushes := record.Counts(0, record.Len())
	for _, cut := range record.Cuts(images, r.seed) {
		failed := r.t.Failed()
		last = record.Image(cut)
		err := r.lab.Look(last, func(string) error {
			check(record.Told(cut.At))
			return nil
		})
		if err != nil {
			r.t.Errorf("%s: the disk can't be used: %v", name, err)
		}
		if r.t.Failed() && !failed {
			r.t.Errorf("%s on %s failed after %+v of %d", name, r.fs, cut, record.Len())
		}
	}
	statetest.Figures(r.t, "%-14s %-10s %d power cuts of %d writes, %d flushes, %d acknowledgements", r.fs, name, images, writes, flushes, len(record.Marks()))
	return last
}

// body is long enough to be torn, and no two are alike.
func body(token string) string { return strings.Repeat(token+" ", 5000/(len(token)+1)) }

// sendMail sends one after the other, from many processes, and in a batch, and
// archives in between.
func (r *rigOn) sendMail(record *blockcut.Record) func(told []string) {
	tell := func(token string) { record.Mark("mail " + token) }
	send := func(token, to string) []string {
		return []string{"mail", "send", to, "--id", token, "-s", token, "-b", body(token)}
	}
	for i := range 3 {
		token := fmt.Sprintf("single%d", i)
		r.w.Chipset(send(token, "polecat-alpha")...)
		tell(token)
	}
	r.w.Chipset("mail", "archive", "--mailbox", "polecat-alpha", "--older-than", "0s", "--unread")
	record.Mark("archived")
	var running []*chipsettest.Process
	for i := range 6 {
		running = append(running, r.w.Start(send(fmt.Sprintf("many%d", i), "polecat-bravo")...))
	}
	for i, p := range running {
		if <-p.Done(); p.Cmd.ProcessState.ExitCode() != 0 {
			r.t.Errorf("send: %s", p.Output)
		}
		tell(fmt.Sprintf("many%d", i))
	}
	var lines strings.Builder
	for i := range 24 {
		token := fmt.Sprintf("batch%d", i)
		fmt.Fprintf(&lines, "{\"to\":\"mayor\",\"subject\":%q,\"id\":%q,\"body\":%q}\n", token, token, body(token))
	}
	r.batch(lines.String(), func(line int) { tell(fmt.Sprintf("batch%d", line)) })
	return func(told []string) {
		r.checkTokens(told, false)
		r.w.Chipset("doctor", "--fix")
		r.checkTokens(told, true)
		checkClean(r.t, r.w)
	}
}

// batch sends a message for each line, and tells of each as soon as its
// acknowledgement is printed.
func (r *rigOn) batch(lines string, tell func(line int)) {
	r.t.Helper()
	cmd := r.w.Command(r.w.Bin, "mail", "send", "--batch")
	cmd.Stdin = strings.NewReader(lines)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	n := 0
	for printed := bufio.NewScanner(out); printed.Scan(); n++ {
		if strings.Contains(printed.Text(), "error") {
			r.t.Errorf("line %d: %s", n, printed.Text())
		}
		tell(n)
	}
	if err := cmd.Wait(); err != nil || n != strings.Count(lines, "\n") {
		r.t.Errorf("send --batch: %v, %d lines acknowledged", err, n)
	}
}

// checkTokens reads the mailboxes themselves: every message is whole, and what
// was acknowledged is there; once, when what a cut left half done is healed.
func (r *rigOn) checkTokens(told []string, once bool) {
	r.t.Helper()
	var files []string
	for _, pattern := range []string{"*.json", filepath.Join("archive", "*.json")} {
		found, err := filepath.Glob(filepath.Join(r.w.Dir, ".chipset", "state", "mail", "*", pattern))
		if err != nil {
			r.t.Fatal(err)
		}
		files = append(files, found...)
	}
	count := map[string]int{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			r.t.Fatal(err)
		}
		m := decodeMessage(data)
		if m.ID == "" || m.Body != body(m.ID) {
			r.t.Errorf("%s is torn:\n%.200s", file, data)
		}
		count[m.ID]++
	}
	for _, text := range told {
		token, ok := strings.CutPrefix(text, "mail ")
		if ok && count[token] == 0 {
			r.t.Errorf("message %s was acknowledged and is gone", token)
		}
	}
	for token, n := range count {
		if once && n > 1 {
			r.t.Errorf("message %s is there %d times", token, n)
		}
	}
}

// moveHook sends a hook through its states.
func (r *rigOn) moveHook(record *blockcut.Record) func(told []string) {
	const agent = "polecat-alpha"
	first := readHook(r.t, r.w, agent)
	history := []hookAt{first}
	id := r.w.Chipset("work", "add", "on the hook", "-d", "true")
	record.Mark("bead " + id)
	for range 2 {
		for _, args := range [][]string{
			{"hook", "set", agent, id},
			{"hook", "activate", "--as", agent},
			{"hook", "complete", "--as", agent},
			{"hook", "clear", agent},
		} {
			r.w.Chipset(args...)
			record.Mark(fmt.Sprintf("hook %d", len(history)))
			history = append(history, readHook(r.t, r.w, agent))
		}
	}
	return func(told []string) {
		least := 0
		for _, text := range told {
			if bead, ok := strings.CutPrefix(text, "bead "); ok && !strings.Contains(r.w.Chipset("work", "list"), bead) {
				r.t.Errorf("bead %s was acknowledged and is gone", bead)
			}
			if n, err := fmt.Sscanf(text, "hook %d", &least); n == 0 && strings.HasPrefix(text, "hook ") {
				r.t.Fatal(err)
			}
		}
		at := readHook(r.t, r.w, agent)
		if i := slices.Index(history, at); i < least {
			r.t.Errorf("hook is %+v; acknowledged was %+v", at, history[least])
		}
	}
}

// landBeads lets a whole rig work. Its only acknowledgement is the last, so that
// the other power cuts fall anywhere.
func (r *rigOn) landBeads(record *blockcut.Record) func(told []string) {
	for i := range 3 {
		script := "mkdir -p marks\necho ran >> marks/$CHIPSET_BEAD\ngit add -A\ngit commit -q -m \"mark $CHIPSET_BEAD\"\n"
		r.w.Chipset("work", "add", fmt.Sprintf("mark %d", i), "-d", script)
	}
	return r.goOn(record)
}

// goOn starts the rig, as after a power cut, and lets it finish.
func (r *rigOn) goOn(record *blockcut.Record) func(told []string) {
	r.finish()
	record.Mark("landed")
	return func(told []string) {
		r.checkTarget()
		if r.fs == "ext4-nojournal" {
			// Old names come back there over the inodes of new files. It is for the next
			// start, or for the doctor, to part them.
			r.w.Chipset("doctor", "--fix")
		}
		if slices.Contains(told, "landed") {
			checkLanded(r.t, r.w, r.beads())
		}
		r.finish()
		checkLanded(r.t, r.w, r.beads())
		r.checkTarget()
	}
}

func (r *rigOn) finish() {
	r.t.Helper()
	r.w.Chipset("doctor", "--fix")
	r.w.Chipset("up", "--until-idle", "--timeout", "300s")
}

func (r *rigOn) beads() []string {
	r.t.Helper()
	var ids []string
	for _, b := range r.w.Beads() {
		ids = append(ids, string(b.ID))
	}
	return ids
}

// checkTarget holds what is on the target against the commits that were tested.
func (r *rigOn) checkTarget() {
	r.t.Helper()
	green, err := os.ReadFile(r.green)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, commit := range strings.Fields(r.w.Git("rev-list", r.base+"..main")) {
		if !strings.Contains(string(green), commit) {
			r.t.Errorf("%s is on main, and no test was green on it", commit)
		}
	}
	if out, err := r.w.TryGit("fsck", "--no-dangling", "--no-progress", "main"); err != nil {
		r.t.Errorf("main is broken: %v\n%s", err, out)
	}
}
