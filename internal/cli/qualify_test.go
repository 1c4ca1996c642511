package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/qualify"
	"github.com/storagebench/storagebench/internal/results"
)

// TestQualifyDryRunIsValid: validate accepts the printed manifests, and the resolved size is printed.
func TestQualifyDryRunIsValid(t *testing.T) {
	for _, arguments := range [][]string{{"fast"}, {"fast", "--size", "1Gi"}, {"target/mirror"}, {"very.dotted.class", "--duration", "10s"}} {
		app, out, errors := testApp()
		if code := app.Main(t.Context(), append([]string{"qualify", "--dry-run"}, arguments...)); code != 0 {
			t.Fatalf("%v: exit code %d %s", arguments, code, errors)
		}
		if len(arguments) == 1 && !strings.Contains(arguments[0], "target") && !strings.HasPrefix(out.String(), "# StorageClass fast, volumes of 20Gi.") {
			t.Errorf("%v: the size is not shown: %.200s", arguments, out)
		}
		checking, said, wrong := testApp()
		checking.In = strings.NewReader(out.String())
		if code := checking.Main(t.Context(), []string{"validate", "-"}); code != 0 || strings.Count(said.String(), "is valid") != 2 {
			t.Errorf("%v: exit code %d\n%s%s", arguments, code, said, wrong)
		}
	}
}

func TestQualifyRefuses(t *testing.T) {
	for _, arguments := range [][]string{{}, {"a", "b"}, {"Fast"}, {"fast", "--size", "5"}, {"fast", "--duration", "1s"}, {"fast", "-o", "yaml"},
		{"fast", "--repetitions", "0"}, {"fast", "--timeout", "0s"}} {
		app, _, errors := testApp()
		if code := app.Main(t.Context(), append([]string{"qualify", "--dry-run"}, arguments...)); code != ExitUsage || errors.String() == "" {
			t.Errorf("%v: exit code %d %s", arguments, code, errors)
		}
	}
}

// qualified returns results of a benchmark of the suite. Only the given phases have metrics.
func qualified(name string, metrics map[string]int64) results.Experiment {
	e := results.Experiment{Version: results.PhaseVersion, State: results.StateComplete, NodeName: "node-a", StorageClass: "fast",
		Benchmark: results.RunIdentity{Namespace: "lab", Name: name}}
	variant := results.VariantResult{Name: "default"}
	for path, value := range metrics {
		phase, metric, _ := strings.Cut(path, "/")
		variant.Phases = append(variant.Phases, results.PhaseResult{Name: phase, Metrics: []results.MetricResult{
			{Name: metric, Median: value, Min: value, Max: value, Runs: 3}}})
	}
	e.Variants = []results.VariantResult{variant}
	return e
}

func suiteResults(t *testing.T, e results.Experiment) string {
	t.Helper()
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestQualifyFromFiles(t *testing.T) {
	slow := file(t, "storage.json", suiteResults(t, qualified("a", map[string]int64{"redo-full/writeLatencyP99Nanoseconds": 40_000_000})))
	for format, want := range map[string]string{"text": "BAD      Commits on the full, aged volume", "markdown": "| **Bad** | Commits on the full",
		"json": `"level": "Bad"`, "html": "<h2>Bad: Commits on the full"} {
		app, out, errors := testApp()
		code := app.Main(t.Context(), []string{"qualify", "fast", "--from", slow, "-o", format})
		if code != ExitFailed || errors.String() != "" || !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "unknown size") {
			t.Errorf("%s: exit code %d %s\n%s", format, code, errors, out)
		}
	}
	for name, arguments := range map[string][]string{"another class": {"slow", "--from", slow}, "twice": {"fast", "--from", slow, "--from", slow}} {
		app, out, errors := testApp()
		if code := app.Main(t.Context(), append([]string{"qualify"}, arguments...)); code != ExitRefused || errors.String() == "" || out.String() != "" {
			t.Errorf("%s: exit code %d %s%s", name, code, out, errors)
		}
	}
	for _, dry := range []string{"--from=" + slow, "--dry-run"} {
		app, _, errors := testApp()
		if code := app.Main(t.Context(), []string{"qualify", "local:/mnt/disk", dry}); code != ExitUsage || !strings.Contains(errors.String(),
			`"local:/mnt/disk" is the name of local storage in results: a card is about storage in a cluster`) {
			t.Errorf("local: exit code %d %s", code, errors)
		}
	}
	empty := file(t, "empty.json", suiteResults(t, qualified("a", nil)))
	app, out, _ := testApp()
	if code := app.Main(t.Context(), []string{"qualify", "fast", "--from", empty}); code != ExitInconclusive || !strings.Contains(out.String(), "UNKNOWN") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// TestQualifyRunsOneAfterTheOther: both benchmarks may use the same storage, so the second is created after the first has ended. Programs
// get only the card.
func TestQualifyRunsOneAfterTheOther(t *testing.T) {
	g := gomega.NewWithT(t)
	h := newHub(t)
	app, out, errors := testApp()
	ended := h.watching(t.Context(), app, "qualify", "fast", "-o", "json")
	suite := qualify.Suite{Of: "fast"}
	for i, name := range suite.Names() {
		var benchmark v1alpha1.StorageBenchmark
		key := types.NamespacedName{Namespace: "lab", Name: name}
		g.Eventually(func() error { return h.client.Get(t.Context(), key, &benchmark) }, time.Minute, 10*time.Millisecond).Should(gomega.Succeed())
		if i > 0 { // h.watching has waited for the first
			g.Eventually(h.watched, time.Minute).Should(gomega.Receive()) // the fake repeats no events
		}
		var all v1alpha1.StorageBenchmarkList
		if err := h.client.List(t.Context(), &all); err != nil || len(all.Items) != i+1 {
			t.Fatalf("%v: there are %d benchmarks", err, len(all.Items))
		}
		stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name + "-x"}, Data: map[string]string{
			"results.json": suiteResults(t, qualified(name, map[string]int64{"scan/readBytesPerSecond": 1 << 20}))}}
		if err := h.client.Create(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
		finished(v1alpha1.VerdictPassed)(&benchmark.Status)
		benchmark.Status.Results.ConfigMap, benchmark.Status.ObservedGeneration = name+"-x", benchmark.Generation
		if err := h.client.Status().Update(t.Context(), &benchmark); err != nil {
			t.Fatal(err)
		}
	}
	if code := h.code(ended); code != ExitFailed {
		t.Errorf("exit code %d %s", code, errors)
	}
	var card qualify.Card
	if err := json.Unmarshal([]byte(out.String()), &card); err != nil || card.Verdict != qualify.Bad {
		t.Errorf("%v: %s", err, out)
	}
	if !strings.Contains(errors.String(), "qualify-fast-postgres created") {
		t.Error(errors.String())
	}
}

// TestQualifyKeepsTheFirstCard: the finished benchmark is judged, and the exit code is the worse one of both.
func TestQualifyKeepsTheFirstCard(t *testing.T) {
	for name, test := range map[string]struct {
		metrics map[string]int64
		code    int
	}{
		"bad":     {map[string]int64{"scan/readBytesPerSecond": 1 << 20}, ExitFailed},
		"unknown": {map[string]int64{"redo-empty/writeLatencyP99Nanoseconds": 1}, ExitRefused},
	} {
		g := gomega.NewWithT(t)
		h := newHub(t)
		app, out, errors := testApp()
		ended := h.watching(t.Context(), app, "qualify", "fast", "-o", "json")
		for i, part := range (qualify.Suite{Of: "fast"}).Names() {
			var benchmark v1alpha1.StorageBenchmark
			key := types.NamespacedName{Namespace: "lab", Name: part}
			g.Eventually(func() error { return h.client.Get(t.Context(), key, &benchmark) }, time.Minute, 10*time.Millisecond).Should(gomega.Succeed())
			if i == 0 {
				stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: part + "-x"}, Data: map[string]string{
					"results.json": suiteResults(t, qualified(part, test.metrics))}}
				g.Expect(h.client.Create(t.Context(), stored)).To(gomega.Succeed())
				finished(v1alpha1.VerdictPassed)(&benchmark.Status)
				benchmark.Status.Results.ConfigMap = part + "-x"
			} else {
				g.Eventually(h.watched, time.Minute).Should(gomega.Receive()) // the fake repeats no events
				condition(&benchmark.Status, v1alpha1.ConditionStalled, true, "NotSupported", "there is no such class")
				condition(&benchmark.Status, v1alpha1.ConditionReady, false, "NotSupported", "there is no such class")
			}
			benchmark.Status.ObservedGeneration = benchmark.Generation
			g.Expect(h.client.Status().Update(t.Context(), &benchmark)).To(gomega.Succeed())
		}
		if code := h.code(ended); code != test.code {
			t.Errorf("%s: exit code %d %s", name, code, errors)
		}
		if !strings.Contains(out.String(), "qualify-fast-postgres: NotSupported: there is no such class") {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// TestQualifyEndsWithASuiteThatCannotContinue: without numbers there is no card.
func TestQualifyEndsWithASuiteThatCannotContinue(t *testing.T) {
	g := gomega.NewWithT(t)
	h := newHub(t)
	app, out, _ := testApp()
	ended := h.watching(t.Context(), app, "qualify", "fast")
	var benchmark v1alpha1.StorageBenchmark
	key := types.NamespacedName{Namespace: "lab", Name: "qualify-fast-storage"}
	g.Eventually(func() error { return h.client.Get(t.Context(), key, &benchmark) }, time.Minute, 10*time.Millisecond).Should(gomega.Succeed())
	condition(&benchmark.Status, v1alpha1.ConditionStalled, true, "NotSupported", "there is no such class")
	condition(&benchmark.Status, v1alpha1.ConditionReady, false, "NotSupported", "there is no such class")
	benchmark.Status.ObservedGeneration = benchmark.Generation
	if err := h.client.Status().Update(t.Context(), &benchmark); err != nil {
		t.Fatal(err)
	}
	if code := h.code(ended); code != ExitRefused || strings.Contains(out.String(), "Fitness") || !strings.Contains(out.String(), "there is no such class") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// TestQualifyRefusesSeveralNodes: nothing is created for a target whose figures would be sums.
func TestQualifyRefusesSeveralNodes(t *testing.T) {
	target := &v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "hdd"}, Spec: v1alpha1.Target{
		ZFS: &v1alpha1.ZFSTarget{Nodes: v1alpha1.NodeChoice{MatchLabels: map[string]string{"disk": "hdd"}, Count: 4}}}}
	h := newHub(t, target)
	code, out, errors := called(t, h, "qualify", "target/hdd")
	if code != ExitRefused || !strings.Contains(errors, "StorageTarget hdd has zfs.nodes.count: 4") || !strings.Contains(errors, "sweep") {
		t.Errorf("exit code %d %s%s", code, out, errors)
	}
	var all v1alpha1.StorageBenchmarkList
	if err := h.client.List(t.Context(), &all); err != nil || len(all.Items) != 0 {
		t.Errorf("%v: there are %d benchmarks", err, len(all.Items))
	}
}
