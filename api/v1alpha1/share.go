package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"
)

// Percent of a share: 2.5 of 2.5%. It is an error unless that is from 0% to 100%.
func (s Share) Percent() (float64, error) {
	text, percent := strings.CutSuffix(string(s), "%")
	value, err := strconv.ParseFloat(text, 64)
	if !percent || err != nil || !(value >= 0 && value <= 100) {
		return 0, fmt.Errorf("%q is not a percentage: write one from 0%% to 100%%, such as 80%%", string(s))
	}
	return value, nil
}
