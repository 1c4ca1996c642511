package benchmark

import (
	"errors"
	"testing"
)

// TestRounds: a turn ends even if every round changes something, and another turn follows.
func TestRounds(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		changes, fails int // rounds that change something, and the one that fails
		wantRounds     int
		wantMore       bool
	}{
		"nothing changes": {changes: 0, wantRounds: 1},
		"a Lease, a run":  {changes: 2, wantRounds: 3},
		"for ever":        {changes: 1 << 30, wantRounds: mostRounds, wantMore: true},
		"an error":        {changes: 1 << 30, fails: 2, wantRounds: 2},
	} {
		made := 0
		more, err := rounds(func() (bool, error) {
			made++
			if made == test.fails {
				return true, broken
			}
			return made <= test.changes, nil
		})
		if made != test.wantRounds || more != test.wantMore || errors.Is(err, broken) != (test.fails > 0) {
			t.Errorf("%s: %d rounds, more %t, %v", name, made, more, err)
		}
	}
}
