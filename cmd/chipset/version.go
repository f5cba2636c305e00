package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/gastown-chipset/chipset/state"
)

func newVersionCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of chipset and of its state format",
		Example: "  chipset version",
		Args:    nargs(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			v := currentVersion()
			return a.did(v, nil, "%s\n", v)
		},
	}
}

// versionInfo is what version --json prints.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Format   int    `json:"format"`
}

// currentVersion returns what the build wrote into this binary.
func currentVersion() versionInfo {
	v := versionInfo{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Format: state.Format}
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			v.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Revision = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	return v
}

func (v versionInfo) String() string {
	return fmt.Sprintf("chipset %s (%s, %s, state format %d)", v.Version, v.Go, v.Platform, v.Format)
}
