package results

import "fmt"

const (
	// MaxValues is the limit for results.json and for a history, which have at most 700 KiB.
	MaxValues = 1 << 18
	// maxPhaseValues is the limit for the document of a phase without its raw output: the bins of MaxDistributions distributions are about
	// 100,000 values.
	maxPhaseValues = 1 << 17
	// maxBaselineJSONValues is the limit for a baseline, which consists mostly of numbers.
	maxBaselineJSONValues = 1 << 19

	// objectValues is the number of values that an object counts as: "{}," has three bytes, but the struct that is decoded from it has
	// hundreds.
	objectValues = 16
)

// LimitValues refuses JSON with more values than a document of its kind can have. Tenants can write these documents: without this check, a
// long list of empty objects takes many times the memory of its text when it is decoded.
func LimitValues(text []byte, most int) error {
	values := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = endOfString(text, i)
		case '{':
			values += objectValues
		case '[', ',':
			values++
		}
	}
	if values > most {
		return fmt.Errorf("%w: its lists and objects count as %d values, at most %d are read", ErrTooLarge, values, most)
	}
	return nil
}
