package sweep

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/internal/results"
)

// at returns the result of a single run at a place.
func at(node string, rate, latency int64) Result {
	metrics := map[string]int64{"readBytesPerSecond": rate, "readLatencyP99Nanoseconds": latency, "readBytes": 7}
	e := results.Experiment{State: results.StateComplete, NodeName: node, Runs: []results.RunResult{{Name: node, Variant: "default", Valid: true, Repetition: 1, Phases: []results.RunPhase{
		{Name: "fill", Kind: results.KindFill, Outcome: results.OutcomeValid, Metrics: map[string]int64{"writeBytesPerSecond": rate * int64(len(node))}},
		{Name: "scan", Kind: results.KindMeasure, Outcome: results.OutcomeValid, Metrics: metrics}}}}}
	e.Variants = results.Summarise(e.Runs)
	return Result{Place: Place{Node: node}, Experiment: &e}
}

// fleet returns the results of the given number of places, which differ only by noise.
func fleet(random *rand.Rand, places int, noise float64) (all []Result) {
	for i := range places {
		value := func(level float64) int64 { return int64(level * math.Exp(noise*random.NormFloat64())) }
		all = append(all, at(fmt.Sprintf("node-%02d", i), value(8e8), value(2e6)))
	}
	return all
}

// repeated returns the result of several runs at a place.
func repeated(node string, rates ...int64) Result {
	one := at(node, rates[0], 2e6)
	for i, rate := range rates[1:] {
		run := at(node, rate, 2e6).Experiment.Runs[0]
		run.Repetition = int32(i + 2)
		one.Experiment.Runs = append(one.Experiment.Runs, run)
	}
	one.Experiment.Variants = results.Summarise(one.Experiment.Runs)
	return one
}

// drawn returns random values of some places, each of three runs with noise. The first place has a level of its own.
func drawn(random *rand.Rand, places int, noise, first float64) []Value {
	values := make([]Value, places)
	for i := range values {
		level := 8e8
		if i == 0 {
			level *= first
		}
		var runs []int64
		for range 3 {
			runs = append(runs, int64(level*math.Exp(noise*random.NormFloat64())))
		}
		slices.Sort(runs)
		values[i] = Value{Metric: "readBytesPerSecond", Min: runs[0], Median: runs[1], Max: runs[2], Runs: 3}
	}
	return values
}

func outliers(table Table) (found []string) {
	for _, value := range table.Values {
		if value.Outlier {
			found = append(found, value.Node+" "+value.Metric)
		}
	}
	return found
}

func TestOutliers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	equal := func(places int) []Result { return fleet(random, places, 0.02) }
	slow, dead, fast, lost := equal(40), equal(40), equal(40), equal(40)
	slow[17], dead[3], fast[5] = at("node-17", 4e8, 2e6), at("node-03", 0, 2e6), at("node-05", 16e8, 2e6)
	lost[1] = Result{Place: Place{Node: "node-01"}, Missing: "the pool cannot be made"}
	few := []Result{at("a", 8e8, 1), at("b", 8e8, 1), at("c", 8e8, 1), at("d", 1e8, 1)}
	alike := equal(40)
	for i := range alike { // equal to the last bit, except for one that is 4% off
		alike[i] = at(fmt.Sprintf("node-%02d", i), 8e8, 2e6)
	}
	alike[9] = at("node-09", 7.7e8, 2e6)
	five := equal(5)
	five[2] = at("node-02", 3e8, 2e6)
	unusable := equal(9)
	unusable[0].Experiment.State, unusable[1].Experiment.Verdict, unusable[2].Experiment.NodeName = results.StateIncomplete, "Invalid", "node-07"
	lacking := equal(5)
	lacking[4].Experiment.Variants[0].Phases[1].Metrics = lacking[4].Experiment.Variants[0].Phases[1].Metrics[:1]
	small := equal(6)
	for i := range small {
		small[i] = at(fmt.Sprintf("node-%02d", i), int64(10+i/5), 2e6)
	}
	for _, test := range []struct {
		name    string
		all     []Result
		want    string
		unclear bool
		missing int
	}{
		{"one slow among forty", slow, "node-17 readBytesPerSecond", false, 0},
		{"one without any bytes", dead, "node-03 readBytesPerSecond", false, 0},
		{"one that is faster is unlike the others too", fast, "node-05 readBytesPerSecond", false, 0},
		{"one without numbers", lost, "", false, 1},
		{"three of five without any bytes", dying(3, 2), "node-00 readBytesPerSecond; node-01 readBytesPerSecond; node-02 readBytesPerSecond", true, 0},
		{"two of six without any bytes", dying(2, 4), "node-00 readBytesPerSecond; node-01 readBytesPerSecond", false, 0},
		{"half of eight without any bytes", dying(4, 4), "node-00 readBytesPerSecond; node-01 readBytesPerSecond; node-02 readBytesPerSecond; " +
			"node-03 readBytesPerSecond", false, 0},
		{"only one of five with any bytes", dying(4, 1), "node-00 readBytesPerSecond; node-01 readBytesPerSecond; node-02 readBytesPerSecond; " +
			"node-03 readBytesPerSecond", true, 0},
		{"five without any bytes", dying(5, 0), "", true, 0},
		{"three of many runs without any bytes", []Result{repeated("a", 0, 0, 0), repeated("b", 0, 0, 0), repeated("c", 0, 0, 0)}, "", true, 0},
		{"two of three without any bytes", []Result{repeated("a", 0, 0, 0), repeated("b", 0, 0, 0), repeated("c", 8e8, 9e8, 7e8)}, "", true, 0},
		{"too few to say", few, "", true, 0},
		{"less than 5%", alike, "", false, 0},
		{"one of five", five, "node-02 readBytesPerSecond", false, 0},
		{"nothing", nil, "", true, 0},
		{"three whose numbers cannot be used", unusable, "", false, 3},
		{"one metric is missing at one of five", lacking, "", true, 1},
		{"whole numbers", small, "", false, 0},
		{"the slower one of two", []Result{repeated("a", 8e8, 9e8, 7e8), repeated("b", 4e8, 5e8, 6e8)}, "b readBytesPerSecond", false, 0},
		{"the slower one of four", []Result{repeated("a", 8e8, 9e8, 7e8), repeated("b", 4e8, 5e8, 6e8), repeated("c", 7e8, 9e8, 7e8),
			repeated("d", 14e8, 15e8, 15e8)}, "b readBytesPerSecond", false, 0},
		{"one of two without any bytes", []Result{repeated("a", 8e8, 9e8, 7e8), repeated("b", 0, 0, 0)}, "b readBytesPerSecond", false, 0},
		{"one of two that is 14% slower", []Result{repeated("a", 7e8, 7e8, 7e8), repeated("b", 6e8, 6e8, 6e8)}, "", false, 0},
		{"one run of two is as fast", []Result{repeated("a", 8e8, 9e8, 7e8), repeated("b", 4e8, 5e8, 7e8)}, "", false, 0},
		{"two slower ones of three", []Result{repeated("a", 8e8, 9e8, 7e8), repeated("b", 4e8, 5e8, 4e8), repeated("c", 4e8, 5e8, 4e8)}, "", true, 0},
		{"three slow ones of six", halves(6), "", true, 0},
		{"four slow ones of eight", halves(8), "", true, 0},
		{"a faster one of three", []Result{repeated("a", 4e8, 4e8, 4e8), repeated("b", 4e8, 5e8, 4e8), repeated("c", 8e8, 9e8, 8e8)}, "", true, 0},
		{"two runs are too few", []Result{repeated("a", 8e8, 9e8), repeated("b", 4e8, 5e8)}, "", true, 0},
		{"one place", []Result{repeated("a", 8e8, 9e8, 7e8)}, "", true, 0},
	} {
		table := Judge(test.all)
		if got := strings.Join(outliers(table), "; "); got != test.want || table.Unclear != test.unclear || len(table.Missing) != test.missing {
			t.Errorf("%s: outliers %q, unclear %v, missing %v", test.name, got, table.Unclear, table.Missing)
		}
	}
	if first := Judge(slow).Values[0]; !first.Worse || !strings.Contains(first.Words(), "% below the median of") || !strings.Contains(first.Words(), "worse") {
		t.Errorf("%+v: %s", first, first.Words())
	}
	slower := []Result{at("a", 8e8, 2e6), at("b", 8e8, 4e6)}
	for i := range slower { // a latency is worse if it is longer
		slower[i].Experiment.Runs = append(slower[i].Experiment.Runs, slower[i].Experiment.Runs[0], slower[i].Experiment.Runs[0])
		slower[i].Experiment.Runs[1].Repetition, slower[i].Experiment.Runs[2].Repetition = 2, 3
		slower[i].Experiment.Variants = results.Summarise(slower[i].Experiment.Runs)
	}
	if got := outliers(Judge(slower)); !slices.Equal(got, []string{"b readLatencyP99Nanoseconds"}) {
		t.Errorf("of two latencies: %v", got)
	}
	if first := Judge(dying(3, 2)).Values[0]; !first.Worse || first.Words() != "100.0% below the median of 763 MiB/s, which is worse" {
		t.Errorf("%+v: %s", first, first.Words())
	}
	if first := Judge(dying(5, 0)).Values[0]; first.Outlier || first.Words() != "no place has more" {
		t.Errorf("%+v: %s", first, first.Words())
	}
	if first := Judge(fast).Values[0]; first.Worse || strings.Contains(first.Words(), "worse") {
		t.Errorf("%+v: %s", first, first.Words())
	}
	for _, value := range Judge(slow).Values {
		if value.Phase != "scan" || value.Metric == "readBytes" {
			t.Errorf("%+v is compared", value)
		}
	}
}

// TestFailedStorage: the numbers of a later attempt do not hide that the storage of a place has failed.
func TestFailedStorage(t *testing.T) {
	const hidden = "run 1, attempt 1: "
	phase := func(reason string, errors int64) results.RunResult {
		return results.RunResult{Reason: "PhaseInvalid", Message: "phase scan: " + reason, Phases: []results.RunPhase{{Name: "scan",
			Kind: results.KindMeasure, Outcome: results.OutcomeInvalid, Reason: reason, Metrics: map[string]int64{"ioErrors": errors}}}}
	}
	for name, test := range map[string]struct {
		run    results.RunResult
		change func(*results.Experiment)
		failed int
	}{
		"a failed request":      {run: phase(results.ReasonIOError, 0), failed: 1},
		"read-only":             {run: phase(results.ReasonReadOnly, 0), failed: 1},
		"a lost disk":           {run: phase(results.ReasonPoolUnhealthy, 0), failed: 1},
		"counted requests":      {run: phase("WorkloadFailed", 3), failed: 1},
		"a full volume":         {run: phase(results.ReasonVolumeFull, 3)},
		"a quota":               {run: phase(results.ReasonQuotaExceeded, 3)},
		"an eviction":           {run: results.RunResult{Reason: "Evicted"}},
		"on another node":       {run: results.RunResult{Reason: results.ReasonIOError, NodeName: "node-09"}},
		"without any valid run": {run: phase(results.ReasonIOError, 0), change: func(e *results.Experiment) { e.Verdict = "Invalid" }, failed: 1},
		"of too few runs":       {run: phase(results.ReasonIOError, 0), change: func(e *results.Experiment) { e.State = results.StateIncomplete }, failed: 1},
	} {
		all := fleet(rand.New(rand.NewPCG(7, 8)), 6, 0.02)
		test.run.Variant, test.run.Repetition, test.run.Attempt = "default", 1, 1
		e := all[4].Experiment
		e.Runs[0].Attempt = 2
		e.Runs = append([]results.RunResult{test.run}, e.Runs...)
		e.Variants = results.Summarise(e.Runs)
		if test.change != nil {
			test.change(e)
		}
		table := Judge(all)
		if got := table.Failed["node-04"]; len(table.Failed) != test.failed || len(got) != test.failed ||
			test.failed > 0 && !strings.HasPrefix(got[0], hidden) || len(outliers(table)) > 0 {
			t.Errorf("%s: failed %v, outliers %v", name, table.Failed, outliers(table))
		}
	}
}

// dying returns the results of places without any bytes, and of others after them.
func dying(dead, living int) (all []Result) {
	for i := range dead + living {
		rate := int64(8e8)
		if i < dead {
			rate = 0
		}
		all = append(all, at(fmt.Sprintf("node-%02d", i), rate, 2e6))
	}
	return all
}

// halves returns the results of places among which every second one has half the speed.
func halves(count int) (all []Result) {
	for i := range count {
		all = append(all, at(fmt.Sprintf("node-%02d", i), int64(8e8-i%2*4e8+i*1e6), 2e6))
	}
	return all
}

// TestAlarms counts false alarms among equal places, and how often a slow place is found.
func TestAlarms(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	const metric, trials = "readBytesPerSecond", 10_000
	for _, test := range []struct {
		places int
		noise  float64
		most   float64
	}{{5, 0.02, 0.03}, {10, 0.02, 0.015}, {40, 0.02, 0.005}, {40, 0.1, 0.005}, {40, 0.005, 0}} {
		alarms, found := 0, 0
		for range trials {
			values := make([]Value, test.places)
			for i := range values {
				values[i] = Value{Metric: metric, Median: int64(8e8 * math.Exp(test.noise*random.NormFloat64()))}
			}
			if slices.ContainsFunc(mark(metric, slices.Clone(values)), func(v Value) bool { return v.Outlier }) {
				alarms++
			}
			values[0].Median = values[0].Median * 8 / 10
			if mark(metric, values)[0].Outlier {
				found++
			}
		}
		rate, power := float64(alarms)/trials, float64(found)/trials
		t.Logf("%d places, noise %.1f%%: false alarms in %.2f%% of sweeps for each metric, a disk that is 20%% slower found in %.1f%%", test.places,
			100*test.noise, 100*rate, 100*power)
		if rate > test.most || test.noise <= 0.02 && test.places == 40 && power < 0.99 {
			t.Errorf("false alarms %.4f, found %.3f", rate, power)
		}
	}
}

// TestAlarmsOfFewPlaces: one of two to four places is hardly ever named by chance.
func TestAlarmsOfFewPlaces(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	const metric, trials = "readBytesPerSecond", 10_000
	named := func(v Value) bool { return v.Outlier }
	for _, test := range []struct {
		places             int
		noise, most, power float64
	}{{2, 0.02, 0, 0.99}, {4, 0.02, 0, 0.99}, {2, 0.1, 0.02, 0.8}, {4, 0.1, 0.01, 0.6}} {
		alarms, found := 0, 0
		for range trials {
			if slices.ContainsFunc(mark(metric, drawn(random, test.places, test.noise, 1)), named) {
				alarms++
			}
			if slow := mark(metric, drawn(random, test.places, test.noise, 0.6)); slow[0].Outlier && slow[0].Worse {
				found++
			}
		}
		rate, power := float64(alarms)/trials, float64(found)/trials
		t.Logf("%d places, noise %.1f%%: false alarms in %.2f%% of sweeps for each metric, a disk that is 40%% slower found in %.1f%%", test.places,
			100*test.noise, 100*rate, 100*power)
		if rate > test.most || power < test.power {
			t.Errorf("false alarms %.4f, found %.3f", rate, power)
		}
	}
}

func nodes(names ...string) (all []corev1.Node) {
	for _, name := range names {
		all = append(all, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: "host-" + name}}})
	}
	return all
}

func TestPlaces(t *testing.T) {
	all, err := Places(nodes("b", "a"), nil)
	if err != nil || len(all) != 2 || all[0] != (Place{Node: "a", Hostname: "host-a"}) {
		t.Errorf("%v %v", all, err)
	}
	disks, err := Places(nodes("a"), []string{"/dev/2", "/dev/1"})
	if err != nil || len(disks) != 2 || disks[0].Device != "/dev/1" || disks[0].Hostname != "host-a" {
		t.Errorf("%v %v", disks, err)
	}
	unlabelled := nodes("a")
	unlabelled[0].Labels = nil
	for name, err := range map[string]error{
		"no node":              second(Places(nil, nil)),
		"devices of two nodes": second(Places(nodes("a", "b"), []string{"/dev/1"})),
		"twice":                second(Places(nodes("a"), []string{"/dev/1", "/dev/1"})),
		"no hostname":          second(Places(unlabelled, nil)),
	} {
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func second(_ []Place, err error) error { return err }

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	for _, path := range [][]string{{"spec", "target", "zfs", "nodes", "count"}} { // the plugin reads it as an integer
		if value, found, _ := unstructured.NestedFloat64(object, path...); found {
			_ = unstructured.SetNestedField(object, int64(value), path...)
		}
	}
	return &unstructured.Unstructured{Object: object}
}

func TestCopy(t *testing.T) {
	const class = "metadata: {name: x}\nspec: {target: {storageClass: {size: 1Gi}}, podTemplate: {nodeSelector: {a: b}}}"
	const disk = "metadata: {name: x}\nspec: {target: {zfs: {pool: {vdevs: [{devices: [/dev/old]}]}}}}"
	made, err := Copy(parsed(t, class), Place{Node: "n1", Hostname: "h1"})
	if err != nil || made.GetName() != "x-n1" || made.GetLabels()[Label] != "x" {
		t.Fatalf("%v %v", made, err)
	}
	selector, _, _ := unstructured.NestedStringMap(made.Object, "spec", "podTemplate", "nodeSelector")
	if selector[corev1.LabelHostname] != "h1" || selector["a"] != "b" {
		t.Error(selector)
	}
	made, err = Copy(parsed(t, disk), Place{Node: "n1", Hostname: "h1", Device: "/dev/new"})
	if text := fmt.Sprint(made); err != nil || !strings.Contains(text, "/dev/new") || strings.Contains(text, "/dev/old") {
		t.Errorf("%s %v", text, err)
	}
	variants := "metadata: {name: x}\nspec: {target: {zfs: {pool: {vdevs: [{devices: [/dev/old]}]}}}, variants: [{name: a, pool: {ashift: 12}}]}"
	if _, err := Copy(parsed(t, variants), Place{Node: "n1", Hostname: "h1", Device: "/dev/new"}); err != nil {
		t.Error(err)
	}
	names := map[string]bool{}
	for _, place := range []Place{{Node: "n1", Hostname: "h"}, {Node: "a.b", Hostname: "h"}, {Node: "a-b", Hostname: "h"},
		{Node: "n1", Hostname: "h", Device: "/dev/1"}, {Node: "n1", Hostname: "h", Device: "/dev/2"},
		{Node: strings.Repeat("n", 100) + "1", Hostname: "h"}, {Node: strings.Repeat("n", 100) + "2", Hostname: "h"}} {
		made, err := Copy(parsed(t, disk), place)
		if err != nil || names[made.GetName()] || len(made.GetName()) > 63 {
			t.Errorf("%v: %v %v", place, made.GetName(), err)
		}
		names[made.GetName()] = true
	}
	for name, text := range map[string]string{
		"schedule":    "metadata: {name: x}\nspec: {schedule: {cron: '@daily'}}",
		"hostname":    "metadata: {name: x}\nspec: {podTemplate: {nodeSelector: {kubernetes.io/hostname: y}}}",
		"count":       "metadata: {name: x}\nspec: {target: {zfs: {nodes: {count: 2}}}}",
		"two devices": "metadata: {name: x}\nspec: {target: {zfs: {pool: {vdevs: [{devices: [/dev/a, /dev/b]}]}}}}",
		"two vdevs":   "metadata: {name: x}\nspec: {target: {zfs: {pool: {vdevs: [{devices: [/dev/a]}, {devices: [/dev/b]}]}}}}",
		"a class":     class,
		"a variant's target": "metadata: {name: x}\nspec: {target: {zfs: {pool: {vdevs: [{devices: [/dev/a]}]}}}, " +
			"variants: [{name: a}, {name: b, target: {ref: {name: y}}}]}",
		"a node's disks": "metadata: {name: x}\nspec: {target: {zfs: {pool: {vdevs: [{devices: [/dev/a]}]}, " +
			"perNode: [{nodeName: n1, pool: {vdevs: [{devices: [/dev/b]}]}}]}}}",
		"a variant's disks": "metadata: {name: x}\nspec: {target: {zfs: {pool: {vdevs: [{devices: [/dev/a]}]}}}, " +
			"variants: [{name: a, pool: {vdevs: [{devices: [/dev/b]}]}}]}",
	} {
		if made, err := Copy(parsed(t, text), Place{Node: "n1", Hostname: "h1", Device: "/dev/new"}); err == nil {
			t.Errorf("%s is accepted: %v", name, made)
		}
	}
}
