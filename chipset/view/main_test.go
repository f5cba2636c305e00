package view

import (
	"os"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/state"
)

const alpha, bravo state.AgentID = rigtest.Alpha, "polecat-bravo"

func TestMain(m *testing.M) { os.Exit(rigtest.Main(m)) }
