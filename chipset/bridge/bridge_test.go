package bridge

import (
	"os"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
)

func TestMain(m *testing.M) { os.Exit(rigtest.Main(m)) }

func TestParsePair(t *testing.T) {
	if p, err := ParsePair("Researcher=ext"); err != nil || p != (Pair{"Researcher", "ext"}) {
		t.Errorf("%+v, %v", p, err)
	}
	for _, bad := range []string{"", "=x", "../x=y", "a/b=y", ".x=y", "-x=y", "X", "x=Y Z", "x=", strings.Repeat("x", 65) + "=y"} {
		if p, err := ParsePair(bad); err == nil {
			t.Errorf("%q became %+v", bad, p)
		}
	}
}

func TestNobodyOfTheRigStandsForAForeignAgent(t *testing.T) {
	r := rigtest.New(t, "")
	b := &Bridge{Rig: r, Theirs: []Pair{{Foreign: "x", Agent: "witness"}}}
	if err := b.Register(t.Context()); err == nil {
		t.Error("the witness was given away")
	}
}
