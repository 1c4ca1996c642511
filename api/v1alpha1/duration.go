package v1alpha1

import (
	"encoding/json"
	"fmt"
	"time"
)

// String formats a duration as the API accepts it. Go formats 1500ms as 1.5s, which the pattern rejects.
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

// MarshalJSON encodes String.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// ToUnstructured is MarshalJSON for converters that do not use JSON.
func (d Duration) ToUnstructured() any { return d.String() }
