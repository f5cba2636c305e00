package sandbox

import (
	"slices"
	"testing"
)

func TestEnvironment(t *testing.T) {
	environ := []string{"PATH=/bin", "LC_ALL=C", "GOFLAGS=-v", "CARGO_HOME=/c", "CARGO_REGISTRY_TOKEN=t", "ANTHROPIC_API_KEY=k", "GOOGLE_API_KEY=k",
		"AWS_SECRET_ACCESS_KEY=k", "DATABASE_URL=d", "SSH_AUTH_SOCK=/s", "XDG_RUNTIME_DIR=/r"}
	if got, want := Environment(environ, nil), environ[:4]; !slices.Equal(got, want) {
		t.Errorf("without more: %q, not %q", got, want)
	}
	want := append(slices.Clone(environ[:4]), "ANTHROPIC_API_KEY=k", "DATABASE_URL=d")
	if got := Environment(environ, []string{"ANTHROPIC_*", "DATABASE_URL"}); !slices.Equal(got, want) {
		t.Errorf("with more: %q, not %q", got, want)
	}
}
