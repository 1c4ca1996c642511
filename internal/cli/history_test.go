package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/verdict/history"
)

// storedHistory returns a history of n experiments. From the thirteenth on, the kernel is newer and the throughput a quarter lower.
func storedHistory(t *testing.T, name string, n int) *corev1.ConfigMap {
	t.Helper()
	series := &history.Series{Benchmark: results.RunIdentity{Namespace: "lab", Name: name, UID: "uid-" + name}}
	for i := range n {
		kernel, median := "6.12.1", int64(400<<20+i%3)
		if i >= 12 {
			kernel, median = "6.12.4", int64(300<<20+i%3)
		}
		series.Append(history.Point{Experiment: fmt.Sprintf("e%02d", i), FinishedAt: time.Date(2026, 3, 1+i, 3, 0, 0, 0, time.UTC),
			Verdict:     "Passed",
			Environment: map[string]string{"kernel": kernel},
			Metrics: []history.Metric{{Path: history.Path{Variant: "default", Phase: "scan", Metric: "readBytesPerSecond"}, Median: median,
				Runs: 6}}})
	}
	text, err := series.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name + "-history"},
		Data: map[string]string{"history.json": string(text)}}
}

// TestHistoryNamesWhatItCannotSee: a metric that the newest experiments lack, because the storage has become too slow for it, has not stayed
// the same.
func TestHistoryNamesWhatItCannotSee(t *testing.T) {
	stored := storedHistory(t, "weekly", 12)
	series, err := history.Decode([]byte(stored.Data[history.Key]))
	if err != nil {
		t.Fatal(err)
	}
	path := func(metric string) history.Path {
		return history.Path{Variant: "default", Phase: "scan", Metric: metric}
	}
	for i := range series.Points {
		if point := &series.Points[i]; i < 11 {
			point.Metrics = append(point.Metrics, history.Metric{Path: path("readLatencyP99Nanoseconds"), Median: 7, Runs: 6})
		} else {
			point.Metrics = append(point.Metrics, history.Metric{Path: path("readOperationsPerSecond"), Median: 7, Runs: 6})
		}
	}
	text, err := series.Encode()
	if err != nil {
		t.Fatal(err)
	}
	stored.Data[history.Key] = string(text)
	h := newHub(t, stored, &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "weekly", UID: "uid-weekly"}})
	for format, says := range map[string][]string{
		"text": {"Not examined: default: scan.readLatencyP99Nanoseconds: the newest experiment with it is e10.\n",
			"Not examined: default: scan.readOperationsPerSecond: 1 of 10 experiments have it.\n"},
		"json": {`"metric": "readLatencyP99Nanoseconds",
      "reason": "the newest experiment with it is e10"`, `"reason": "1 of 10 experiments have it"`},
	} {
		code, out, errors := called(t, h, "history", "weekly", "-o", format)
		for _, one := range says {
			if code != ExitPassed || strings.Count(out, one) != 1 || strings.Count(strings.ToLower(out), "ot examined") > 2 {
				t.Errorf("%s: %d, and not once %s\n%s%s", format, code, one, out, errors)
			}
		}
	}
}

func TestHistory(t *testing.T) {
	named := func(name, uid string) *v1alpha1.StorageBenchmark {
		return &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID("uid-" + uid)}}
	}
	h := newHub(t, named("weekly", "weekly"), named("young", "young"), named("again", "other"), named("none", "none"), named("quiet", "quiet"),
		storedHistory(t, "weekly", 20), storedHistory(t, "young", 3), storedHistory(t, "again", 3), storedHistory(t, "quiet", 12))
	for _, test := range []struct {
		arguments []string
		code      int
		says      []string
	}{
		{[]string{"weekly"}, 0, []string{"e00          2026-03-01T03:00:00Z   Passed    default   scan    readBytesPerSecond   400 MiB/s (n=6)",
			"e12            2026-03-13T03:00:00Z   default   scan    readBytesPerSecond   400 MiB/s   300 MiB/s   -25.0%   worse   kernel 6.12.1 " +
				"-> 6.12.4"}},
		{[]string{"weekly", "--last", "1"}, 0, []string{"e19", "-25.0%"}},
		{[]string{"quiet"}, 0, []string{"No changes in 12 experiments."}},
		{[]string{"young"}, 0, []string{"e02", "3 of 10 experiments: changes are detected from 10 on"}},
		{[]string{"weekly", "--last", "0"}, ExitUsage, []string{"of at least 1"}},
		{[]string{"none"}, ExitNotFound, []string{"has no history yet"}},
		{[]string{"again"}, ExitNotFound, []string{"is not the history of this StorageBenchmark"}},
		{[]string{"absent"}, ExitNotFound, []string{`"absent" not found`}},
		{nil, ExitUsage, []string{"history needs one name"}},
	} {
		app, out, errors := testApp()
		h.connect(app)
		code := app.Main(t.Context(), append([]string{"history"}, test.arguments...))
		for _, says := range test.says {
			if code != test.code || !strings.Contains(out.String()+errors.String(), says) {
				t.Errorf("%v: %d, want %d and %q\n%s%s", test.arguments, code, test.code, says, out, errors)
			}
		}
		if len(test.arguments) > 2 && test.code == 0 && strings.Contains(out.String(), "e18 ") {
			t.Errorf("more than the last is printed:\n%s", out)
		}
	}
}
