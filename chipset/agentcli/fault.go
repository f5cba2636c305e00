package agentcli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/wording"
)

// APIError is an error of the model's API, as a client reports it after its own
// retries.
type APIError struct {
	// Status is the HTTP status, 0 where the client names none.
	Status int
	// Kind is the kind that the client's words name, "" to judge by Status alone.
	Kind fault.Kind
	// Message is the text of the service.
	Message string
	// Until is when the error ends, zero if unknown.
	Until time.Time
}

// End returns how the run ended: Unfinished for a fault of capacity, after which the session
// can go on, Broken for any other.
func (e APIError) End() End {
	if e.Kind == "" {
		e.Kind = kindOfStatus(e.Status)
	}
	end := Failed(e.Kind, e.detail())
	if !e.Until.IsZero() && end.Fault.Class == fault.Capacity {
		end.Fault.Until = state.At(e.Until)
	}
	return end
}

// detail is the text after the phrase of the kind. A service may quote part of a wrong
// key, which must not get into a record.
func (e APIError) detail() string {
	text := ""
	if e.Kind == fault.UsageLimit && !e.Until.IsZero() {
		text = " until " + e.Until.Format("Jan 2 15:04 MST")
	}
	if e.Status > 0 {
		text += fmt.Sprintf(" (%d)", e.Status)
	}
	if message := PlainMessage(e.Message); message != "" && e.Kind != fault.WrongKey {
		text += ": " + message
	}
	return text
}

// Failed is the end of a run that a fault ended. The reason is the phrase of the kind with
// detail appended.
func Failed(kind fault.Kind, detail string) End {
	end := End{Verdict: Broken, Fault: fault.New(kind, kind.Phrase()+detail)}
	if end.Fault.Class == fault.Capacity {
		end.Verdict = Unfinished
	}
	end.Reason = end.Fault.Reason
	return end
}

// RefusedFlags is the end of a run whose client does not accept its command line.
func RefusedFlags(complaint string) End { return Failed(fault.FlagsRefused, ": "+complaint) }

// kindOfStatus returns the kind of fault of an HTTP status; 0 is no answer at all.
func kindOfStatus(status int) fault.Kind {
	const overloaded = 529 // Anthropic's own
	switch {
	case status == 0, status == http.StatusRequestTimeout:
		return fault.Network
	case status == http.StatusUnauthorized:
		return fault.WrongKey
	case status == http.StatusPaymentRequired:
		return fault.Credit
	case status == http.StatusForbidden:
		return fault.AccessDenied
	case status == http.StatusNotFound:
		return fault.ModelUnknown
	case status == http.StatusRequestEntityTooLarge:
		return fault.ContextTooLong
	case status == http.StatusTooManyRequests:
		return fault.RateLimit
	case status == overloaded, status == http.StatusServiceUnavailable:
		return fault.Overloaded
	case status >= http.StatusInternalServerError, status == http.StatusConflict, status == http.StatusTooEarly:
		return fault.ServerError
	}
	return fault.RequestRefused
}

// PlainMessage is the first sentence of a message, which may be an error answer in JSON.
// The rest is advice to a person at the client.
func PlainMessage(message string) string {
	var answer struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(message), &answer) == nil && answer.Error.Message != "" {
		message = answer.Error.Message
	}
	message = wording.FirstLine(message)
	if m := regexp.MustCompile(`^.+?\. \p{Lu}`).FindString(message); m != "" {
		message = m[:strings.LastIndex(m, ". ")]
	}
	return Clip(strings.TrimSuffix(message, "."))
}

// clockPattern matches the time of day at which a limit ends, with an optional date before
// and zone after it.
const clockPattern = `(?i)(?:resets?(?: at)?|try again at) (?:([a-z]{3})[a-z]* (\d{1,2})(?:st|nd|rd|th)?,?(?: (\d{4}),?)?(?: at)? )?(\d{1,2})(?::(\d{2}))? ?([ap]m)(?: \(([A-Za-z0-9_/+-]+)\))?`

// ResetTime finds in a client's words when a limit ends, after at and in its zone. It returns
// zero if they don't say, or name a zone that this machine does not know.
func ResetTime(text string, at time.Time) time.Time {
	m := regexp.MustCompile(clockPattern).FindStringSubmatch(text)
	if m == nil || at.IsZero() {
		return time.Time{}
	}
	if zone := m[7]; zone != "" {
		location, err := time.LoadLocation(zone)
		if err != nil {
			return time.Time{}
		}
		at = at.In(location)
	}
	clock, err := time.Parse("3:04PM", m[4]+":"+cmp.Or(m[5], "00")+strings.ToUpper(m[6]))
	if err != nil {
		return time.Time{}
	}
	year, month, day := at.Date()
	if m[1] != "" {
		date, err := time.Parse("Jan 2 2006", m[1]+" "+m[2]+" "+cmp.Or(m[3], strconv.Itoa(year)))
		if err != nil {
			return time.Time{}
		}
		year, month, day = date.Date()
	}
	reset := time.Date(year, month, day, clock.Hour(), clock.Minute(), 0, 0, at.Location())
	switch since := at.Sub(reset); {
	case since < 0:
	case since < justPassed: // the client leaves out the seconds
		reset = at.Add(time.Minute)
	case m[1] == "":
		reset = time.Date(year, month, day+1, clock.Hour(), clock.Minute(), 0, 0, at.Location())
	case m[3] == "" && month < at.Month(): // over the end of the year
		reset = reset.AddDate(1, 0, 0)
	}
	return Plausible(reset, at)
}

// justPassed is how long ago a time of day may be that means today and not tomorrow.
const justPassed = 5 * time.Minute

// waitPattern matches how long a limit lasts.
const waitPattern = `(?i)(?:retry after|reset after|retry in|try again in) ((?:\d+(?:\.\d+)?(?:h|ms|m|s))+)`

// WaitTime finds in a client's words when a limit ends that lasts for a duration from at. It
// returns zero if they don't say.
func WaitTime(text string, at time.Time) time.Time {
	m := regexp.MustCompile(waitPattern).FindStringSubmatch(text)
	if m == nil || at.IsZero() {
		return time.Time{}
	}
	wait, err := time.ParseDuration(strings.ToLower(m[1]))
	return after(at, wait, err)
}

// RetryAfter is the time of an HTTP Retry-After header (a date or seconds), zero if it is
// missing, invalid or implausible.
func RetryAfter(header string, at time.Time) time.Time {
	if date, err := http.ParseTime(header); err == nil && date.After(at) {
		return Plausible(date, at)
	}
	wait, err := time.ParseDuration(header + "s")
	return after(at, wait, err)
}

func after(at time.Time, wait time.Duration, err error) time.Time {
	if err != nil || wait <= 0 || at.IsZero() {
		return time.Time{}
	}
	return Plausible(at.Add(wait), at)
}

// maxReset is the longest time that a limit is believed to last.
const maxReset = 32 * 24 * time.Hour

// Plausible returns a reset after at and not too far from it, and zero for any other.
func Plausible(reset, at time.Time) time.Time {
	if at.IsZero() || !reset.After(at) || reset.Sub(at) > maxReset {
		return time.Time{}
	}
	return reset
}
