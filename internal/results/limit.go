package results

import "fmt"

const (
	// MaxValues of results.json and of a history, which have at most 700 KiB.
	MaxValues = 1 << 18
	// maxPhaseValues of a document without its raw output: about 100,000 are the bins of MaxDistributions distributions.
	maxPhaseValues = 1 << 17
	// maxBaselineListed of a baseline, which consists mostly of numbers.
	maxBaselineListed = 1 << 19

	// objectValues is how much an object counts: "{}," has three bytes, but the struct that is decoded from it has hundreds.
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
