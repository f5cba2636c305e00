package definition_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/process"
)

const agents = "agents: {agents: [{name: mayor, role: mayor}, {name: witness, role: witness}, {name: p, role: polecat}]}\n"

// TestBuiltinPresetsAgree: the presets a definition may name without a command are
// those the runtime has. The packages don't import each other.
func TestBuiltinPresetsAgree(t *testing.T) {
	for _, preset := range clients.Presets() {
		def, problems := definition.Parse("f", []byte(agents+"worker: {presets: {"+preset.Name+": {timeout: 1s}}}\n"))
		if def == nil || len(problems) > 0 {
			t.Errorf("%s: %v", preset.Name, problems)
		}
		opts := definition.Options{LookPath: func(string) (string, error) { return "", errors.New("not found") }}
		_, problems = definition.ParseWith("f", []byte(agents+"worker: {default: "+preset.Name+"}\n"), opts)
		if len(problems) != 1 || !strings.Contains(problems[0].Message, `"`+preset.Command[0]+`"`) {
			t.Errorf("%s runs %s: %v", preset.Name, preset.Command[0], problems)
		}
	}
}

func TestCommandsAreParsedAsTheRuntimeDoes(t *testing.T) {
	opts := definition.Options{ParseCommand: process.ParseCommand}
	def, problems := definition.ParseWith("f", []byte(agents+"merge: {test: 'make \"a b\"'}\nworker: {presets: {x: {command: a | b}}}\n"), opts)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if diff := cmp.Diff([]string{"make", "a b"}, def.Merge.Test.Argv); diff != "" {
		t.Error(diff)
	}
	if preset, _ := def.Worker.Preset("x"); !cmp.Equal(preset.Command.Argv, []string{"sh", "-c", "a | b"}) {
		t.Errorf("command %v", preset.Command.Argv)
	}
	_, problems = definition.ParseWith("f", []byte(agents+"merge:\n  test: echo 'x\n"), opts)
	if len(problems) != 1 || problems[0].Line != 3 || strings.Contains(problems[0].String(), "\n") {
		t.Errorf("unclosed quote: %v", problems)
	}
}
