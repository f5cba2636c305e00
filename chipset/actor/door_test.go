package actor

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Whoever knocks, the changes of a rig go through this package: the command line,
// MCP, clients' hooks, bridges and imports call no changing verb of a store. What
// still does is listed, and the list only gets shorter.
func TestOneDoor(t *testing.T) {
	verb := regexp.MustCompile(`(Beads|Hooks|Queue|Convoys|Dispatch|Retire|Incidents|Permissions|Agents|Handoffs)(\.By\([^)]*\))?` +
		`\.(Update|UpdateThen|Upsert|Create|CreateAll|Put|Remove|Add|Edit|Move|Set|Clear|Activate|Resume|Touch|Complete|Ensure|Submit|Reach|Publish|Undo|` +
		`Decide|Revoke|Register|Adopt|SetStatus|Begin|End|ChangeCard|Write)\(|\.(MarkRead|MarkSeen|ArchiveOld|ArchiveBatch)\(|Sender\.Send|` +
		`\bcarry\.(Sling|Unsling|Cancel|Reopen|Retry|Drop|Publish|Move)\(`)
	known := map[string]int{
		"chipset/agentcli/session/stop.go":  1, // the hand-off of a session that ended without one
		"chipset/agentcli/session/tools.go": 1, // a subagent's verdict
		"chipset/bridge/bridge.go":          2, // a foreign agent's mail
		"chipset/bd/import.go":              2, // beads by the thousand, in their order
	}
	found := map[string]int{}
	for _, root := range []string{"cmd/chipset", "chipset/mcpserver", "chipset/agentcli", "chipset/bridge", "chipset/bd"} {
		err := filepath.WalkDir("../../"+root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "test/") {
				return err
			}
			data, err := os.ReadFile(path)
			if n := len(verb.FindAll(data, -1)); n > 0 {
				found[strings.TrimPrefix(filepath.ToSlash(path), "../../")] = n
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, n := range found {
		if n > known[path] {
			t.Errorf("%s changes the rig %d times past chipset/actor", path, n-known[path])
		}
	}
	for path, n := range known {
		if found[path] < n {
			t.Errorf("%s changes the rig %d times past chipset/actor: shorten the list", path, found[path])
		}
	}
}
