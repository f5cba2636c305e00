package state

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// TimeLayout is RFC 3339 in UTC with nine fractional digits, the form of every
// time in the tree.
const TimeLayout = "2006-01-02T15:04:05.000000000Z07:00"

// Time is an instant as the tree's files hold it.
type Time struct{ time.Time }

// At makes a Time in UTC; the monotonic reading is dropped.
func At(t time.Time) Time { return Time{t.UTC().Round(0)} }

// String returns the form used in files.
func (t Time) String() string { return t.UTC().Format(TimeLayout) }

// MarshalText writes TimeLayout. A year without four digits is an error, because it could
// not be read again.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), t.fits() }

// MarshalJSON writes TimeLayout. Errors are those of MarshalText.
func (t Time) MarshalJSON() ([]byte, error) { return []byte(`"` + t.String() + `"`), t.fits() }

// fits returns an error if the year does not have four digits.
func (t Time) fits() error {
	if year := t.UTC().Year(); year < 0 || year > 9999 {
		return fmt.Errorf("the year %d does not have four digits", year)
	}
	return nil
}

// UnmarshalJSON reads any RFC 3339 precision and offset.
func (t *Time) UnmarshalJSON(b []byte) error {
	var s *string // decoded as JSON, because some writers escape the '+' of an offset
	if err := json.Unmarshal(b, &s); err != nil || s == nil {
		return fmt.Errorf("time %s is not a string", clip(string(b)))
	}
	parsed, err := parseTime(*s)
	if err != nil {
		return fmt.Errorf("time %q is not RFC 3339", clip(*s))
	}
	*t = parsed
	return nil
}

// UnmarshalText reads any RFC 3339 precision and offset.
func (t *Time) UnmarshalText(b []byte) error {
	parsed, err := parseTime(string(b))
	if err != nil {
		return fmt.Errorf("time %q is not RFC 3339", clip(string(b)))
	}
	*t = parsed
	return nil
}

// parseTime parses RFC 3339. A year in UTC without four digits is an error.
func parseTime(s string) (Time, error) {
	parsed, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return Time{}, err
	}
	at := At(parsed)
	return at, at.fits()
}

// Stamp returns the time as used in file names: every ':' is a '-'.
func (t Time) Stamp() string { return strings.ReplaceAll(t.String(), ":", "-") }

var stampPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\d{4}-\d{2}-\d{2}T\d{2})-(\d{2})-(\d{2}(?:\.\d{1,9})?)(Z|[+-]\d{2}-\d{2})-(.+)\.json$`)
})

// ParseTimestampedName splits a name {timestamp}-{agent}.json into its parts. The
// timestamp may have any RFC 3339 precision and offset.
func ParseTimestampedName(name string) (Time, AgentID, error) {
	if at, id, ok := parseOwnStamped(name); ok {
		return at, id, nil
	}
	m := stampPattern().FindStringSubmatch(name)
	if m == nil {
		return Time{}, "", fmt.Errorf("%w: name %q is not {timestamp}-{agent}.json", ErrCorrupt, clip(name))
	}
	zone := m[4]
	if zone != "Z" {
		zone = zone[:3] + ":" + zone[4:]
	}
	at, err := parseTime(m[1] + ":" + m[2] + ":" + m[3] + zone)
	if err != nil {
		return Time{}, "", fmt.Errorf("%w: the timestamp of name %q is invalid", ErrCorrupt, clip(name))
	}
	id, err := ParseAgentID(m[5])
	if err != nil {
		return Time{}, "", fmt.Errorf("%w: name %q: %w", ErrCorrupt, clip(name), err)
	}
	return at, id, nil
}

// parseOwnStamped is a faster ParseTimestampedName for the form that Stamp writes, for
// large mailboxes.
func parseOwnStamped(name string) (Time, AgentID, bool) {
	const form = "2006-01-02T15-04-05.000000000Z"
	if len(name) < len(form)+1 || name[len(form)-1:len(form)+1] != "Z-" || name[13] != '-' || name[16] != '-' || name[19] != '.' {
		return Time{}, "", false
	}
	id, ok := strings.CutSuffix(name[len(form)+1:], ".json")
	if !ok || CheckID(id) != nil {
		return Time{}, "", false
	}
	stamp := []byte(name[:len(form)])
	stamp[13], stamp[16] = ':', ':'
	at, err := parseTime(string(stamp))
	return at, AgentID(id), err == nil
}

// Clock returns the current time. It is passed as a value so that tests and simulations
// can inject another.
type Clock func() time.Time

// Now returns the current time as a Time.
func (c Clock) Now() Time { return At(c()) }
