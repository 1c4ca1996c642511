package operation

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/zfs/device"
)

// act is an operation with what it must leave behind, whatever dies in between.
type act struct {
	action  v1alpha1.PoolAction
	prepare func(*testing.T, *world)
	// check looks at the node afterwards.
	check func(*testing.T, *world, *v1alpha1.PoolOperation)
	// once are the commands that must have been run exactly once.
	once []string
	// events that the life of the operation has at least: crash points.
	events int
	// interrupted is the reason of a failure if the agent has died within; empty if it does not matter.
	interrupted string
}

func mounted(t *testing.T, w *world, dataset, at string) {
	t.Helper()
	folder := filepath.Join(w.node.root, at)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(folder)
	if err != nil {
		t.Fatal(err)
	}
	was, _ := os.ReadFile(filepath.Join(w.node.root, "/proc/1/mountinfo"))
	w.node.write(t, "/proc/1/mountinfo", string(was)+fmt.Sprintf("36 25 %s / %s rw - zfs %s rw\n", deviceNumber(info), at, dataset))
}

func prepareCopy(t *testing.T, w *world) {
	w.node.pools[0].datasets = append(w.node.pools[0].datasets, w.node.dataset("bench0/copy", "filesystem"))
	mounted(t, w, "bench0/data", "/mnt/data")
	mounted(t, w, "bench0/copy", "/mnt/copy")
	w.node.write(t, "/mnt/data/large", strings.Repeat("x", 3000))
	w.node.write(t, "/mnt/data/folder/small", "y")
	w.node.write(t, "/outside", "secret")
	if err := os.Symlink("/outside", filepath.Join(w.node.root, "/mnt/data/link")); err != nil {
		t.Fatal(err)
	}
}

func acts() map[string]act {
	return map[string]act{
		"snapshot": {action: v1alpha1.PoolAction{Snapshot: &v1alpha1.SnapshotAction{Dataset: "data", Name: "s", Recursive: true}}, events: 4,
			once: []string{"zfs snapshot -r -o storagebench.dev:operation=12345678-op bench0/data@s"}},
		"clone": {action: v1alpha1.PoolAction{Clone: &v1alpha1.CloneAction{Dataset: "data", Snapshot: "s", To: "copy"}}, events: 4,
			prepare: func(_ *testing.T, w *world) {
				w.node.pools[0].datasets = append(w.node.pools[0].datasets, w.node.dataset("bench0/data@s", "snapshot"))
			},
			once: []string{"zfs clone -o storagebench.dev:operation=12345678-op bench0/data@s bench0/copy"}},
		"destroyDataset": {action: v1alpha1.PoolAction{DestroyDataset: &v1alpha1.DestroyDatasetAction{Dataset: "data", Recursive: true}}, events: 4,
			once: []string{"zfs destroy -r bench0/data"},
			check: func(t *testing.T, w *world, operation *v1alpha1.PoolOperation) {
				if w.node.pools[0].find("bench0/data") != nil || w.node.pools[0].freeing != 0 || metricOf(operation, "freedBytes") != 50 {
					t.Errorf("%+v, status %+v", w.node.pools[0], operation.Status)
				}
			}},
		"scrub": {action: v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}, events: 4, once: []string{"zpool scrub bench0"}},
		"trim":  {action: v1alpha1.PoolAction{Trim: &v1alpha1.TrimAction{}}, events: 4, once: []string{"zpool trim bench0"}},
		"addVdev": {action: v1alpha1.PoolAction{AddVdev: &v1alpha1.Vdev{Type: "mirror", Devices: []v1alpha1.DevicePath{diskD, "/dev/disk/by-id/e"}}}, events: 4,
			once: []string{"zpool add -o ashift=12 bench0 mirror " + diskD + " /dev/disk/by-id/e"}},
		"removeVdev": {action: v1alpha1.PoolAction{RemoveVdev: &v1alpha1.RemoveVdevAction{Device: diskB}}, events: 4, once: []string{"zpool remove bench0 "}},
		"replaceDevice": {action: v1alpha1.PoolAction{ReplaceDevice: &v1alpha1.ReplaceDeviceAction{Device: diskA, With: diskD}}, events: 4,
			once: []string{"zpool replace bench0 "},
			check: func(t *testing.T, w *world, _ *v1alpha1.PoolOperation) {
				if disk := w.node.pools[0].tops[0].disks[0]; disk.path != diskD || disk.replacing != nil {
					t.Errorf("the first disk is %+v", disk)
				}
			}},
		"exportImport": {action: v1alpha1.PoolAction{ExportImport: &v1alpha1.ExportImportAction{}}, events: 5, once: []string{"zpool export bench0"},
			check: func(t *testing.T, w *world, _ *v1alpha1.PoolOperation) {
				if pool := w.node.pools[0]; !pool.imported || pool.loads != 2 {
					t.Errorf("%+v", pool)
				}
			}},
		"layoutScore": {action: v1alpha1.PoolAction{LayoutScore: &v1alpha1.LayoutScoreAction{Dataset: "data"}}, events: 3,
			check: func(t *testing.T, _ *world, operation *v1alpha1.PoolOperation) {
				if metricOf(operation, "layoutScorePercent") != 50 || metricOf(operation, "segments") != 2 {
					t.Errorf("metrics %+v", operation.Status.Metrics)
				}
			}},
		"metaslabMap": {action: v1alpha1.PoolAction{MetaslabMap: &v1alpha1.MetaslabMapAction{}}, events: 3,
			check: func(t *testing.T, _ *world, operation *v1alpha1.PoolOperation) {
				document := unpack[poolseries.MetaslabMap](t, operation)
				if document.FreeBytes != 12288 || len(document.Metaslabs) != 2 || metricOf(operation, "largestFreeSegmentBytes") != 4096 {
					t.Errorf("document %+v, metrics %+v", document, operation.Status.Metrics)
				}
			}},
		"copy": {action: v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{Dataset: "data", To: "copy"}}, events: 3, prepare: prepareCopy,
			check: func(t *testing.T, w *world, operation *v1alpha1.PoolOperation) {
				if w.node.read(t, "/mnt/copy/folder/small") != "y" || len(w.node.read(t, "/mnt/copy/large")) != 3000 || metricOf(operation, "copiedBytes") != 3001 || metricOf(operation, "skippedEntries") != 1 {
					t.Errorf("status %+v", operation.Status)
				}
				if _, err := os.Lstat(filepath.Join(w.node.root, "/mnt/copy/link")); err == nil {
					t.Error("the link was copied")
				}
			}},
		"replicate": {action: v1alpha1.PoolAction{Replicate: &v1alpha1.ReplicateAction{Dataset: "data", ToPool: "bench1", To: "received", Increments: 2}}, events: 15,
			check: checkReplication},
		"moduleParameter": {action: v1alpha1.PoolAction{ModuleParameter: &v1alpha1.ModuleParameterAction{Name: "zfs_txg_timeout", Value: "30", Duration: seconds(20)}}, events: 3,
			check: checkParameter},
		"observe": {action: v1alpha1.PoolAction{Observe: &v1alpha1.ObserveAction{Duration: seconds(20), Interval: seconds(1)}}, events: 3,
			interrupted: v1alpha1.ReasonObservationInterrupted, check: checkObservation},
	}
}

func unpack[T any](t *testing.T, operation *v1alpha1.PoolOperation) T {
	t.Helper()
	text, err := results.Unpack(operation.Status.Data)
	if err != nil {
		t.Fatal(err)
	}
	if digest := results.Digest(text); digest != operation.Status.DataDigest {
		t.Errorf("digest %s, recorded is %s", digest, operation.Status.DataDigest)
	}
	var document T
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	return document
}

func checkReplication(t *testing.T, w *world, _ *v1alpha1.PoolOperation) {
	t.Helper()
	var there []string
	for _, pool := range w.node.pools {
		for _, dataset := range pool.datasets {
			if strings.Contains(dataset.name, "@") || dataset.name == "bench1/received" {
				there = append(there, dataset.name+" "+dataset.properties["storagebench.dev:operation"]+dataset.token)
			}
		}
	}
	want := []string{"bench1/received 12345678-op", "bench1/received@storagebench-12345678-0 ", "bench1/received@storagebench-12345678-1 ", "bench1/received@storagebench-12345678-2 "}
	if !slices.Equal(there, want) {
		t.Errorf("there are %q", there)
	}
}

func checkParameter(t *testing.T, w *world, _ *v1alpha1.PoolOperation) {
	t.Helper()
	if value := w.node.read(t, "/sys/module/zfs/parameters/zfs_txg_timeout"); value != "5" {
		t.Errorf("the parameter is %s", value)
	}
	if left, _ := filepath.Glob(filepath.Join(w.node.root, parameterFolder, "*")); len(left) > 0 {
		t.Errorf("left on the node are %q", left)
	}
}

func checkObservation(t *testing.T, _ *world, operation *v1alpha1.PoolOperation) {
	t.Helper()
	if operation.Status.Outcome == "Failed" {
		if len(operation.Status.Metrics) > 0 || len(operation.Status.Data) > 0 {
			t.Errorf("a window with a hole has numbers: %+v", operation.Status)
		}
		return
	}
	document := unpack[poolseries.Document](t, operation)
	if len(document.Series.OffsetMilliseconds) < 3 || len(document.Vdevs) != 3 || !document.Vdevs[0].TopLevel || !document.Vdevs[1].Disk || document.Gang == nil ||
		document.TransactionGroups == nil || len(document.RequestSizes) != 1 {
		t.Errorf("document %+v", document)
	}
	window := metricOf(operation, "windowMilliseconds")
	if window < 20_000 || metricOf(operation, "poolReadOperations")*1000 != window || metricOf(operation, "diskReadOperations")*1000 != window {
		t.Errorf("metrics %+v", operation.Status.Metrics)
	}
}

// TestLives plays each kind of operation without trouble.
func TestLives(t *testing.T) {
	for name, one := range acts() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, wanted("op", one.action))
			if one.prepare != nil {
				one.prepare(t, w)
			}
			operation := w.settle("op")
			expect(t, operation, "Succeeded", v1alpha1.ReasonSucceeded)
			w.check(t, one, operation, 0)
			if operation.Status.Progress == nil || operation.Status.Progress.Percent != 100 || !strings.HasPrefix(operation.Status.Handle, "101") {
				t.Errorf("status %+v", operation.Status)
			}
			version, commands := operation.ResourceVersion, len(w.node.commands)
			w.start()
			if again := w.settle("op"); again.ResourceVersion != version || len(w.node.commands) != commands {
				t.Error("something was done after the outcome")
			}
			const bound = 9 // finalizer, begin, progress of half a minute, outcome, finalizer
			if w.writes > bound {
				t.Errorf("%d writes to the API", w.writes)
			}
			for _, command := range w.node.commands {
				if strings.Contains(command, " -f") || strings.Contains(command, " -F") {
					t.Errorf("force: %s", command)
				}
			}
		})
	}
}

func (w *world) check(t *testing.T, one act, operation *v1alpha1.PoolOperation, at int) {
	t.Helper()
	for _, command := range one.once {
		if count := w.node.count(command); count != 1 {
			t.Errorf("crash after event %d: %q was run %d times:\n%s", at, command, count, strings.Join(w.node.commands, "\n"))
		}
	}
	if one.check != nil {
		one.check(t, w, operation)
	}
}

// TestCrashes ends the agent right after each command that changes something and each write to the API.
func TestCrashes(t *testing.T) {
	for name, one := range acts() {
		t.Run(name, func(t *testing.T) {
			for at := 1; ; at++ {
				w := newWorld(t, wanted("op", one.action))
				if one.prepare != nil {
					one.prepare(t, w)
				}
				w.node.diesAfter = at
				operation := w.settle("op")
				if operation.Status.Outcome == "Failed" && one.interrupted != "" && w.lives > 1 {
					expect(t, operation, "Failed", one.interrupted)
				} else {
					expect(t, operation, "Succeeded", v1alpha1.ReasonSucceeded)
				}
				w.check(t, one, operation, at)
				if w.node.events < at {
					if at <= one.events {
						t.Errorf("only %d crash points", at-1)
					}
					return
				}
				if w.lives != 2 {
					t.Errorf("crash after event %d: %d lives", at, w.lives)
				}
			}
		})
	}
}

func TestDeletedInTheMiddle(t *testing.T) {
	for name, one := range acts() {
		t.Run(name, func(t *testing.T) {
			for turns := 1; turns <= 4; turns++ {
				w := newWorld(t, wanted("op", one.action))
				if one.prepare != nil {
					one.prepare(t, w)
				}
				for range turns {
					if _, err := w.turn("op"); err != nil {
						t.Fatal(err)
					}
					w.rest("op")
				}
				if err := w.client.Delete(t.Context(), w.get("op")); err != nil {
					t.Fatal(err)
				}
				if left := w.settle("op"); left != nil {
					t.Fatalf("after %d turns, the object stays: %+v", turns, left)
				}
				checkParameter(t, w, nil)
				for _, pool := range w.node.pools {
					if pool.scan != nil && pool.scan.function == "scrub" && !pool.scan.stopped && w.node.clock.Now().Before(pool.scan.end) {
						t.Errorf("after %d turns, the scrub goes on", turns)
					}
					for _, dataset := range pool.datasets {
						if dataset.token != "" || pool.name == "bench0" && strings.Contains(dataset.name, "@storagebench-") {
							t.Errorf("after %d turns, left is %+v", turns, dataset)
						}
					}
				}
			}
		})
	}
}

func TestCancel(t *testing.T) {
	for name, want := range map[string]struct{ outcome, command string }{
		"scrub": {"Cancelled", "zpool scrub -s"}, "trim": {"Cancelled", "zpool trim -c"}, "removeVdev": {"Cancelled", "zpool remove -s"},
		"observe": {"Succeeded", ""}, "moduleParameter": {"Succeeded", ""}, "replaceDevice": {"Succeeded", ""}, "destroyDataset": {"Succeeded", ""},
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

// TestOneAtATime lets the younger wait for the older, whichever is looked at first.
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

// TestOwnershipIsReadAgain puts another pool in the place of ours between the look and the act.
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
			if err == nil || !strings.Contains(err.Error(), "not this BenchmarkPool's") || len(w.node.commands) > 0 {
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
		"snapshot of somebody else": {"snapshot", func(w *world) {
			w.node.pools[0].datasets = append(w.node.pools[0].datasets, w.node.dataset("bench0/data@s", "snapshot"))
		}, v1alpha1.ReasonSnapshotExists},
		"no dataset":  {"snapshot", func(w *world) { w.node.pools[0].datasets = w.node.pools[0].datasets[:1] }, v1alpha1.ReasonDatasetNotFound},
		"no snapshot": {"clone", func(*world) {}, v1alpha1.ReasonSnapshotNotFound},
		"target there": {"replicate", func(w *world) {
			w.node.pools[1].datasets = append(w.node.pools[1].datasets, w.node.dataset("bench1/received", "filesystem"))
		}, v1alpha1.ReasonDatasetExists},
		"denied":      {"addVdev", func(w *world) { w.agent.Policy = nil }, v1alpha1.ReasonPoolDeviceDenied},
		"refused":     {"replaceDevice", func(w *world) { w.node.refused[diskD] = &device.RefusedError{Path: diskD} }, v1alpha1.ReasonPoolDeviceRefused},
		"not in pool": {"removeVdev", func(w *world) { w.node.pools[0].tops[0].disks = w.node.pools[0].tops[0].disks[:1] }, v1alpha1.ReasonDeviceNotInPool},
		"parameter":   {"moduleParameter", func(w *world) { w.agent.Parameters = nil }, v1alpha1.ReasonParameterNotAllowed},
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

// TestAnEarlierScrubIsNotTakenForOurs begins right after another scrub has ended.
func TestAnEarlierScrubIsNotTakenForOurs(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["scrub"].action))
	now := w.node.clock.Now()
	w.node.pools[0].scan = &fakeScan{function: "scrub", start: now.Add(-time.Second), end: now}
	expect(t, w.settle("op"), "Succeeded", v1alpha1.ReasonSucceeded)
	if w.node.count("zpool scrub bench0") != 1 {
		t.Errorf("commands %q", w.node.commands)
	}
}

func TestParameterAfterAReboot(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["moduleParameter"].action))
	for range 3 {
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
	}
	if value := w.node.read(t, "/sys/module/zfs/parameters/zfs_txg_timeout"); value != "30" {
		t.Fatalf("the parameter is %s", value)
	}
	w.node.write(t, "/proc/sys/kernel/random/boot_id", "boot-2")
	w.node.write(t, "/sys/module/zfs/parameters/zfs_txg_timeout", "7")
	w.start()
	expect(t, w.settle("op"), "Failed", v1alpha1.ReasonParameterInterrupted)
	if value := w.node.read(t, "/sys/module/zfs/parameters/zfs_txg_timeout"); value != "7" {
		t.Errorf("after the reboot the parameter was set to %s", value)
	}
}

func TestOrphanedParametersAreRestored(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["moduleParameter"].action))
	for range 3 {
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
	}
	operation := w.get("op")
	operation.Finalizers = nil
	if err := errors.Join(w.client.Update(t.Context(), operation), w.client.Delete(t.Context(), operation)); err != nil {
		t.Fatal(err)
	}
	w.start()
	if err := w.agent.restoreOrphans(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkParameter(t, w, nil)
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

// TestAPoolImportedAnewInterrupts gives no number when the counters began again.
func TestAPoolImportedAnewInterrupts(t *testing.T) {
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
