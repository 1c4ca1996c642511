package operation

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/host"
)

func TestCancel(t *testing.T) {
	for name, want := range map[string]struct{ outcome, command string }{
		"scrub": {"Cancelled", "zpool scrub -s"}, "trim": {"Cancelled", "zpool trim -c"}, "removeVdev": {"Cancelled", "zpool remove -s"},
		"observe": {"Succeeded", ""}, "moduleParameter": {"Succeeded", ""}, "replaceDevice": {"Succeeded", ""},
		"destroyDataset": {"Succeeded", ""},
	} {
		t.Run(name, func(t *testing.T) {
			one := acts()[name]
			w := newWorld(t, wanted("op", one.action))
			for range 3 {
				if _, err := w.turn("op"); err != nil {
					t.Fatal(err)
				}
				w.rest("op")
			}
			cancel(t, w, "op")
			operation := w.settle("op")
			reason := map[string]string{"Cancelled": v1alpha1.ReasonCancelled, "Succeeded": v1alpha1.ReasonSucceeded}[want.outcome]
			expect(t, operation, want.outcome, reason)
			if want.command != "" && w.node.count(want.command) != 1 {
				t.Errorf("commands %q", w.node.commands)
			}
			checkParameter(t, w, operation)
		})
	}
}

func TestCancelledBeforeTheStart(t *testing.T) {
	operation := wanted("op", acts()["scrub"].action)
	operation.Spec.Cancel = true
	w := newWorld(t, operation)
	expect(t, w.settle("op"), "Cancelled", v1alpha1.ReasonCancelled)
	if len(w.node.commands) > 0 {
		t.Errorf("commands %q", w.node.commands)
	}
}

func TestDeadline(t *testing.T) {
	for name, command := range map[string]string{"scrub": "zpool scrub -s", "replaceDevice": "", "observe": "", "moduleParameter": ""} {
		t.Run(name, func(t *testing.T) {
			operation := wanted("op", acts()[name].action)
			operation.Spec.Deadline = seconds(3)
			w := newWorld(t, operation)
			ended := w.settle("op")
			expect(t, ended, "Failed", v1alpha1.ReasonDeadlineExceeded)
			if command != "" && w.node.count(command) != 1 {
				t.Errorf("commands %q", w.node.commands)
			}
			checkParameter(t, w, ended)
		})
	}
}

// TestOneAtATime: the younger operation waits for the older one, whichever is reconciled first.
func TestOneAtATime(t *testing.T) {
	older, younger := wanted("op", acts()["scrub"].action), wanted("younger", acts()["trim"].action)
	younger.CreationTimestamp = metav1.NewTime(older.CreationTimestamp.Add(time.Second))
	beside := wanted("beside", acts()["observe"].action)
	w := newWorld(t, older, younger, beside)
	if _, err := w.turn("younger"); err != nil {
		t.Fatal(err)
	}
	expect(t, w.get("younger"), "", v1alpha1.ReasonQueued)
	expect(t, w.settle("beside"), "Succeeded", v1alpha1.ReasonSucceeded)
	expect(t, w.settle("op"), "Succeeded", v1alpha1.ReasonSucceeded)
	expect(t, w.settle("younger"), "Succeeded", v1alpha1.ReasonSucceeded)
}

func TestPoolsThatAreNotReady(t *testing.T) {
	for name, change := range map[string]func(*world, *v1alpha1.BenchmarkPool){
		"not ready":    func(_ *world, pool *v1alpha1.BenchmarkPool) { pool.Status.Conditions[0].Status = metav1.ConditionFalse },
		"not observed": func(_ *world, pool *v1alpha1.BenchmarkPool) { pool.Generation++ },
		"not ours": func(w *world, _ *v1alpha1.BenchmarkPool) {
			w.node.pools[0].datasets[0].properties["storagebench.dev:uid"] = "uid-other"
		},
		"elsewhere": func(_ *world, pool *v1alpha1.BenchmarkPool) { pool.Spec.NodeName = "node-b" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, wanted("op", acts()["snapshot"].action))
			pool := readyPool("bench0")
			if err := w.client.Get(t.Context(), keyOf(pool), pool); err != nil {
				t.Fatal(err)
			}
			change(w, pool)
			status := pool.Status
			if err := w.client.Update(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
			pool.Status = status
			if err := w.client.Status().Update(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
			w.node.events = 0
			for range 3 {
				if _, err := w.turn("op"); err != nil {
					t.Fatal(err)
				}
			}
			expect(t, w.get("op"), "", v1alpha1.ReasonPoolNotReady)
			if len(w.node.commands) > 0 {
				t.Errorf("commands %q", w.node.commands)
			}
			w.node.clock.Step(7 * time.Hour)
			expect(t, w.settle("op"), "Failed", v1alpha1.ReasonDeadlineExceeded)
		})
	}
}

// TestOwnershipIsReadAgain replaces our pool with another one between the observation and the action.
func TestOwnershipIsReadAgain(t *testing.T) {
	for name, one := range acts() {
		if name == "moduleParameter" || name == "observe" {
			continue // they change no pool
		}
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, wanted("op", one.action))
			if one.prepare != nil {
				one.prepare(t, w)
			}
			if _, err := w.turn("op"); err != nil {
				t.Fatal(err)
			}
			state, err := w.agent.observe(t.Context(), w.get("op"))
			if err != nil {
				t.Fatal(err)
			}
			w.node.pools[0].datasets[0].properties["storagebench.dev:uid"] = "uid-other"
			decision := planned(state)
			err = w.agent.act(t.Context(), &state, decision.Actions)
			w.rest("op")
			if job := w.agent.jobs.look(state.Operation.UID); job != nil {
				err = job.Err
			}
			if err == nil || !strings.Contains(err.Error(), "does not belong to this BenchmarkPool") || len(w.node.commands) > 0 {
				t.Errorf("error %v, commands %q", err, w.node.commands)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for name, entry := range map[string]struct {
		act     string
		prepare func(*world)
		reason  string
	}{
		"snapshot of another user": {"snapshot", func(w *world) {
			w.node.pools[0].datasets = append(w.node.pools[0].datasets, w.node.dataset("bench0/data@s", "snapshot"))
		}, v1alpha1.ReasonSnapshotExists},
		"no dataset":  {"snapshot", func(w *world) { w.node.pools[0].datasets = w.node.pools[0].datasets[:1] }, v1alpha1.ReasonDatasetNotFound},
		"no snapshot": {"clone", func(*world) {}, v1alpha1.ReasonSnapshotNotFound},
		"target there": {"replicate", func(w *world) {
			w.node.pools[1].datasets = append(w.node.pools[1].datasets, w.node.dataset("bench1/received", "filesystem"))
		}, v1alpha1.ReasonDatasetExists},
		"denied": {"addVdev", func(w *world) { w.agent.Policy = nil }, v1alpha1.ReasonPoolDeviceDenied},
		"refused": {"replaceDevice", func(w *world) { w.node.refused[diskD] = &host.RefusedError{Path: diskD} },
			v1alpha1.ReasonPoolDeviceRefused},
		"not in pool": {"removeVdev", func(w *world) { w.node.pools[0].tops[0].disks = w.node.pools[0].tops[0].disks[:1] },
			v1alpha1.ReasonDeviceNotInPool},
		"parameter": {"moduleParameter", func(w *world) { w.agent.Parameters = nil }, v1alpha1.ReasonParameterNotAllowed},
		"no parameter": {"moduleParameter", func(w *world) {
			_ = os.Remove(filepath.Join(w.node.root, "/sys/module/zfs/parameters/zfs_txg_timeout"))
		},
			v1alpha1.ReasonParameterNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, wanted("op", acts()[entry.act].action))
			entry.prepare(w)
			expect(t, w.settle("op"), "Failed", entry.reason)
			if len(w.node.commands) > 0 {
				t.Errorf("commands %q", w.node.commands)
			}
		})
	}
}

func TestAUsedPoolIsNotExported(t *testing.T) {
	for name, used := range map[string]string{"exportImport": "bench0", "destroyDataset": "bench0/data"} {
		w := newWorld(t, wanted("op", acts()[name].action))
		w.node.users[used] = []string{"dataset bench0/data is mounted at /x"}
		for range 3 {
			if _, err := w.turn("op"); err != nil {
				t.Fatal(err)
			}
		}
		ready := meta.FindStatusCondition(w.get("op").Status.Conditions, v1alpha1.ConditionReady)
		if !strings.HasSuffix(ready.Reason, "InUse") || len(w.node.commands) > 0 {
			t.Errorf("%s: %+v, commands %q", name, ready, w.node.commands)
		}
		w.node.users = nil
		expect(t, w.settle("op"), "Succeeded", v1alpha1.ReasonSucceeded)
	}
}

// TestPathsAreVerifiedLast: a link that moves to another disk while the pool is being proven gives that disk to no command.
func TestPathsAreVerifiedLast(t *testing.T) {
	noDiskIsTaken(t, func(n *fakeNode) { n.swapAfter = "zfs get" })
}

// TestUsersAreLookedForLast: no command gets a disk that has a user since its check.
func TestUsersAreLookedForLast(t *testing.T) {
	noDiskIsTaken(t, func(n *fakeNode) { n.usedSince = true })
}

func noDiskIsTaken(t *testing.T, change func(n *fakeNode)) {
	t.Helper()
	for name, command := range map[string]string{"addVdev": "zpool add", "replaceDevice": "zpool replace"} {
		w := newWorld(t, wanted("op", acts()[name].action))
		for w.get("op").Status.StartedAt == nil {
			if _, err := w.turn("op"); err != nil {
				t.Fatal(err)
			}
		}
		change(w.node)
		for range 3 {
			_, _ = w.turn("op")
		}
		if w.node.count(command) > 0 {
			t.Errorf("%s: commands %q", name, w.node.commands)
		}
	}
}

func TestAnotherDatasetOfThatName(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["destroyDataset"].action))
	if _, err := w.turn("op"); err != nil {
		t.Fatal(err)
	}
	w.node.pools[0].find("bench0/data").guid = "999"
	expect(t, w.settle("op"), "Succeeded", v1alpha1.ReasonSucceeded)
	if w.node.count("zfs destroy") > 0 {
		t.Errorf("commands %q", w.node.commands)
	}
}

func TestScrubWithErrorsSucceeds(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["scrub"].action))
	for range 3 {
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
	}
	w.node.pools[0].scan.errors = 3
	operation := w.settle("op")
	expect(t, operation, "Succeeded", v1alpha1.ReasonSucceeded)
	if metricOf(operation, "errorsFound") != 3 || !strings.Contains(operation.Status.Conditions[0].Message, "3 errors") {
		t.Errorf("status %+v", operation.Status)
	}
}

// TestAnEarlierScrubIsNotTakenForOurs: a scrub that begins right after another one has ended reports its own result.
func TestAnEarlierScrubIsNotTakenForOurs(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["scrub"].action))
	now := w.node.clock.Now()
	w.node.pools[0].scan = &fakeScan{function: "scrub", start: now.Add(-time.Second), end: now}
	expect(t, w.settle("op"), "Succeeded", v1alpha1.ReasonSucceeded)
	if w.node.count("zpool scrub bench0") != 1 {
		t.Errorf("commands %q", w.node.commands)
	}
}

func TestNothingIsDoneOnOtherNodes(t *testing.T) {
	operation := wanted("op", acts()["scrub"].action)
	operation.Spec.NodeName = "node-b"
	w := newWorld(t, operation)
	if _, err := w.turn("op"); err != nil {
		t.Fatal(err)
	}
	if got := w.get("op"); len(got.Status.Conditions) > 0 || len(got.Finalizers) > 0 || len(w.node.commands) > 0 {
		t.Errorf("%+v, commands %q", got, w.node.commands)
	}
}

// TestAReimportInterrupts: there is no result if the counters were reset.
func TestAReimportInterrupts(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["observe"].action))
	for range 3 {
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
		w.rest("op")
	}
	w.node.mutex.Lock()
	w.node.pools[0].loads++
	w.node.mutex.Unlock()
	operation := w.settle("op")
	expect(t, operation, "Failed", v1alpha1.ReasonObservationInterrupted)
	checkObservation(t, w, operation)
}

func TestAJobEndsWithItsOperation(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["observe"].action))
	for range 3 {
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
		w.rest("op")
	}
	operation := w.get("op")
	if job := w.agent.jobs.look(operation.UID); job == nil || !job.Running {
		t.Fatalf("the job is %+v", job)
	}
	operation.Finalizers = nil
	if err := errors.Join(w.client.Update(t.Context(), operation), w.client.Delete(t.Context(), operation)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.turn("op"); err != nil {
		t.Fatal(err)
	}
	if job := w.agent.jobs.look(operation.UID); job != nil {
		t.Errorf("the job is %+v", job)
	}
	w.agent.written.Range(func(key, at any) bool {
		t.Errorf("%v was written at %v", key, at)
		return true
	})
}

// laggingClient knows no operations.
type laggingClient struct{ client.Client }

func (laggingClient) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// TestALaggingCacheLetsNothingBegin: another operation is running that is not in the cache yet.
func TestALaggingCacheLetsNothingBegin(t *testing.T) {
	other := wanted("other", acts()["trim"].action)
	other.Status.StartedAt = &metav1.Time{Time: time.Unix(1_800_000_000, 0)}
	w := newWorld(t, wanted("op", acts()["scrub"].action), other)
	w.agent.Client = laggingClient{w.agent.Client}
	if _, err := w.turn("op"); err != nil {
		t.Fatal(err)
	}
	expect(t, w.get("op"), "", v1alpha1.ReasonQueued)
}

func TestADatasetThatIsUsedSinceIsNotDestroyed(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["destroyDataset"].action))
	if _, err := w.turn("op"); err != nil {
		t.Fatal(err)
	}
	w.node.users["bench0/data"] = []string{"dataset bench0/data is mounted at /x"}
	for range 3 {
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
		w.rest("op")
	}
	if len(w.node.changes()) > 0 {
		t.Errorf("commands %q", w.node.commands)
	}
	expect(t, w.get("op"), "", v1alpha1.ReasonActionFailed)
	state, err := w.agent.observe(t.Context(), w.get("op"))
	if err != nil {
		t.Fatal(err)
	}
	// The same name, but another dataset at the last moment.
	w.node.users, state.Source.GUID = nil, "999"
	if _, err := w.agent.destroyDataset(t.Context(), state, nil); err == nil || len(w.node.changes()) > 0 {
		t.Errorf("error %v, commands %q", err, w.node.commands)
	}
}

// TestNoScoreOfNothing: a file without blocks, or with a single one, has no layout score.
func TestNoScoreOfNothing(t *testing.T) {
	for _, blocks := range [][]string{{}, {"  0 L0 0:1000:1000 1000L/1000P F=1 B=1/1"}} {
		w := newWorld(t, wanted("op", acts()["layoutScore"].action))
		w.node.blocks = blocks
		operation := w.settle("op")
		expect(t, operation, "Failed", v1alpha1.ReasonActionFailed)
		if len(operation.Status.Metrics) > 0 {
			t.Errorf("metrics %+v", operation.Status.Metrics)
		}
	}
}

// TestSilentDisksAreNotWaitedFor: some commands wait for the disks of the pool in the kernel, while the commands of all other pools wait for
// them. They are not run while a disk does not respond, neither at the start of an operation nor at its end.
func TestSilentDisksAreNotWaitedFor(t *testing.T) {
	waits := func(w *world) (found []string) {
		for _, command := range w.node.commands {
			words := strings.Fields(command)
			if words[0] == "zpool" && slices.Contains([]string{"create", "add", "attach", "replace", "offline", "online", "export", "import", "trim"},
				words[1]) || strings.HasPrefix(command, "zpool remove ") && !strings.HasPrefix(command, "zpool remove -s") {
				found = append(found, command)
			}
		}
		return found
	}
	begun := 0
	for name, one := range acts() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, wanted("op", one.action))
			if one.prepare != nil {
				one.prepare(t, w)
			}
			before := len(waits(w))
			w.node.silent.Store(true)
			for range 4 {
				_, _ = w.turn("op") // what waits for the disk is retried
			}
			if told := waits(w)[before:]; len(told) > 0 {
				t.Errorf("commands %q", told)
			}
			w.node.silent.Store(false)
			expect(t, w.settle("op"), "Succeeded", v1alpha1.ReasonSucceeded)
			begun += len(waits(w)) - before
		})
	}
	if begun < 6 {
		t.Errorf("only %d commands that wait for disks: nothing is shown", begun)
	}
	w := newWorld(t, wanted("op", acts()["trim"].action))
	for range 3 {
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
		w.rest("op")
	}
	w.node.silent.Store(true)
	cancel(t, w, "op")
	for range 3 {
		_, _ = w.turn("op")
	}
	if w.node.count("zpool trim -c") != 0 {
		t.Errorf("commands %q", w.node.commands)
	}
	w.node.silent.Store(false)
	expect(t, w.settle("op"), "Cancelled", v1alpha1.ReasonCancelled)
}
