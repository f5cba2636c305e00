package agentcli

import (
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state/fault"
)

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestResetTime: the words of clients, and when they mean.
func TestResetTime(t *testing.T) {
	t.Parallel()
	const evening = "2026-11-22T20:30:20+01:00"
	for _, tt := range []struct{ text, at, want string }{
		{"or try again at 10:30 PM.", evening, "2026-11-22T22:30:00+01:00"},
		{"try again at 8:15 AM.", evening, "2026-11-23T08:15:00+01:00"},
		{"try again at Nov 25th, 2026 10:30 PM.", evening, "2026-11-25T22:30:00+01:00"},
		{"try again at Jan 1st, 2027 9:05 AM.", evening, "" /* further than any limit */},
		{"resets 12:50am (America/Los_Angeles)", evening, "2026-11-23T09:50:00+01:00"},
		{"resets 9pm (Asia/Tokyo)", evening, "2026-11-23T13:00:00+01:00"},
		{"resets Nov 25, 3pm (UTC)", evening, "2026-11-25T16:00:00+01:00"},
		{"resets Jan 2 at 3pm", "2026-12-30T10:00:00Z", "2027-01-02T15:00:00Z"},
		{"Your limit will reset at 9am (UTC).", evening, "2026-11-23T10:00:00+01:00"},
		{"resets 3pm (Middle/Earth)", evening, ""},
		{"resets 14pm", evening, ""},
		{"resets soon", evening, ""},
		{"", evening, ""},
		// The minute in which it ends is told without its seconds.
		{"try again at 8:30 PM.", evening, "2026-11-22T20:31:20+01:00"},
	} {
		got := ResetTime(tt.text, moment(t, tt.at))
		if tt.want == "" && got.IsZero() || tt.want != "" && got.Equal(moment(t, tt.want)) {
			continue
		}
		t.Errorf("%q is %v, want %s", tt.text, got, tt.want)
	}
	if got := ResetTime("resets 3pm", time.Time{}); !got.IsZero() {
		t.Errorf("without a clock it is %v", got)
	}
}

func TestWaitTime(t *testing.T) {
	t.Parallel()
	at := moment(t, "2026-11-22T20:30:00Z")
	for text, want := range map[string]time.Duration{
		"Suggested retry after 3s.":                 3 * time.Second,
		"Your quota will reset after 18h5m3s.":      18*time.Hour + 5*time.Minute + 3*time.Second,
		"Please retry in 20.5s.":                    20500 * time.Millisecond,
		"retry after a while":                       0,
		"retry after 99999h":                        0,
		"retry after 99999999999999999999999999h.":  0,
		"it failed 3s ago, and will be tried again": 0,
	} {
		if got := WaitTime(text, at); got.IsZero() != (want == 0) || want > 0 && got.Sub(at) != want {
			t.Errorf("%q is %v", text, got)
		}
	}
	for header, want := range map[string]time.Duration{
		"3": 3 * time.Second, "600": 10 * time.Minute, "Sun, 22 Nov 2026 20:34:03 GMT": 4*time.Minute + 3*time.Second,
		"": 0, "-3": 0, "soon": 0, "Sun, 22 Nov 2026 20:24:03 GMT": 0,
	} {
		if got := RetryAfter(header, at); got.IsZero() != (want == 0) || want > 0 && got.Sub(at) != want {
			t.Errorf("retry-after %q is %v", header, got)
		}
	}
}

// TestKindOfStatus: what an API's status means, and whether its session can go on later.
func TestKindOfStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]fault.Kind{
		0: fault.Network, 400: fault.RequestRefused, 401: fault.WrongKey, 402: fault.Credit, 403: fault.AccessDenied, 404: fault.ModelUnknown,
		408: fault.Network, 413: fault.ContextTooLong, 422: fault.RequestRefused, 429: fault.RateLimit, 500: fault.ServerError, 502: fault.ServerError,
		503: fault.Overloaded, 529: fault.Overloaded, 599: fault.ServerError,
	} {
		end := APIError{Status: status, Message: "a\nb", Until: time.Unix(1, 0)}.End()
		later := end.Fault.Class == fault.Capacity
		if end.Fault.Kind != want || end.Reason != end.Fault.Reason || (end.Verdict == Unfinished) != later || end.Fault.Until.IsZero() == later {
			t.Errorf("%d: %+v", status, end)
		}
	}
	// A service may quote the key.
	if end := (APIError{Status: 401, Message: "Incorrect API key provided: sk-secret"}).End(); end.Reason != "the model's API does not accept the key (401)" {
		t.Errorf("%q", end.Reason)
	}
	if end := (APIError{Status: 500, Message: `{"error":{"code":500,"message":"broken"}}`}).End(); end.Reason != "the model's API fails (500): broken" {
		t.Errorf("%q", end.Reason)
	}
}
