package agentcli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
)

func TestWriteReplacesItsOwnAlone(t *testing.T) {
	p := &Plugin{Name: "x", Files: fstest.MapFS{"plugin/a/hooks.json": {Data: []byte(`{"x": {{command "client-hook" "x"}}, "v": {{json .Version}}}`)}}}
	dir := filepath.Join(t.TempDir(), "plugin")
	for _, version := range []string{"v1.2.3", "2"} {
		if _, err := p.Write(dir, "/usr/bin/chipset", version); err != nil {
			t.Errorf("version %s: %v", version, err)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "a/hooks.json"))
	if want := `{"x": "/usr/bin/chipset client-hook x", "v": "2"}`; err != nil || string(data) != want {
		t.Errorf("%s, %v", data, err)
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "precious"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write(foreign, "/usr/bin/chipset", "1"); !errors.Is(err, ErrForeign) {
		t.Errorf("a folder of somebody else: %v", err)
	}
	if entries, _ := os.ReadDir(foreign); len(entries) != 1 {
		t.Errorf("it holds %v now", entries)
	}
}
