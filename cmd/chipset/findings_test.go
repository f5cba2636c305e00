package main

import (
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/doctor"
	"github.com/gastown-chipset/chipset/chipset/view/screen"
)

func TestFindingsAsText(t *testing.T) {
	var out strings.Builder
	if err := writeFindings(&out, []doctor.Finding{
		{Rule: "bead-hook", Path: "state/work/gt-\x1b[31maaaaa.json", Detail: "it is lost", Severity: doctor.Error, Hint: "look for it"},
		{Rule: "leftover", Path: "state/work/.tmp-1", Detail: "old", Severity: doctor.Warning, Fixed: true, Hint: "gone"},
	}, true, screen.Options{}); err != nil {
		t.Fatal(err)
	}
	const want = `error    bead-hook               state/work/gt-[31maaaaa.json
         it is lost
         → look for it
fixed    leftover                state/work/.tmp-1
         old
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if err := writeFindings(&out, nil, true, screen.Options{}); err != nil {
		t.Fatal(err)
	}
	if out.String() != "everything is in order\n" {
		t.Errorf("nothing found: %q", out.String())
	}
	out.Reset()
	if err := writeFindings(&out, nil, false, screen.Options{}); err != nil {
		t.Fatal(err)
	}
	if out.String() != "" {
		t.Errorf("nothing found on half a look: %q", out.String())
	}
}
