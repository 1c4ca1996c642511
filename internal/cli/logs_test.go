package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// podOf returns a pod of a benchmark. The pod was created some seconds after noon.
func podOf(of *v1alpha1.StorageBenchmark, run, phase string, seconds int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: run + "-" + phase, UID: types.UID(run + phase),
		CreationTimestamp: metav1.Time{Time: noon.Add(time.Duration(seconds) * time.Second)}, Labels: map[string]string{
			v1alpha1.LabelBenchmarkUID: string(of.UID), v1alpha1.LabelRun: run, v1alpha1.LabelPhase: phase}},
		Spec: corev1.PodSpec{NodeName: "node-a"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
}

// logged adds logs to the cluster, by the names of the pods.
func (h *hub) logged(logs map[string]string) {
	for pod, text := range logs {
		h.logs.of[pod] = io.NopCloser(strings.NewReader(text))
	}
}

// runnerLog returns the log of a runner, with hostile text between its lines.
func runnerLog(t *testing.T) string {
	t.Helper()
	var result bytes.Buffer
	document := results.PhaseDocument{Version: results.PhaseVersion, Phase: "read", Kind: results.KindMeasure, Outcome: results.OutcomeValid,
		Run: results.RunIdentity{Namespace: "lab", Name: "r", UID: "u"}, StartedAt: noon, FinishedAt: noon.Add(time.Second),
		Metrics: map[string]int64{"readOperationsPerSecond": 1}}
	if _, err := results.Emit(&result, document); err != nil {
		t.Fatal(err)
	}
	return "storagebench runner: run phase read\n" + progressOf(45, "1.2 GiB/s", "", 6).Line() + "\nfio says " + strings.ReplaceAll(hostile, "\n", "") + "\n" +
		strings.Repeat("x", maxLogLine+10) + "\n" + result.String() + "the end, without a newline"
}

func TestLogs(t *testing.T) {
	one := benchmarkNamed("lab", "quickstart", running)
	h := newHub(t, one, podOf(one, "q-1-000", "fill", 1), podOf(one, "q-1-000", "read", 2), podOf(one, "q-1-001", "fill", 3),
		podOf(benchmarkNamed("lab", "other", nil), "other-1-000", "read", 9))
	h.logged(map[string]string{"q-1-001-fill": runnerLog(t)})
	code, out, heads := called(t, h, "logs", "quickstart")
	want := "storagebench runner: run phase read\n[##########--------------]  45%  1.2 GiB/s  6s left\nfio says a[2J[31mbcd\n" +
		strings.Repeat("x", maxLogLine) + " ...\nthe end, without a newline\n"
	if code != ExitPassed || out != want || heads != "q-1-001, phase fill: pod q-1-001-fill on node node-a: Running\n" {
		t.Errorf("%d %s\n%s", code, heads, out)
	}
	for _, test := range []struct{ arguments, want string }{
		{"--phase read", "read of 0\n"}, {"--run q-1-000 --phase fill", "fill of 0\n"}, {"--run q-1-001", "fill of 1\n"},
		{"--run q-1-001 --follow --tail 5", "fill of 1\n"},
	} {
		h.logged(map[string]string{"q-1-000-fill": "fill of 0", "q-1-000-read": "read of 0\n", "q-1-001-fill": "fill of 1\n"})
		code, out, errors := called(t, h, append([]string{"logs", "quickstart"}, strings.Fields(test.arguments)...)...)
		if code != ExitPassed || out != test.want {
			t.Errorf("%s: %d %q %s", test.arguments, code, out, errors)
		}
	}
}

// TestLogsOfAGroup: the logs of a phase are read from the pods on all nodes, and each line begins with its run.
func TestLogsOfAGroup(t *testing.T) {
	one := benchmarkNamed("lab", "quickstart", running)
	h := newHub(t, one, podOf(one, "q-1-000-2-a", "read", 5), podOf(one, "q-1-000-2-b", "read", 4), podOf(one, "q-1-000-a", "read", 1))
	h.logged(map[string]string{"q-1-000-2-a-read": "of a\n", "q-1-000-2-b-read": "of b\n"})
	if code, out, errors := called(t, h, "logs", "quickstart"); code != ExitPassed || out != "q-1-000-2-a  of a\nq-1-000-2-b  of b\n" {
		t.Errorf("%d %q %s", code, out, errors)
	}
}

func TestLogsThatAreNotThere(t *testing.T) {
	one := benchmarkNamed("lab", "quickstart", running)
	for _, test := range []struct {
		others []client.Object
		args   string
		code   int
		says   string
	}{
		{nil, "quickstart", ExitNotFound, "unless spec.retain keeps them"},
		{nil, "quickstart --phase xx", ExitNotFound, "StorageBenchmark lab/quickstart has no phase xx: write one of fill, read"},
		{nil, "quickstart --phase raed", ExitNotFound, "has no phase raed: did you mean read?"},
		{[]client.Object{podOf(one, "q-1-000", "fill", 1), podOf(one, "q-1-000", "read", 1), podOf(one, "q-1-001", "fill", 1)},
			"quickstart --run xx", ExitNotFound, "There are pods of q-1-000, q-1-001\n"},
		{nil, "absent", ExitNotFound, "find StorageBenchmark lab/absent"},
		{[]client.Object{podOf(one, "q-1-000", "fill", 1)}, "quickstart --phase read", ExitNotFound, "has no such pods now"},
		{[]client.Object{podOf(one, "q-1-000", "fill", 1)}, "quickstart", ExitError, "read the log of pod lab/q-1-000-fill: no log of"},
	} {
		h := newHub(t, append(test.others, one)...)
		code, out, errors := called(t, h, append([]string{"logs"}, strings.Fields(test.args)...)...)
		if code != test.code || out != "" || !strings.Contains(errors, test.says) {
			t.Errorf("%s: %d %q %s", test.args, code, out, errors)
		}
	}
}
