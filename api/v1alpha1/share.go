package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"
)

// Percent returns the number of a share, such as 2.5 for 2.5%. A share outside 0% to 100% is an error.
func (s Share) Percent() (float64, error) {
	text, percent := strings.CutSuffix(string(s), "%")
	value, err := strconv.ParseFloat(text, 64)
	if !percent || err != nil || !(value >= 0 && value <= 100) {
		return 0, fmt.Errorf("%q is not a percentage: write one from 0%% to 100%%, such as 80%%", string(s))
	}
	return value, nil
}
