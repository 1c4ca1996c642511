package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/sweep"
)

const swept = `apiVersion: storagebench.dev/v1alpha1
kind: StorageBenchmark
metadata: {name: disks}
spec:
  target: {storageClass: {name: local, size: 1Gi}}
  phases:
  - {name: fill, fill: {to: 50%}}
  - {name: scan, measure: {workload: {scan: {}}}}
  repetitions: 1
`

// fleetHub returns a cluster with count nodes that have the label, and one node without it.
func fleetHub(t *testing.T, count int) *hub {
	var objects []client.Object
	for i := range count + 1 {
		name := fmt.Sprintf("node-%d", i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
		if i < count {
			node.Labels["disks"] = "nvme"
		}
		objects = append(objects, node)
	}
	return newHub(t, objects...)
}

// operate plays the operator until the test ends: each benchmark soon gets results that depend on its node. most returns how many
// benchmarks were unfinished at the same time.
func (h *hub) operate(ctx context.Context, rate func(node string) int64) (most func() int) {
	largest, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			var all v1alpha1.StorageBenchmarkList
			if err := h.client.List(ctx, &all); err != nil {
				return
			}
			open := 0
			for i := range all.Items {
				benchmark := &all.Items[i]
				if benchmark.Status.FinishedAt != nil {
					_ = h.client.Status().Update(ctx, benchmark) // a watch of the fake client misses what came between its list and its start
					continue
				}
				open++
				h.finish(ctx, benchmark, rate(benchmark.Spec.PodTemplate.NodeSelector[corev1.LabelHostname]))
			}
			largest = max(largest, open)
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return func() int { <-done; return largest }
}

const (
	// homeless stands for the rate of a place without a fitting node, and endless for that of a benchmark that does not end.
	homeless, endless = -1, -2
	// flawed stands for a rate of 800 MiB/s in the second attempt, after the storage has failed a request in the first one.
	flawed = -3
)

// finish stores results. With a rate of 0 the benchmark is stalled instead.
func (h *hub) finish(ctx context.Context, benchmark *v1alpha1.StorageBenchmark, rate int64) {
	benchmark.Status.ObservedGeneration = benchmark.Generation
	benchmark.Status.FinishedAt = &metav1.Time{Time: noon}
	switch rate {
	case endless:
		return
	case homeless:
		condition(&benchmark.Status, v1alpha1.ConditionReady, false, v1alpha1.ReasonNoNode, "no node is Ready")
		_ = h.client.Status().Update(ctx, benchmark)
		return
	case 0:
		condition(&benchmark.Status, v1alpha1.ConditionStalled, true, "DevicesNotGranted", "there is no such disk")
		condition(&benchmark.Status, v1alpha1.ConditionReady, false, "DevicesNotGranted", "there is no such disk")
		_ = h.client.Status().Update(ctx, benchmark)
		return
	}
	var runs []results.RunResult
	if rate == flawed {
		rate, runs = 800<<20, []results.RunResult{{Variant: "default", Repetition: 1, Attempt: 1, Reason: "PhaseInvalid", Message: "phase scan: IOError: EIO"}}
	}
	e := results.Experiment{Version: results.PhaseVersion, State: results.StateComplete, Runs: append(runs, results.RunResult{Variant: "default", Valid: true,
		Repetition: 1, Attempt: 2, Phases: []results.RunPhase{{Name: "scan", Kind: results.KindMeasure, Outcome: results.OutcomeValid,
			Metrics: map[string]int64{"readBytesPerSecond": rate}}}})}
	e.Variants = results.Summarise(e.Runs)
	text, _ := json.Marshal(e)
	_ = h.client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: benchmark.Namespace, Name: benchmark.Name + "-x"},
		Data: map[string]string{"results.json": string(text)}})
	finished(v1alpha1.VerdictPassed)(&benchmark.Status)
	benchmark.Status.Results.ConfigMap = benchmark.Name + "-x"
	_ = h.client.Status().Update(ctx, benchmark)
}

func TestSweep(t *testing.T) {
	for _, test := range []struct {
		name     string
		parallel string
		rate     func(node string) int64
		code     int
		most     int
		says     []string
	}{
		{"alike", "1", func(string) int64 { return 800 << 20 }, ExitPassed, 1, []string{"6 places, 0 unlike the others, 0 without results",
			"node-0", "0.0% above the median of 800 MiB/s"}},
		{"one slow", "2", func(node string) int64 {
			if node == "node-3" {
				return 300 << 20
			}
			return 800 << 20
		}, ExitFailed, 2, []string{"OUTLIER  node-3: scan.readBytesPerSecond 300 MiB/s: 62.5% below the median of 800 MiB/s, which is worse"}},
		{"one that failed a request", "6", func(node string) int64 {
			if node == "node-4" {
				return flawed
			}
			return 800 << 20
		}, ExitFailed, 6, []string{"6 places, 0 unlike the others, 0 without results, 1 with failed storage. ",
			"FAILED   node-4: run 1, attempt 1: PhaseInvalid: phase scan: IOError: EIO", "node-4   FAILED", "node-5   alike"}},
		{"one without a disk", "4", func(node string) int64 {
			if node == "node-2" {
				return 0
			}
			return 800 << 20
		}, ExitInconclusive, 4, []string{"MISSING  node-2: DevicesNotGranted: there is no such disk", "6 places, 0 unlike the others, 1 without results"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := fleetHub(t, 6)
			app, out, errors := testApp()
			h.connect(app)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			most := h.operate(ctx, test.rate)
			code := app.Main(t.Context(), []string{"sweep", "-f", file(t, "disks.yaml", swept), "--nodes", "disks=nvme", "--parallel", test.parallel})
			cancel()
			if code != test.code {
				t.Errorf("exit code %d %s\n%s", code, errors, out)
			}
			if got := most(); got > test.most || got == 0 {
				t.Errorf("%d at a time", got)
			}
			for _, says := range test.says {
				if !strings.Contains(out.String(), says) {
					t.Errorf("does not say %q:\n%s", says, out)
				}
			}
			if strings.Contains(out.String(), "node-6") {
				t.Error("a node without the label is measured")
			}
		})
	}
}

// TestSweepKeepsWhatEnded: a place without a node, a timeout or an error does not discard the results of other places.
func TestSweepKeepsWhatEnded(t *testing.T) {
	for name, test := range map[string]struct {
		rate, code int
		refuse     bool
		says       []string
	}{
		"no node": {homeless, ExitInconclusive, false, []string{"MISSING  node-3: NoNode: no node is Ready", "1 without results", "node-5   alike"}},
		"timeout": {endless, ExitTimeout, false, []string{"MISSING  node-3: ", "MISSING  node-5: the sweep was ended before its turn", "node-2   unknown"}},
		"refused": {endless, ExitUnavailable, true, []string{"MISSING  node-3: ", "MISSING  node-5: ", "node-2   unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := fleetHub(t, 6)
			if test.refuse {
				h.client = interceptor.NewClient(h.client, interceptor.Funcs{Apply: func(ctx context.Context, inner client.WithWatch, object runtime.ApplyConfiguration,
					options ...client.ApplyOption) error {
					if named, is := object.(interface{ GetName() string }); is && named.GetName() == "disks-node-3" {
						return apierrors.NewForbidden(schema.GroupResource{}, named.GetName(), nil)
					}
					return inner.Apply(ctx, object, options...)
				}})
			}
			app, out, errors := testApp()
			h.connect(app)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			most := h.operate(ctx, func(node string) int64 {
				if node == "node-3" {
					return int64(test.rate)
				}
				return 800 << 20
			})
			code := app.Main(t.Context(), []string{"sweep", "-f", file(t, "disks.yaml", swept), "--nodes", "disks=nvme", "--timeout", "3s"})
			cancel()
			most()
			if code != test.code {
				t.Errorf("exit code %d %s\n%s", code, errors, out)
			}
			for _, says := range test.says {
				if !strings.Contains(out.String(), says) {
					t.Errorf("does not say %q:\n%s", says, out)
				}
			}
		})
	}
}

// TestSweepInNamespaceOfFile: the results are those of the benchmarks in the namespace that the file names, not of others of the same names.
func TestSweepInNamespaceOfFile(t *testing.T) {
	h := fleetHub(t, 5)
	app, out, errors := testApp()
	h.connect(app)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	old := &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "disks-node-3"}}
	if err := h.client.Create(ctx, old); err != nil {
		t.Fatal(err)
	}
	h.finish(ctx, old, 300<<20)
	most := h.operate(ctx, func(string) int64 { return 800 << 20 })
	text := strings.Replace(swept, "{name: disks}", "{name: disks, namespace: fleet}", 1)
	code := app.Main(t.Context(), []string{"sweep", "-f", file(t, "disks.yaml", text), "--nodes", "disks=nvme", "--parallel", "5"})
	cancel()
	most()
	if code != ExitPassed || !strings.Contains(out.String(), "5 places, 0 unlike the others, 0 without results") || strings.Contains(out.String(), "300 MiB/s") {
		t.Errorf("exit code %d %s\n%s", code, errors, out)
	}
}

// TestSweepOverwritesNoOthers: NAME-NODE may be the name of another's benchmark. All are looked at before the first is applied, and again
// before their turn.
func TestSweepOverwritesNoOthers(t *testing.T) {
	for name, test := range map[string]struct {
		label  string
		during bool
		code   int
	}{
		"made by hand":      {"", false, ExitRefused},
		"of another sweep":  {"disks-node", false, ExitRefused},
		"during the sweep":  {"", true, ExitRefused},
		"of an older sweep": {"disks", false, ExitPassed},
	} {
		t.Run(name, func(t *testing.T) {
			h := fleetHub(t, 6)
			app, out, errors := testApp()
			h.connect(app)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			theirs := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": kindBenchmark,
				"metadata": map[string]any{"namespace": "lab", "name": "disks-node-5"}, "spec": map[string]any{"repetitions": int64(7)}}}
			if test.label != "" {
				theirs.SetLabels(map[string]string{sweep.Label: test.label})
			}
			create := sync.OnceFunc(func() { // as the command run does, so that the API server sees no conflict
				if err := h.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(theirs), client.FieldOwner(fieldOwner)); err != nil {
					t.Error(err)
				}
			})
			if !test.during {
				create()
			}
			most := h.operate(ctx, func(string) int64 {
				create()
				return 800 << 20
			})
			code := app.Main(t.Context(), []string{"sweep", "-f", file(t, "disks.yaml", swept), "--nodes", "disks=nvme", "--parallel", "3"})
			cancel()
			most()
			if code != test.code || code != 0 && !strings.Contains(errors.String(), "kubectl delete storagebenchmark disks-node-5 -n lab") {
				t.Errorf("exit code %d %s\n%s", code, errors, out)
			}
			var all v1alpha1.StorageBenchmarkList
			if err := h.client.List(t.Context(), &all); err != nil || code != 0 && !test.during && len(all.Items) != 1 {
				t.Errorf("%v: %d StorageBenchmarks", err, len(all.Items))
			}
			for _, one := range all.Items {
				if kept := one.Spec.Repetitions == 7; one.Name == theirs.GetName() && kept != (code != 0) {
					t.Errorf("%s has %d repetitions", one.Name, one.Spec.Repetitions)
				}
			}
		})
	}
}

func TestSweepForPrograms(t *testing.T) {
	h := fleetHub(t, 5)
	app, out, errors := testApp()
	h.connect(app)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.operate(ctx, func(string) int64 { return 1 << 30 })
	code := app.Main(t.Context(), []string{"sweep", "-f", file(t, "disks.yaml", swept), "--nodes", "disks", "--parallel", "5", "-o", "json"})
	var table sweep.Table
	if err := json.Unmarshal([]byte(out.String()), &table); code != 0 || err != nil || len(table.Values) != 5 {
		t.Errorf("exit code %d, %v: %s%s", code, err, out, errors)
	}
}

// TestSweepDryRunIsValid: nothing is applied, and validate accepts the printed manifests.
func TestSweepDryRunIsValid(t *testing.T) {
	h := fleetHub(t, 3)
	app, out, errors := testApp()
	h.connect(app)
	if code := app.Main(t.Context(), []string{"sweep", "-f", file(t, "disks.yaml", swept), "--nodes", "disks=nvme", "--dry-run"}); code != 0 {
		t.Fatalf("exit code %d %s", code, errors)
	}
	var all v1alpha1.StorageBenchmarkList
	if err := h.client.List(t.Context(), &all); err != nil || len(all.Items) > 0 {
		t.Errorf("%v: there are %d benchmarks", err, len(all.Items))
	}
	checking, said, wrong := testApp()
	checking.In = strings.NewReader(out.String())
	if code := checking.Main(t.Context(), []string{"validate", "-"}); code != 0 || strings.Count(said.String(), "is valid") != 3 {
		t.Errorf("exit code %d\n%s%s", code, said, wrong)
	}
}

func TestSweepRefuses(t *testing.T) {
	one := file(t, "disks.yaml", swept)
	two := file(t, "two.yaml", swept+"---\n"+swept)
	for _, test := range []struct {
		arguments []string
		code      int
	}{
		{[]string{"--nodes", "disks"}, ExitUsage}, {[]string{"-f", one}, ExitUsage}, {[]string{"-f", one, "--nodes", "a=b=c"}, ExitUsage},
		{[]string{"-f", one, "--nodes", "no=such"}, ExitUsage}, {[]string{"-f", one, "--nodes", "disks", "--parallel", "0"}, ExitUsage},
		{[]string{"-f", one, "--nodes", "disks", "--devices", "/dev/a"}, ExitUsage}, {[]string{"-f", two, "--nodes", "disks"}, ExitUsage},
		{[]string{"-f", one, "--nodes", "kubernetes.io/hostname=node-0", "--devices", "/dev/a"}, ExitRefused},
		{[]string{"-f", "absent.yaml", "--nodes", "disks"}, ExitNotFound},
	} {
		h := fleetHub(t, 3)
		app, _, errors := testApp()
		h.connect(app)
		if code := app.Main(t.Context(), append([]string{"sweep"}, test.arguments...)); code != test.code || errors.String() == "" {
			t.Errorf("%v: exit code %d %s", test.arguments, code, errors)
		}
		var all v1alpha1.StorageBenchmarkList
		if err := h.client.List(t.Context(), &all); err != nil || len(all.Items) > 0 {
			t.Errorf("%v: %v, %d benchmarks were applied", test.arguments, err, len(all.Items))
		}
	}
}
