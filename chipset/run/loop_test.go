package run

import (
	"errors"
	"fmt"
	"testing"

	"github.com/hashicorp/go-multierror"
)

func TestFlat(t *testing.T) {
	one, two := errors.New("first\n  thing"), fmt.Errorf("second: %w", errors.New("cause"))
	for want, err := range map[string]error{
		"first thing":                one,
		"second: cause":              multierror.Append(nil, two),
		"first thing; second: cause": multierror.Append(nil, one, two),
	} {
		if got := flat(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
