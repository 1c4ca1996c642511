package operation

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/packing"
	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/results"
)

// act is an operation with the result that it must have, wherever the agent dies.
type act struct {
	action  v1alpha1.PoolAction
	prepare func(*testing.T, *world)
	// check looks at the node afterwards.
	check func(*testing.T, *world, *v1alpha1.PoolOperation)
	// once are the commands that must have been run exactly once.
	once []string
	// events is the least number of events in the life of the operation. The agent can crash after each.
	events int
	// interrupted is the reason of the failure if the agent died during the operation. Empty if the operation succeeds nevertheless.
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
			once: []string{"zfs clone -o canmount=noauto -o mountpoint=none -o storagebench.dev:operation=12345678-op bench0/data@s bench0/copy"}},
		"destroyDataset": {action: v1alpha1.PoolAction{DestroyDataset: &v1alpha1.DestroyDatasetAction{Dataset: "data", Recursive: true}},
			events: 4,
			once:   []string{"zfs destroy -r bench0/data"},
			check: func(t *testing.T, w *world, operation *v1alpha1.PoolOperation) {
				if w.node.pools[0].find("bench0/data") != nil || w.node.pools[0].freeing != 0 || metricOf(operation, "freedBytes") != 50 {
					t.Errorf("%+v, status %+v", w.node.pools[0], operation.Status)
				}
			}},
		"scrub": {action: v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}, events: 4, once: []string{"zpool scrub bench0"}},
		"trim":  {action: v1alpha1.PoolAction{Trim: &v1alpha1.TrimAction{}}, events: 4, once: []string{"zpool trim bench0"}},
		"addVdev": {action: v1alpha1.PoolAction{AddVdev: &v1alpha1.AddVdevAction{Type: "mirror",
			Devices: []v1alpha1.DiskRef{diskD, "/dev/disk/by-id/e"}}}, events: 5,
			once: []string{"zpool add -o ashift=12 bench0 mirror " + diskD + " /dev/disk/by-id/e"}},
		"removeVdev": {action: v1alpha1.PoolAction{RemoveVdev: &v1alpha1.RemoveVdevAction{Device: diskB}}, events: 4,
			once: []string{"zpool remove bench0 "}},
		"replaceDevice": {action: v1alpha1.PoolAction{ReplaceDevice: &v1alpha1.ReplaceDeviceAction{Device: diskA, With: diskD}}, events: 5,
			once: []string{"zpool replace bench0 "},
			check: func(t *testing.T, w *world, _ *v1alpha1.PoolOperation) {
				if disk := w.node.pools[0].tops[0].disks[0]; disk.path != diskD || disk.replacing != nil {
					t.Errorf("the first disk is %+v", disk)
				}
			}},
		"offlineDevice": {action: v1alpha1.PoolAction{OfflineDevice: &v1alpha1.OfflineDeviceAction{Device: diskA, Duration: seconds(20)}}, events: 6,
			once: []string{"zpool offline -t bench0 10"}, interrupted: v1alpha1.ReasonAgentDied, check: checkOffline},
		"exportImport": {action: v1alpha1.PoolAction{ExportImport: &v1alpha1.ExportImportAction{}}, events: 5,
			once: []string{"zpool export bench0"},
			check: func(t *testing.T, w *world, _ *v1alpha1.PoolOperation) {
				if pool := w.node.pools[0]; !pool.imported || pool.loads != 2 {
					t.Errorf("%+v", pool)
				}
			}},
		"layoutScore": {action: v1alpha1.PoolAction{LayoutScore: &v1alpha1.LayoutScoreAction{Dataset: "data"}}, events: 3,
			check: func(t *testing.T, _ *world, operation *v1alpha1.PoolOperation) {
				if metricOf(operation, "layoutScorePartsPerMillion") != 500_000 || metricOf(operation, "segments") != 2 {
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
				if w.node.read(t, "/mnt/copy/folder/small") != "y" || len(w.node.read(t, "/mnt/copy/large")) != 3000 ||
					metricOf(operation, "copiedBytes") != 3001 || metricOf(operation, "skippedEntries") != 1 {
					t.Errorf("status %+v", operation.Status)
				}
				if _, err := os.Lstat(filepath.Join(w.node.root, "/mnt/copy/link")); err == nil {
					t.Error("the link was copied")
				}
			}},
		"copy elsewhere": {action: v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{Dataset: "data", ToPool: "bench1", To: "new",
			Properties: v1alpha1.LiveProperties{"recordsize": "128k"}}}, events: 4,
			prepare: func(t *testing.T, w *world) {
				prepareCopy(t, w)
				mounted(t, w, "bench1/new", "/mnt/new")
			},
			once: []string{"zfs create -u -o canmount=noauto -o mountpoint=none -o recordsize=128k " +
				"-o storagebench.dev:operation=12345678-op bench1/new"},
			check: func(t *testing.T, w *world, operation *v1alpha1.PoolOperation) {
				if w.node.read(t, "/mnt/new/folder/small") != "y" || metricOf(operation, "copiedBytes") != 3001 || w.node.count("zfs create ") != 1 ||
					len(w.node.changes()) != 1 {
					t.Errorf("status %+v", operation.Status)
				}
			}},
		"replicate": {action: v1alpha1.PoolAction{Replicate: &v1alpha1.ReplicateAction{Dataset: "data", ToPool: "bench1", To: "received",
			Increments: 2}}, events: 15,
			check: checkReplication},
		"replicate, interrupted": {action: v1alpha1.PoolAction{Replicate: &v1alpha1.ReplicateAction{Dataset: "data", ToPool: "bench1", To: "received",
			Increments: 2, InterruptAt: "50%"}}, events: 16,
			check: checkReplication},
		"moduleParameter": {action: v1alpha1.PoolAction{ModuleParameter: &v1alpha1.ModuleParameterAction{Name: "zfs_txg_timeout", Value: "30",
			Duration: seconds(20)}}, events: 3,
			check: checkParameter},
		"setProperty": {action: v1alpha1.PoolAction{SetProperty: &v1alpha1.SetPropertyAction{Dataset: "data",
			Properties: v1alpha1.LiveProperties{"recordsize": "128k", "sync": "disabled"}}}, events: 4, prepare: prepareProperties,
			once: []string{"zfs set recordsize=128k storagebench.dev:changed=12345678-op,logbias=throughput,recordsize=128k,sync=disabled " +
				"sync=disabled bench0/data"}},
		"observe": {action: v1alpha1.PoolAction{Observe: &v1alpha1.ObserveAction{Duration: seconds(20), Interval: seconds(1)}}, events: 3,
			interrupted: v1alpha1.ReasonAgentRestarted, check: checkObservation},
	}
}

// prepareProperties sets the properties and the mark of an earlier operation, which stay in force.
func prepareProperties(_ *testing.T, w *world) {
	w.node.pools[0].find("bench0/data").properties = map[string]string{"recordsize": "8k", "sync": "standard", "logbias": "throughput",
		pools.PropertyChanged: "12345678-before,logbias=throughput,recordsize=16k"}
}

func unpack[T any](t *testing.T, operation *v1alpha1.PoolOperation) T {
	t.Helper()
	text, err := packing.Unpack(operation.Status.Data)
	if err != nil {
		t.Fatal(err)
	}
	if digest := packing.Digest(text); digest != operation.Status.DataDigest {
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
			if dataset.name == "bench1/received" && (dataset.properties["canmount"] != "noauto" || dataset.properties["mountpoint"] != "none") {
				t.Errorf("what was received can be mounted by itself: %v", dataset.properties)
			}
			if strings.Contains(dataset.name, "@") || dataset.name == "bench1/received" {
				there = append(there, dataset.name+" "+dataset.properties["storagebench.dev:operation"]+dataset.token)
			}
		}
	}
	want := []string{"bench1/received 12345678-op", "bench1/received@storagebench-12345678-0 ", "bench1/received@storagebench-12345678-1 ",
		"bench1/received@storagebench-12345678-2 "}
	if !slices.Equal(there, want) {
		t.Errorf("there are %q", there)
	}
}

// checkOffline: the disk is online again, and an agent that was not interrupted reports how long it was offline.
func checkOffline(t *testing.T, w *world, operation *v1alpha1.PoolOperation) {
	t.Helper()
	if disk := w.node.pools[0].offline(); disk != nil {
		t.Errorf("%s is offline", disk.path)
	}
	away, rebuilt := time.Duration(metricOf(operation, "offlineNanoseconds")), time.Duration(metricOf(operation, "resilverNanoseconds"))
	if operation.Status.Outcome == v1alpha1.OutcomeFailed {
		if len(operation.Status.Metrics) > 0 {
			t.Errorf("an operation that was interrupted has numbers: %+v", operation.Status.Metrics)
		}
		return
	}
	if away < 20*time.Second || away > 22*time.Second || rebuilt < scanSeconds*time.Second || rebuilt > (scanSeconds+2)*time.Second {
		t.Errorf("offline for %s, rebuilt in %s", away, rebuilt)
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
	if len(document.Series.OffsetMilliseconds) < 3 || len(document.Vdevs) != 3 || !document.Vdevs[0].TopLevel || !document.Vdevs[1].Disk ||
		document.Gang == nil ||
		document.TransactionGroups == nil || len(document.RequestSizes) != 1 {
		t.Errorf("document %+v", document)
	}
	window := metricOf(operation, "windowMilliseconds")
	if window < 20_000 || metricOf(operation, "poolReadOperations")*1000 != window ||
		metricOf(operation, "diskReadOperations")*1000 != window {
		t.Errorf("metrics %+v", operation.Status.Metrics)
	}
}

// TestLives runs each kind of operation without failures.
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

// TestCrashes ends the agent, and then the node, right after each command that changes something and each write to the API.
func TestCrashes(t *testing.T) {
	for name, one := range acts() {
		for _, resets := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, node resets %v", name, resets), func(t *testing.T) {
				for at := 1; crashAfter(t, one, at, resets); at++ {
				}
			})
		}
	}
}

// crashAfter reports whether there was such an event.
func crashAfter(t *testing.T, one act, at int, resets bool) bool {
	t.Helper()
	w := newWorld(t, wanted("op", one.action))
	if one.prepare != nil {
		one.prepare(t, w)
	}
	w.node.diesAfter, w.resets = at, resets
	operation := w.settle("op")
	interrupted := one.interrupted
	if one.action.ModuleParameter != nil && resets {
		interrupted = v1alpha1.ReasonParameterInterrupted
	}
	if operation.Status.Outcome == "Failed" && interrupted != "" && w.lives > 1 {
		expect(t, operation, "Failed", interrupted)
	} else {
		expect(t, operation, "Succeeded", v1alpha1.ReasonSucceeded)
	}
	if one.action.ExportImport != nil && resets {
		one.once, one.check = nil, nil // the reset has emptied the caches
	}
	w.check(t, one, operation, at)
	if w.node.events < at {
		if at <= one.events {
			t.Errorf("only %d crash points", at-1)
		}
		return false
	}
	if w.lives != 2 {
		t.Errorf("crash after event %d: %d lives", at, w.lives)
	}
	return true
}

// TestCrashesOfAReplicationAreResumed makes sure that crashes lead to resumed sends at all.
func TestCrashesOfAReplicationAreResumed(t *testing.T) {
	one, resumed := acts()["replicate"], 0
	for at := 1; at <= one.events; at++ {
		w := newWorld(t, wanted("op", one.action))
		w.node.diesAfter = at
		w.settle("op")
		resumed += w.node.count("zfs send -t 1-")
	}
	if parts := 3; resumed != parts {
		t.Errorf("%d sends were resumed, want one of each of %d parts", resumed, parts)
	}
}

// TestATargetThatAReceiveDoesNotMark: the target is marked afterwards, whenever the agent dies.
func TestATargetThatAReceiveDoesNotMark(t *testing.T) {
	one := acts()["replicate"]
	one.prepare = func(_ *testing.T, w *world) { w.node.marksNothing = true }
	for at := 1; crashAfter(t, one, at, false); at++ {
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
					if pool.offline() != nil {
						t.Errorf("after %d turns, the disk is offline", turns)
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

// TestTimesOfCommands: a snapshot, a clone and the command of a destruction take 40 ms each, and report exactly that, not the time until
// the agent checks again. The space of a destroyed dataset is free 5 s later. An agent that died right after the command reports no time.
func TestTimesOfCommands(t *testing.T) {
	for name, of := range map[string]string{"snapshot": operate.MetricDurationNanoseconds, "clone": operate.MetricDurationNanoseconds,
		"destroyDataset": operate.MetricCommand} {
		for _, dies := range []bool{false, true} {
			one := acts()[name]
			w := newWorld(t, wanted("op", one.action))
			if one.prepare != nil {
				one.prepare(t, w)
			}
			w.node.takes = 40 * time.Millisecond
			for range 20 {
				if _, err := w.turn("op"); err != nil {
					t.Fatal(err)
				}
				if w.rest("op"); w.node.count(strings.Fields(one.once[0])[0]+" "+strings.Fields(one.once[0])[1]) > 0 {
					break
				}
			}
			if dies {
				w.start()
			}
			operation, want := w.settle("op"), int64(40*time.Millisecond)
			if dies {
				want = -1
			}
			if got := metricOf(operation, of); got != want || operation.Status.Outcome != v1alpha1.OutcomeSucceeded {
				t.Errorf("%s, the agent dies %v: %s is %d, want %d: %+v", name, dies, of, got, want, operation.Status)
			}
			drained := metricOf(operation, operate.MetricDuration)
			if known := drained >= 5 && drained <= 8; name == "destroyDataset" && (known == dies || dies && drained >= 0) {
				t.Errorf("the agent dies %v: all of its space was free after %d s", dies, drained)
			}
		}
	}
}

// TestDurationsAcrossAgents: an agent is replaced and comes back a minute later, so the time from the start to the end that the next one
// sees says nothing about the storage.
func TestDurationsAcrossAgents(t *testing.T) {
	for _, name := range []string{"trim", "addVdev", "exportImport", "layoutScore", "metaslabMap", "replicate", "moduleParameter"} {
		for _, replaced := range []bool{false, true} {
			one := acts()[name]
			w := newWorld(t, wanted("op", one.action))
			if one.prepare != nil {
				one.prepare(t, w)
			}
			for range 20 {
				if _, err := w.turn("op"); err != nil {
					t.Fatal(err)
				}
				if w.get("op").Status.StartedAt != nil {
					break
				}
			}
			if replaced {
				w.node.clock.Step(time.Minute)
				w.start()
			}
			operation := w.settle("op")
			expect(t, operation, "Succeeded", v1alpha1.ReasonSucceeded)
			if took := metricOf(operation, operate.MetricDuration); (took < 0) != replaced {
				t.Errorf("%s, the agent is replaced %v: it took %d s", name, replaced, took)
			}
		}
	}
}

// TestMetricsOfOperations: the list of metrics by which gates are refused equals the metrics that operations report.
func TestMetricsOfOperations(t *testing.T) {
	reported := map[string]map[string]bool{}
	for _, one := range acts() {
		w := newWorld(t, wanted("op", one.action))
		if one.prepare != nil {
			one.prepare(t, w)
		}
		w.node.syncs, w.node.takes = 2*time.Second, time.Millisecond // an operation that takes no time has no rate and no duration
		operation, name := w.settle("op"), operate.Name(one.action)
		if reported[name] == nil {
			reported[name] = map[string]bool{}
		}
		for _, metric := range operation.Status.Metrics {
			if _, known := results.LookupMetric(metric.Name); known && metric.Name != operate.MetricDurationNanoseconds {
				reported[name][metric.Name] = true
			}
		}
	}
	for _, one := range acts() {
		names, known := operate.Metrics(&one.action)
		name := operate.Name(one.action)
		if got := slices.Sorted(maps.Keys(reported[name])); !known || !slices.Equal(got, slices.Sorted(slices.Values(names))) {
			t.Errorf("%s reports %v, but is said to report %v", name, got, names)
		}
	}
}

// TestEveryActionHasACommand: the agent can do each operation of the API, at once or in its background.
func TestEveryActionHasACommand(t *testing.T) {
	all := operate.All()
	for _, action := range all {
		kind, found := kinds[operate.Name(action)]
		if !found || (kind.run == nil) == (kind.work == nil) || kind.stop != nil && kind.work != nil {
			t.Errorf("%s: %t, %+v", operate.Name(action), found, kind)
		}
	}
	if len(kinds) != len(all) || len(kinds) == 0 {
		t.Errorf("%d kinds for %d actions", len(kinds), len(all))
	}
}
