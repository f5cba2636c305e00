package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestSecrets: they are hidden also where variables have moved them.
func TestSecrets(t *testing.T) {
	got := Secrets("/home/u", func(name string) string {
		return map[string]string{"XDG_CONFIG_HOME": "/config", "KUBECONFIG": "/kube/a:/kube/b", "GNUPGHOME": "relative"}[name]
	})
	for _, want := range []string{"/home/u/.ssh", "/home/u/.config/chipset", "/config/chipset", "/config/gcloud", "/kube/b"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not hidden", want)
		}
	}
	if slices.Contains(got, "relative") {
		t.Error("a relative path is hidden")
	}
}

// TestMakeCaches: a tool that was never used finds the folders that it could not make in a sandbox.
func TestMakeCaches(t *testing.T) {
	home, bin := t.TempDir(), t.TempDir()
	t.Setenv("PATH", bin)
	if err := os.WriteFile(filepath.Join(bin, "npm"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := MakeCaches(home, func(string) string { return "" }); err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadDir(home)
	if err != nil || len(made) != 1 || made[0].Name() != ".npm" {
		t.Errorf("made %v, %v", made, err)
	}
}

func TestEnvironment(t *testing.T) {
	environ := []string{"PATH=/bin", "LC_ALL=C", "GOFLAGS=-v", "CARGO_HOME=/c", "GIT_AUTHOR_NAME=n", "CARGO_REGISTRY_TOKEN=t", "ANTHROPIC_API_KEY=k", "GOOGLE_API_KEY=k",
		"AWS_SECRET_ACCESS_KEY=k", "DATABASE_URL=d", "SSH_AUTH_SOCK=/s", "XDG_RUNTIME_DIR=/r"}
	if got, want := Environment(environ, nil), environ[:5]; !slices.Equal(got, want) {
		t.Errorf("without more: %q, not %q", got, want)
	}
	want := append(slices.Clone(environ[:5]), "ANTHROPIC_API_KEY=k", "DATABASE_URL=d")
	if got := Environment(environ, []string{"ANTHROPIC_*", "DATABASE_URL"}); !slices.Equal(got, want) {
		t.Errorf("with more: %q, not %q", got, want)
	}
}
