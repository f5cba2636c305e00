package main

import (
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

// What workers are allowed without being asked are commands of this program, and none
// that runs commands or decides.
func TestWorkerCommands(t *testing.T) {
	root := newRootCmd(&app{})
	for _, command := range agentcli.WorkerCommands() {
		found, rest, err := root.Find(strings.Fields(command))
		if err != nil || len(rest) > 0 || command != strings.TrimPrefix(found.CommandPath(), "chipset ") {
			t.Errorf("%q is no command: found %q, %v", command, found.CommandPath(), err)
		}
		switch strings.Fields(command)[0] {
		case "init", "up", "down", "supervise", "plugin", "mcp", "bridge", "approve", "deny", "answer", "reopen", "inbox", "permissions", "queue", "sling", "unsling":
			t.Errorf("%q is for the person alone", command)
		}
	}
}
