package agentcli

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/chipset/process"
)

func TestBuildModes(t *testing.T) {
	in := PromptInput{Prompt: "the prompt", Script: "the script", File: "/run/p"}
	tests := []struct {
		name string
		mode PromptMode
		argv []string
		want Invocation
	}{
		{"stdin", PromptStdin, []string{"w"}, Invocation{Argv: []string{"w"}, File: "/run/p", Content: "the prompt", Stdin: "/run/p", Env: []string{"A=1", "B=2", "CHIPSET_PROMPT_FILE=/run/p"}}},
		{"file", PromptFile, []string{"w"}, Invocation{Argv: []string{"w", "/run/p"}, File: "/run/p", Content: "the prompt", Env: []string{"A=1", "B=2", "CHIPSET_PROMPT_FILE=/run/p"}}},
		{"file placed", PromptFile, []string{"w", "{prompt_file}", "-x"}, Invocation{Argv: []string{"w", "/run/p", "-x"}, File: "/run/p", Content: "the prompt", Env: []string{"A=1", "B=2", "CHIPSET_PROMPT_FILE=/run/p"}}},
		{"script", PromptScript, []string{"sh"}, Invocation{Argv: []string{"sh", "/run/p"}, File: "/run/p", Content: "the script", Env: []string{"A=1", "B=2", "CHIPSET_PROMPT_FILE=/run/p"}}},
		{"arg", PromptArg, []string{"w"}, Invocation{Argv: []string{"w", "the prompt"}, Env: []string{"A=1", "B=2"}}},
		{"arg placed", PromptArg, []string{"w", "--in={prompt}", "-x"}, Invocation{Argv: []string{"w", "--in=the prompt", "-x"}, Env: []string{"A=1", "B=2"}}},
	}
	for _, test := range tests {
		preset := Preset{Name: "w", Command: test.argv, Prompt: test.mode, Env: map[string]string{"B": "2", "A": "1"}}
		got, err := Build(preset, in)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		} else if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

func TestPermissionsStandBeforeTheDoubleDash(t *testing.T) {
	preset := Preset{Name: "w", Command: []string{"w", "--"}, Prompt: PromptArg,
		Permissions: map[string][]string{PermissionFull: {"--yolo"}}}
	run, err := Build(preset, PromptInput{Prompt: "P", Permission: PermissionFull})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"w", "--yolo", "--", "P"}, run.Argv); diff != "" {
		t.Error(diff)
	}
	if _, err := Build(preset, PromptInput{Prompt: "P", Permission: PermissionAsk}); !errors.Is(err, ErrBadPreset) {
		t.Errorf("a decision the preset does not know: %v", err)
	}
}

// Whatever a prompt says, it is one argument, and no option.
func TestPromptStaysAnArgument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prompt := rapid.OneOf(
			rapid.StringMatching(`[-/@!+ \n]{0,3}[a-z{}_=" $-]{0,12}`),
			rapid.SampledFrom([]string{"-", "--help", "{prompt}", "{prompt_file}", "", " --x", "@file", "/exit"}),
		).Draw(t, "prompt")
		for _, argv := range [][]string{{"w", "-x"}, {"w", "{prompt}", "-x"}, {"w", "--p={prompt}", "-x"}} {
			run, err := Build(Preset{Name: "w", Command: argv, Prompt: PromptArg}, PromptInput{Prompt: prompt})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(run.Argv, "-x") {
				t.Fatalf("%q lost an argument", run.Argv)
			}
			holders := 0
			for _, arg := range run.Argv[1:] {
				if arg == "-x" {
					continue
				}
				holders++
				text, option := strings.CutPrefix(arg, "--p=")
				if !option && strings.HasPrefix(strings.TrimSpace(arg), "-") {
					t.Fatalf("%q would be an option", arg)
				}
				if !strings.HasSuffix(text, prompt) {
					t.Fatalf("%q does not hold the prompt %q", arg, prompt)
				}
			}
			if holders != 1 {
				t.Fatalf("%q: the prompt is in %d arguments", run.Argv, holders)
			}
		}
	})
}

func TestPromptThatIsNoArgument(t *testing.T) {
	preset := Preset{Name: "w", Command: []string{"w"}, Prompt: PromptArg}
	for _, prompt := range []string{"a\x00b", strings.Repeat("x", 200<<10)} {
		if _, err := Build(preset, PromptInput{Prompt: prompt}); !errors.Is(err, ErrBadPreset) {
			t.Errorf("prompt of %d bytes: %v", len(prompt), err)
		}
	}
	preset.Prompt = PromptFile
	if _, err := Build(preset, PromptInput{Prompt: "p", File: "relative"}); err == nil {
		t.Error("a relative prompt file is accepted")
	}
}

func TestPresetCheck(t *testing.T) {
	good := Preset{Name: "w", Command: []string{"w"}, Prompt: PromptStdin}
	tests := map[string]func(*Preset){
		"no command":         func(p *Preset) { p.Command = nil },
		"unknown mode":       func(p *Preset) { p.Prompt = "telepathy" },
		"negative time-out":  func(p *Preset) { p.Timeout = -1 },
		"bad variable":       func(p *Preset) { p.Env = map[string]string{"A=B": "c"} },
		"unknown permission": func(p *Preset) { p.Permissions = map[string][]string{"yolo": nil} },
		"prompt as command":  func(p *Preset) { p.Command, p.Prompt = []string{"{prompt}"}, PromptArg },
		"wrong mode":         func(p *Preset) { p.Command = []string{"w", "{prompt}"} },
		"shell code": func(p *Preset) {
			p.Command, p.Prompt = []string{"/bin/sh", "-ec", "{prompt}"}, PromptArg
		},
		"shell code behind env": func(p *Preset) {
			p.Command, p.Prompt = []string{"env", "A=1", "bash", "-c", "--", "{prompt}"}, PromptArg
		},
		"inside shell code": func(p *Preset) {
			p.Command, p.Prompt = []string{"sh", "-c", `tool "{prompt}"`}, PromptArg
		},
		"inside other code": func(p *Preset) {
			p.Command, p.Prompt = []string{"python3", "-c", "print('{prompt}')"}, PromptArg
		},
	}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, breaks := range tests {
		preset := good
		breaks(&preset)
		if err := preset.Check(); !errors.Is(err, ErrBadPreset) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// As a parameter of shell code the prompt is data.
	safe := Preset{Name: "w", Command: []string{"sh", "-c", `tool "$1"`, "sh", "{prompt}"}, Prompt: PromptArg}
	if err := safe.Check(); err != nil {
		t.Error(err)
	}
}

func TestResolveWorker(t *testing.T) {
	tests := []struct {
		worker string
		argv   []string
		mode   PromptMode
	}{
		{"sh", []string{"sh", "-e"}, PromptScript},
		{"./worker --fast", []string{"./worker", "--fast"}, PromptStdin},
		{"tool -m {prompt}", []string{"tool", "-m", "{prompt}"}, PromptArg},
		{"tool --file={prompt_file}", []string{"tool", "--file={prompt_file}"}, PromptFile},
		{`cat "$CHIPSET_PROMPT_FILE" | tool`, []string{"sh", "-c", `cat "$CHIPSET_PROMPT_FILE" | tool`}, PromptStdin},
	}
	for _, test := range tests {
		preset, err := ResolveWorker(test.worker, []Preset{{Name: "sh", Command: []string{"sh", "-e"}, Prompt: PromptScript}})
		if err != nil || preset.Prompt != test.mode {
			t.Errorf("%q: %+v, %v", test.worker, preset, err)
		} else if diff := cmp.Diff(test.argv, preset.Command); diff != "" {
			t.Errorf("%q: %s", test.worker, diff)
		}
	}
	for worker, want := range map[string]error{
		"": process.ErrNoCommand, "a 'b": process.ErrBadCommand, "tool {prompt} | tee out": ErrBadPreset, "tool {prompt_file}x": ErrBadPreset,
	} {
		if _, err := ResolveWorker(worker, nil); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", worker, err, want)
		}
	}
}
