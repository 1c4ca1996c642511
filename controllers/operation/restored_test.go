package operation

import (
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/operate"
)

// restore brings an operation back from a backup: of before it began, and also if it was deleted since.
func (w *world) restore(backup *v1alpha1.PoolOperation) {
	w.t.Helper()
	if now := w.get(backup.Name); now != nil {
		now.Finalizers = nil
		if err := w.client.Update(w.t.Context(), now); err != nil {
			w.t.Fatal(err)
		}
		if err := w.client.Delete(w.t.Context(), now); err != nil {
			w.t.Fatal(err)
		}
	}
	again := backup.DeepCopy()
	again.ResourceVersion = ""
	if err := w.client.Create(w.t.Context(), again); err != nil {
		w.t.Fatal(err)
	}
}

// TestARestoredOperationDoesNotRunAgain restores each operation that must run once to before its beginning, after it has ended and the pool is
// again as it was before, with data that is newer than the request.
func TestARestoredOperationDoesNotRunAgain(t *testing.T) {
	for name, one := range acts() {
		if !map[string]bool{"addVdev": true, "copy": true, "destroyDataset": true, "removeVdev": true, "replaceDevice": true}[operate.Name(one.action)] {
			continue
		}
		for _, restarted := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, wanted("op", one.action))
				if one.prepare != nil {
					one.prepare(t, w)
				}
				backup := w.get("op")
				expect(t, w.settle("op"), "Succeeded", v1alpha1.ReasonSucceeded)
				for at, fresh := range newNode(t).pools { // all but the marks of the root datasets
					fresh.datasets[0] = w.node.pools[at].datasets[0]
					fresh.guid = w.node.pools[at].guid
					*w.node.pools[at] = *fresh
				}
				before := len(w.node.commands)
				w.restore(backup)
				if restarted {
					w.start()
				}
				w.node.clock.Step(3 * time.Hour)
				operation := w.settle("op")
				expect(t, operation, "Failed", v1alpha1.ReasonPoolOlderSpec)
				if len(w.node.commands) != before || operation.Status.StartedAt != nil {
					t.Errorf("commands %q, status %+v", w.node.commands[before:], operation.Status)
				}
			})
		}
	}
}

// TestWhatMayRunTwice: a restored scrub does no harm, and runs.
func TestWhatMayRunTwice(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["scrub"].action))
	backup := w.get("op")
	expect(t, w.settle("op"), "Succeeded", v1alpha1.ReasonSucceeded)
	w.restore(backup)
	w.node.clock.Step(time.Minute)
	expect(t, w.settle("op"), "Succeeded", v1alpha1.ReasonSucceeded)
	if count := w.node.count("zpool scrub"); count != 2 {
		t.Errorf("%d scrubs", count)
	}
}

// TestTheMarkComesBeforeTheCommand: wherever the agent dies, an operation whose command has run is named by its pool, and one that the pool
// names has recorded its start.
func TestTheMarkComesBeforeTheCommand(t *testing.T) {
	for at := 1; ; at++ {
		w := newWorld(t, wanted("op", acts()["destroyDataset"].action))
		w.node.diesAfter = at
		for turns := 0; turns < 20 && !w.node.isDead(); turns++ {
			_, _ = w.turn("op")
			w.rest("op")
			w.node.clock.Step(time.Second)
		}
		mark := w.node.pools[0].datasets[0].properties["storagebench.dev:begun"]
		if w.node.count("zfs destroy") > 0 && mark == "" || mark != "" && w.get("op").Status.StartedAt == nil {
			t.Errorf("crash after event %d: mark %q, commands %q, status %+v", at, mark, w.node.commands, w.get("op").Status)
		}
		if !w.node.isDead() {
			return
		}
	}
}
