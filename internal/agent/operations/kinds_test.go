package operations

import (
	"testing"

	"github.com/storagebench/storagebench/internal/operate"
)

// TestEveryActionHasAKind: an action of the API that no file plans would do nothing, or the wrong thing.
func TestEveryActionHasAKind(t *testing.T) {
	all := operate.All()
	for _, action := range all {
		if kind, known := kinds[operate.Name(action)]; !known || kind.begin == nil || kind.stage == nil {
			t.Errorf("%s has no kind", operate.Name(action))
		}
	}
	if len(kinds) != len(all) || len(kinds) == 0 {
		t.Errorf("%d kinds for %d actions", len(kinds), len(all))
	}
}
