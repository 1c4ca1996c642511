package v1alpha1

import (
	"encoding/json"
	"fmt"
	"time"
)

// String is as the API accepts it: Go writes one and a half seconds as 1.5s, which is no whole number of anything.
func (d Duration) String() string {
	whole := d.Truncate(time.Second)
	part := (d.Duration.Duration - whole).Milliseconds()
	switch {
	case part == 0:
		return whole.String()
	case whole == 0:
		return fmt.Sprintf("%dms", part)
	}
	return fmt.Sprintf("%s%dms", whole, part)
}

// MarshalJSON writes String.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// ToUnstructured is MarshalJSON for those who do not go through JSON.
func (d Duration) ToUnstructured() any { return d.String() }
