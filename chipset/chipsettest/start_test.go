package chipsettest_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
)

// What packages set up before main runs is paid for by every command, hook and sandbox. Time is noisy; what they
// allocate is not. A new library that fills tables or compiles patterns shows here: is it worth what each start pays?
func TestStartAllocatesLittle(t *testing.T) {
	const most = 3000 // 2,835 with Go 1.26
	cmd := exec.Command(chipsettest.Build(t), "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines, allocations := "", 0
	for line := range strings.Lines(string(out)) { // init PACKAGE @N ms, N ms clock, N bytes, N allocs
		fields := strings.Fields(line)
		if len(fields) == 11 && fields[0] == "init" {
			n, _ := strconv.Atoi(fields[9])
			allocations += n
			lines += line
		}
	}
	if allocations == 0 || allocations > most {
		t.Errorf("packages make %d allocations before main, want 1 to %d:\n%s", allocations, most, lines)
	}
}
