package chipsettest_test

import (
	"os"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
)

func TestMain(m *testing.M) { os.Exit(chipsettest.Main(m)) }
