package rig

import (
	"cmp"

	"github.com/gastown-chipset/chipset/chipset/process"
)

// Limits returns what a worker, the setup or a test may use up. The rig has a definition.
func (r *Rig) Limits() process.Limits {
	l := r.Def.Limits
	return process.Limits{Disk: l.Disk, Log: l.Log, Memory: cmp.Or(l.Memory, process.MachineMemory()/4*3), Tasks: l.Tasks}
}
