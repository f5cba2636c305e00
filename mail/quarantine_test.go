package mail

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state"
)

func TestWhatDoesNotBelongGoesToQuarantine(t *testing.T) {
	p := newPost(t)
	good := p.send(t, hello())
	stamp := func(second string) string { return "2026-03-05T10-31-" + second + "Z-polecat-alpha.json" }
	whole := func(second string) string {
		return fmt.Sprintf(foreign, "polecat-alpha", "2026-03-05T10:31:"+second+"Z")
	}
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte(whole("01")), 0o644))
	abs := func(name string) string { return p.tree.Abs(p.box.Dir().Join(name)) }
	must(t, os.Link(outside, abs(stamp("01"))))
	must(t, os.Symlink(outside, abs(stamp("02"))))
	must(t, unix.Mkfifo(abs(stamp("03")), 0o644))
	must(t, os.Mkdir(abs(stamp("04")), 0o755))
	p.plant(t, stamp("05"), "")
	p.plant(t, stamp("06"), "{")
	p.plant(t, stamp("07"), whole("07")+strings.Repeat(" ", MaxSize))
	p.plant(t, stamp("08"), strings.Replace(whole("08"), `"to":"mayor"`, `"to":"witness"`, 1))
	p.plant(t, stamp("09"), strings.Replace(whole("09"), `"from": "polecat-alpha"`, `"from": "witness"`, 1))
	p.plant(t, stamp("10"), whole("59"))
	p.plant(t, stamp("11"), strings.Replace(whole("11"), `"body":"b",`, "", 1))
	p.plant(t, "README", "hello")
	p.plant(t, "notes.json", whole("12"))
	all, bad, err := p.box.List()
	if err != nil || names(all) != string(good) || len(bad) != 13 {
		t.Fatalf("%s, %d bad, %v; want the good one and 13 bad", names(all), len(bad), err)
	}
	for _, c := range bad {
		if moved, err := p.box.Quarantine(t.Context(), c, now); err != nil || !moved {
			t.Errorf("%s: %v, %v", c.Path, moved, err)
		}
		if moved, err := p.box.Quarantine(t.Context(), c, now); err != nil || moved {
			t.Errorf("%s again: %v, %v", c.Path, moved, err)
		}
	}
	if all, bad, err := p.box.List(); err != nil || len(all) != 1 || len(bad) != 0 {
		t.Errorf("afterwards %s, %v, %v", names(all), bad, err)
	}
	if q, err := p.tree.Quarantined(); err != nil || len(q) != 13 {
		t.Errorf("%d in quarantine, %v", len(q), err)
	}
	if data, _ := os.ReadFile(outside); string(data) != whole("01") {
		t.Error("the file outside was changed")
	}
}

func TestQuarantineLooksAgain(t *testing.T) {
	p := newPost(t)
	const name = "2026-03-05T10-30-00Z-polecat-alpha.json"
	p.plant(t, name, "{")
	_, bad, _ := p.box.List()
	p.plant(t, name, fmt.Sprintf(foreign, "polecat-alpha", "2026-03-05T10:30:00Z"))
	if moved, err := p.box.Quarantine(t.Context(), bad[0], now); err != nil || moved {
		t.Errorf("whole by now: %v, %v", moved, err)
	}
	elsewhere := &state.Corruption{Path: "state/mail/witness/x.json"}
	if moved, err := p.box.Quarantine(t.Context(), elsewhere, now); err == nil || moved {
		t.Errorf("another's mailbox: %v, %v", moved, err)
	}
}

// What stands in the archive's place and is not a folder goes; the archive stays.
func TestQuarantineOfTheArchivesPlace(t *testing.T) {
	p := newPost(t)
	p.plant(t, archiveName, "x")
	_, bad, err := p.box.List()
	if err != nil || len(bad) != 1 {
		t.Fatalf("%v, %v", bad, err)
	}
	if moved, err := p.box.Quarantine(t.Context(), bad[0], now); err != nil || !moved {
		t.Errorf("a file: %v, %v", moved, err)
	}
	must(t, os.Mkdir(p.tree.Abs(p.box.Dir().Join(archiveName)), 0o755))
	if moved, err := p.box.Quarantine(t.Context(), bad[0], now); err == nil || moved {
		t.Errorf("the archive: %v, %v", moved, err)
	}
}
