package clients

import (
	"testing"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
)

// TestPassingTest: a client is told to let the test pass in a sandbox alone, and never a text that could mean more.
func TestPassingTest(t *testing.T) {
	if !sandbox.InForce(sandbox.Auto) {
		t.Skip("this machine has no sandbox")
	}
	for want, tests := range map[string][]definition.Command{
		"go test ./...": {{Line: "go  test ./..."}, {Argv: []string{"go", "test", "./..."}}},
		"": {{}, {Line: "go test *"}, {Line: "make test)"}, {Line: "make,sh"}, {Line: "make; sh"}, {Line: `sh -c "make test"`},
			{Argv: []string{"make", "a\nb"}}, {Argv: []string{"make", "a b"}}, {Argv: []string{"make", ""}}, {Argv: []string{"make", "${X}"}}},
	} {
		for _, test := range tests {
			d := &definition.Definition{Sandbox: string(sandbox.Auto), MergeDefined: true, Merge: definition.Merge{Test: test}}
			if got := PassingTest(d); got != want {
				t.Errorf("%+v: %q, not %q", test, got, want)
			}
			if d.Sandbox = string(sandbox.Off); PassingTest(d) != "" {
				t.Errorf("%+v passes without a sandbox", test)
			}
		}
	}
}
