package operation

import (
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestAPersonsImportIsNotExported: a person exports the pool and imports it read-only while the agent is about to export it.
func TestAPersonsImportIsNotExported(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["exportImport"].action))
	on := w.node.pools[0]
	looks := 0
	w.node.meanwhile = func() {
		if looks++; looks == 3 { // the first two decide that the pool is unused
			on.loads++
			on.readOnly = true
		}
	}
	for range 6 {
		_, _ = w.turn("op")
	}
	if looks < 3 || w.node.count("zpool export") > 0 || !on.readOnly {
		t.Errorf("after %d looks, the pool is %+v; commands %q", looks, on, w.node.commands)
	}
	expect(t, w.get("op"), "", v1alpha1.ReasonPoolNotReady)
}
