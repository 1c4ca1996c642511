package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// hostile is text that would move the cursor, colour the rest and turn the line around.
const hostile = "a\x1b[2J\x1b[31mb\u202Ec\n\u009bd"

// benchmarkNamed returns a benchmark with two runs and the quickstart's phases, created five minutes ago.
func benchmarkNamed(namespace, name string, change func(*v1alpha1.StorageBenchmarkStatus)) *v1alpha1.StorageBenchmark {
	one := &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-of-" + name),
		Generation: 1, CreationTimestamp: metav1.Time{Time: noon.Add(-5 * time.Minute)}}}
	one.Spec = v1alpha1.StorageBenchmarkSpec{
		Target: v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{Name: "fast", Size: v1alpha1.Size{Quantity: resource.MustParse("256Mi")}}}, Repetitions: 2,
		Phases: []v1alpha1.Phase{{Name: "fill", Fill: &v1alpha1.FillPhase{To: "50%"}},
			{Name: "read", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{}}}}},
		Gates: []v1alpha1.Gate{{Name: "reads-at-all", Expression: "phase('read').readOperationsPerSecond > 1.0"}},
	}
	if change != nil {
		one.Status.ObservedGeneration = 1
		change(&one.Status)
	}
	return one
}

func queued(status *v1alpha1.StorageBenchmarkStatus) {
	status.State, status.NodeName = "Queued(1)", "node-a"
	status.Queue = &v1alpha1.QueueStatus{Since: metav1.MicroTime{Time: noon.Add(-time.Minute)}, Position: 1, Holder: "lab/running"}
	status.Progress = &v1alpha1.ProgressStatus{RunsTotal: 2}
	condition(status, v1alpha1.ConditionReady, false, v1alpha1.ReasonQueued, "number 1 in the queue for node-a, held by lab/running")
}

func running(status *v1alpha1.StorageBenchmarkStatus) {
	status.State, status.NodeName, status.StorageClass, status.Experiment = "Running", "node-a", "fast", "5c1f0a92"
	status.StartedAt = &metav1.Time{Time: noon.Add(-4 * time.Minute)}
	status.Progress = &v1alpha1.ProgressStatus{RunsTotal: 2, RunsDone: 1, RunsInvalid: 1, CurrentRun: "running-5c1f0a92-001",
		CurrentPhase: "read", EstimatedEnd: &metav1.Time{Time: noon.Add(80 * time.Second)}}
	condition(status, v1alpha1.ConditionReady, false, v1alpha1.ReasonProgressing, "run 2 of 2: phase read (2 of 2) is under way")
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = metav1.Time{Time: noon.Add(-3 * time.Minute)}
	}
}

// passed sets the status of a passed benchmark, with fixed times.
func passed(status *v1alpha1.StorageBenchmarkStatus) {
	finished(v1alpha1.VerdictPassed)(status)
	status.StartedAt = &metav1.Time{Time: noon.Add(-4 * time.Minute)}
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = metav1.Time{Time: noon}
	}
}

func manyBenchmarks(t *testing.T) *hub {
	t.Helper()
	return newHub(t, benchmarkNamed("lab", "running", running), benchmarkNamed("lab", "done", passed), benchmarkNamed("lab", "fresh", nil),
		benchmarkNamed("lab", "waiting", queued), benchmarkNamed("other", "odd", func(status *v1alpha1.StorageBenchmarkStatus) {
			status.State, status.NodeName = hostile, hostile
			condition(status, v1alpha1.ConditionReady, false, v1alpha1.ReasonNoNode, hostile)
		}))
}

func TestList(t *testing.T) {
	h := manyBenchmarks(t)
	var said strings.Builder
	for _, arguments := range [][]string{{}, {"-o", "wide"}, {"-A"}, {"-A", "-o", "wide"}, {"-o", "name"}} {
		code, out, errors := called(t, h, append([]string{"list"}, arguments...)...)
		if code != ExitPassed || errors != "" {
			t.Fatal(code, errors)
		}
		fmt.Fprintf(&said, "$ list %s\n%s\n", strings.Join(arguments, " "), out)
	}
	golden(t, "list.txt", said.String())
}

// TestListForPrograms: JSON and YAML are whole manifests. On a terminal they cannot move the cursor.
func TestListForPrograms(t *testing.T) {
	h := manyBenchmarks(t)
	code, out, _ := called(t, h, "list", "-o", "json", "-A")
	var list v1alpha1.StorageBenchmarkList
	if err := json.Unmarshal([]byte(out), &list); code != ExitPassed || err != nil || len(list.Items) != 5 || list.Items[0].Name != "done" ||
		list.Items[0].Kind != "StorageBenchmark" || list.Kind != "StorageBenchmarkList" || list.Items[4].Status.State != hostile {
		t.Errorf("%d %v\n%s", code, err, out)
	}
	for _, format := range []string{"json", "yaml"} {
		app, out, _ := testApp()
		h.connect(app)
		app.Terminal = func() (int, int, bool) { return 80, 24, true }
		app.Main(t.Context(), []string{"list", "-o", format, "-A"})
		if text := out.String(); strings.ContainsAny(text, "\x1b\u202E\u009b") || !strings.Contains(text, "reads-at-all") {
			t.Errorf("%s: %q", format, text)
		}
	}
}

func TestListOfNothing(t *testing.T) {
	code, out, errors := called(t, newHub(t), "list")
	if code != ExitPassed || out != "" || errors != "There are no StorageBenchmarks in namespace lab.\n" {
		t.Errorf("%d %q %q", code, out, errors)
	}
	code, out, _ = called(t, newHub(t), "list", "-o", "json")
	if code != ExitPassed || !strings.Contains(out, `"items": []`) {
		t.Errorf("%d %q", code, out)
	}
}

// runsOf returns attempts at the two runs of a benchmark: the first run is valid, and the second one had an invalid attempt and is being
// repeated.
func runsOf(of *v1alpha1.StorageBenchmark) []client.Object {
	attempt := func(index, attempt int32, state, current string, conditions ...metav1.Condition) client.Object {
		run := &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace,
			Name: fmt.Sprintf("%s-5c1f0a92-%03d-%d", of.Name, index, attempt), Labels: map[string]string{
				v1alpha1.LabelBenchmarkUID: string(of.UID)}}}
		run.Spec = v1alpha1.BenchmarkRunSpec{Index: index, Attempt: attempt, Variant: "default", Repetition: index + 1, NodeName: "node-a"}
		run.Status = v1alpha1.BenchmarkRunStatus{State: state, CurrentPhase: current, Conditions: conditions,
			StartedAt: &metav1.Time{Time: noon.Add(-2 * time.Minute)}}
		if current == "" {
			run.Status.FinishedAt = &metav1.Time{Time: noon.Add(-90 * time.Second)}
			run.Status.Conditions = append(run.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionComplete, Status: "True"})
		}
		return run
	}
	say := func(kind string, is metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: is, Reason: reason, Message: message}
	}
	return []client.Object{
		attempt(0, 1, "Valid", "", say(v1alpha1.ConditionValid, "True", v1alpha1.ReasonMeasured, "all phases were measured")),
		attempt(1, 1, "Invalid", "", say(v1alpha1.ConditionValid, "False", v1alpha1.ReasonPodEvicted, "the pod was evicted: "+hostile)),
		attempt(1, 2, v1alpha1.ReasonPhaseRunning, "read", say(v1alpha1.ConditionReady, "False", v1alpha1.ReasonPhaseRunning,
			"phase read is under way")),
	}
}

func TestShow(t *testing.T) {
	one := benchmarkNamed("lab", "running", running)
	h := newHub(t, append(runsOf(one), one, benchmarkNamed("lab", "done", passed), benchmarkNamed("lab", "fresh", nil),
		benchmarkNamed("lab", "waiting", queued))...)
	var said strings.Builder
	for _, name := range []string{"running", "done", "fresh", "waiting"} {
		code, out, errors := called(t, h, "show", name)
		if code != ExitPassed || errors != "" {
			t.Fatal(name, code, errors)
		}
		fmt.Fprintf(&said, "$ show %s\n%s\n", name, out)
	}
	golden(t, "show.txt", said.String())
	if code, _, errors := called(t, h, "show", "absent"); code != ExitNotFound || !strings.Contains(errors, "lab/absent") {
		t.Errorf("%d %s", code, errors)
	}
}

// TestShowManyRuns: if there are many runs, valid ones are not shown.
func TestShowManyRuns(t *testing.T) {
	one := benchmarkNamed("lab", "running", running)
	objects := append(runsOf(one), one)
	for index := range int32(fewRuns) {
		run := runsOf(one)[0].(*v1alpha1.BenchmarkRun)
		run.Name, run.Spec.Index = fmt.Sprintf("valid-%d", index), index+2
		objects = append(objects, run)
	}
	h := newHub(t, objects...)
	_, out, _ := called(t, h, "show", "running")
	if strings.Contains(out, "valid-3") || !strings.Contains(out, "running-5c1f0a92-001-1") || !strings.Contains(out,
		"21 valid runs are not shown: add --all") {
		t.Errorf("%s", out)
	}
	if _, out, _ := called(t, h, "show", "running", "--all"); !strings.Contains(out, "valid-3") || strings.Contains(out, "add --all") {
		t.Errorf("%s", out)
	}
}

func TestCompletionOfNames(t *testing.T) {
	h := manyBenchmarks(t)
	code, out, _ := called(t, h, "__complete", "show", "")
	if code != ExitPassed || !strings.HasPrefix(out, "done\tFinished\nfresh\nrunning\tRunning\nwaiting\tQueued(1)\n:4") {
		t.Errorf("%d %q", code, out)
	}
	if _, out, _ := called(t, h, "__complete", "show", "done", ""); !strings.HasPrefix(out, ":4") {
		t.Errorf("a second name is offered: %q", out)
	}
}
