package operation

import (
	"slices"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestHalvesOfOthersStay: another user began a receive in the target after this operation had taken its snapshot, but before it was sent.
// That partial receive is neither continued nor discarded.
func TestHalvesOfOthersStay(t *testing.T) {
	const snapshot, mark = "@storagebench-12345678-0", "12345678-op"
	for name, marks := range map[string]string{"in a dataset of theirs": "", "after our first part": mark} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, wanted("op", acts()["replicate"].action))
			if _, err := w.turn("op"); err != nil {
				t.Fatal(err)
			}
			add := func(pool int, name, kind, mark string) *fakeDataset {
				made := w.node.dataset(name, kind)
				if mark != "" {
					made.properties["storagebench.dev:operation"] = mark
				}
				w.node.pools[pool].datasets = append(w.node.pools[pool].datasets, made)
				return made
			}
			ours := add(0, "bench0/data"+snapshot, "snapshot", mark)
			add(1, "bench1/received", "filesystem", marks).token = strangersToken
			if marks != "" {
				add(1, "bench1/received"+snapshot, "snapshot", "").guid = ours.guid
			}
			operation := w.settle("op")
			expect(t, operation, "Failed", v1alpha1.ReasonActionFailed)
			if left := w.node.pools[1].find("bench1/received"); left == nil || left.token != strangersToken {
				t.Errorf("another user's half is %+v", left)
			}
			if w.node.count("zfs receive") > 0 || w.node.count("zfs send") > 0 {
				t.Errorf("commands %q", w.node.commands)
			}
			if slices.ContainsFunc(w.node.pools[0].datasets, func(d *fakeDataset) bool { return strings.Contains(d.name, "@") }) {
				t.Error("our snapshot of the source is left")
			}
		})
	}
}

// TestOurHalfWithoutItsSnapshot: the partial receive is discarded nevertheless, because the target is ours and the token names the
// destroyed snapshot.
func TestOurHalfWithoutItsSnapshot(t *testing.T) {
	w := interruptedReplication(t)
	pool := w.node.pools[0]
	pool.datasets = slices.DeleteFunc(pool.datasets, func(d *fakeDataset) bool { return strings.Contains(d.name, "@") })
	cancel(t, w, "op")
	expect(t, w.settle("op"), "Cancelled", v1alpha1.ReasonCancelled)
	if w.node.count("zfs receive -A bench1/received") != 1 || w.node.pools[1].find("bench1/received") != nil {
		t.Errorf("commands %q", w.node.commands)
	}
}
