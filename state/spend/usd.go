package spend

import (
	"fmt"
	"math"
	"strconv"
)

// USD is an amount in millionths of a US dollar, so that sums are exact. In JSON it is a number of
// dollars.
type USD int64

const million = 1_000_000

// Dollars converts a number of dollars. NaN and numbers that are too large become 0.
func Dollars(f float64) USD {
	if f *= million; math.Abs(f) < math.MaxInt64 {
		return USD(math.Round(f))
	}
	return 0
}

// Dollars returns the amount in dollars.
func (u USD) Dollars() float64 { return float64(u) / million }

// String formats the amount for a person: $1.20, and $0.0012 for less than a cent.
func (u USD) String() string {
	const cent = million / 100
	if u > 0 && u < cent {
		return fmt.Sprintf("$%.4f", u.Dollars())
	}
	return fmt.Sprintf("$%.2f", u.Dollars())
}

// MarshalJSON implements json.Marshaler.
func (u USD) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, u.Dollars(), 'f', -1, 64), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (u *USD) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(string(b), 64)
	if err == nil {
		*u = Dollars(f)
	}
	return err
}
