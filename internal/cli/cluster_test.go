package cli

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/packing"
	"github.com/storagebench/storagebench/internal/results"
)

// hub is a fake cluster in which a test plays the operator.
type hub struct {
	t      *testing.T
	client client.WithWatch
	// watched receives a value for each watch of StorageBenchmarks that has begun.
	watched chan struct{}
	logs    logs
}

// logs serves the logs that a test has put there, by the name of the pod.
type logs struct {
	mutex sync.Mutex
	of    map[string]io.ReadCloser
}

func (l *logs) ReadLog(ctx context.Context, _, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	name := pod
	if options.Container != "runner" {
		name += "/" + options.Container
	}
	stream := l.of[name]
	if stream == nil {
		return nil, errors.New("no log of " + pod + "/" + options.Container)
	}
	context.AfterFunc(ctx, func() { _ = stream.Close() })
	return stream, nil
}

func newHub(t *testing.T, objects ...client.Object) *hub {
	t.Helper()
	scheme, err := clientScheme()
	if err != nil {
		t.Fatal(err)
	}
	h := &hub{t: t, watched: make(chan struct{}, 100), logs: logs{of: map[string]io.ReadCloser{}}}
	h.client = fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(objects...).WithStatusSubresource(&v1alpha1.StorageBenchmark{}).
		WithIndex(&v1alpha1.StorageBenchmark{}, "metadata.name", func(object client.Object) []string { return []string{object.GetName()} }).
		WithInterceptorFuncs(interceptor.Funcs{
			Watch: func(ctx context.Context, inner client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
				events, err := inner.Watch(ctx, list, options...)
				if _, is := list.(*v1alpha1.StorageBenchmarkList); is {
					h.watched <- struct{}{}
				}
				return events, err
			},
		}).Build()
	return h
}

// connect makes the tool use the fake cluster.
func (h *hub) connect(app *App) {
	app.Connect = func(Connection) (*Cluster, error) {
		return &Cluster{Client: h.client, Logs: &h.logs, Namespace: "lab"}, nil
	}
}

// waiting starts run --wait and returns once the command watches.
func (h *hub) waiting(ctx context.Context, app *App, arguments ...string) <-chan int {
	h.t.Helper()
	return h.watching(ctx, app, append([]string{"run", "../../config/samples/quickstart.yaml", "--wait"}, arguments...)...)
}

// watching starts a command and returns once the command watches or has ended.
func (h *hub) watching(ctx context.Context, app *App, arguments ...string) <-chan int {
	h.t.Helper()
	h.connect(app)
	ended := make(chan int, 1)
	go func() { ended <- app.Main(ctx, arguments) }()
	select {
	case <-h.watched:
	case code := <-ended:
		ended <- code
	case <-time.After(time.Minute):
		h.t.Fatal("it does not watch")
	}
	return ended
}

// status changes the status of the benchmark as the operator would.
func (h *hub) status(change func(*v1alpha1.StorageBenchmarkStatus)) {
	h.t.Helper()
	var benchmark v1alpha1.StorageBenchmark
	if err := h.client.Get(h.t.Context(), types.NamespacedName{Namespace: "lab", Name: "quickstart"}, &benchmark); err != nil {
		h.t.Fatal(err)
	}
	change(&benchmark.Status)
	benchmark.Status.ObservedGeneration = benchmark.Generation
	if err := h.client.Status().Update(h.t.Context(), &benchmark); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hub) code(ended <-chan int) int {
	h.t.Helper()
	select {
	case code := <-ended:
		return code
	case <-time.After(time.Minute):
		h.t.Fatal("it does not end")
		return -1
	}
}

func condition(status *v1alpha1.StorageBenchmarkStatus, kind string, is bool, reason, message string) {
	value := metav1.ConditionFalse
	if is {
		value = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: kind, Status: value, Reason: reason, Message: message})
}

// finished returns a function that sets the status of a finished benchmark with a verdict.
func finished(verdict v1alpha1.Verdict) func(*v1alpha1.StorageBenchmarkStatus) {
	return func(status *v1alpha1.StorageBenchmarkStatus) {
		status.Verdict, status.State = verdict, "Finished"
		status.FinishedAt = &metav1.Time{Time: noon}
		status.Results = &v1alpha1.ResultsReference{Experiment: "5c1f0a92", ConfigMap: "quickstart-5c1f0a92"}
		status.Progress = &v1alpha1.ProgressStatus{RunsTotal: 2, RunsDone: 2}
		status.Gates = []v1alpha1.GateStatus{{Name: "reads-at-all", Verdict: verdict, Reason: "Holds",
			Message: "read.readOperationsPerSecond = 3200 (2 runs)"}}
		status.Summary = []v1alpha1.PhaseSummary{{Variant: "default", Phase: "read", Metrics: []v1alpha1.MetricSummary{
			{Name: "readOperationsPerSecond", Median: 3200, Min: 3100, Max: 3300, Runs: 2}}}}
		condition(status, v1alpha1.ConditionComplete, true, "Finished", "the results are in ConfigMap quickstart-5c1f0a92")
		condition(status, v1alpha1.ConditionPassed, verdict == v1alpha1.VerdictPassed, string(verdict), "the words of the verdict")
		condition(status, v1alpha1.ConditionReady, true, v1alpha1.ReasonFinished, "the words of the verdict")
	}
}

func TestWaitGivesTheVerdict(t *testing.T) {
	for verdict, want := range map[v1alpha1.Verdict]int{
		v1alpha1.VerdictPassed: 0, v1alpha1.VerdictFailed: 1, v1alpha1.VerdictInconclusive: 2, v1alpha1.VerdictInvalid: 3,
	} {
		h := newHub(t)
		app, out, errors := testApp()
		ended := h.waiting(t.Context(), app)
		h.status(finished(verdict))
		if code := h.code(ended); code != want || errors.String() != "" {
			t.Errorf("%s: exit code %d %s", verdict, code, errors)
		}
		if verdict == v1alpha1.VerdictPassed {
			golden(t, "wait-passed.txt", out.String())
		}
		if !strings.Contains(out.String(), "lab/quickstart: "+string(verdict)+": the words of the verdict") {
			t.Errorf("%s: %s", verdict, out)
		}
	}
}

// TestWaitForAnEnforcedVerdict: gatePolicy makes the benchmark Stalled, but the command still reports the verdict.
func TestWaitForAnEnforcedVerdict(t *testing.T) {
	h := newHub(t)
	app, out, errors := testApp()
	ended := h.waiting(t.Context(), app)
	h.status(func(status *v1alpha1.StorageBenchmarkStatus) {
		finished(v1alpha1.VerdictFailed)(status)
		condition(status, v1alpha1.ConditionReady, false, v1alpha1.ReasonNotPassed, "the words of the verdict")
		condition(status, v1alpha1.ConditionStalled, true, v1alpha1.ReasonNotPassed, "the words of the verdict")
	})
	if code := h.code(ended); code != ExitFailed || errors.String() != "" || !strings.Contains(out.String(), "lab/quickstart: Failed: ") {
		t.Errorf("exit code %d %s%s", code, out, errors)
	}
}

// TestWaitOtherEnds: every end without a verdict has its own exit code.
func TestWaitOtherEnds(t *testing.T) {
	for _, test := range []struct {
		name      string
		arguments []string
		act       func(h *hub, cancel func())
		code      int
		says      []string
	}{
		{"stalled", nil, func(h *hub, _ func()) {
			h.status(func(status *v1alpha1.StorageBenchmarkStatus) {
				condition(status, v1alpha1.ConditionStalled, true, "NotSupported", "this target is not supported")
				condition(status, v1alpha1.ConditionReady, false, "NotSupported", "this target is not supported")
			})
		}, ExitRefused, []string{"lab/quickstart cannot continue: NotSupported: this target is not supported",
			"kubectl delete storagebenchmark quickstart -n lab"}},
		{"deleted", nil, func(h *hub, _ func()) {
			benchmark := &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "quickstart"}}
			if err := h.client.Delete(h.t.Context(), benchmark); err != nil {
				h.t.Error(err)
			}
		}, ExitNotFound, []string{"lab/quickstart was deleted before its verdict"}},
		{"timeout", []string{"--timeout", "10ms"}, func(*hub, func()) {}, ExitTimeout, []string{"No verdict after 0s; it continues in the cluster",
			"Check again: kubectl storagebench watch quickstart -n lab"}},
		{"interrupted", nil, func(_ *hub, cancel func()) {
			cancel()
		}, ExitInterrupted, []string{"No longer waiting; it continues in the cluster", "Stop and delete it: kubectl delete"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHub(t)
			app, out, errors := testApp()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := h.waiting(ctx, app, test.arguments...)
			test.act(h, cancel)
			if code := h.code(ended); code != test.code {
				t.Errorf("exit code %d instead of %d: %s", code, test.code, errors)
			}
			for _, says := range test.says {
				if !strings.Contains(out.String(), says) {
					t.Errorf("does not say %q:\n%s", says, out)
				}
			}
		})
	}
}

// TestWaitShowsProgress goes through a whole life on a terminal: the queue, a phase with its rate, the end of the phase, the verdict.
func TestWaitShowsProgress(t *testing.T) {
	g := gomega.NewWithT(t)
	h := newHub(t)
	app, out, _ := testApp()
	app.Terminal = func() (int, int, bool) { return 120, 24, true }
	ended := h.waiting(t.Context(), app)
	shows := func(text string) {
		t.Helper()
		g.Eventually(out.String, time.Minute, 10*time.Millisecond).Should(gomega.ContainSubstring(text))
	}
	shows("waiting for the operator")
	h.status(func(status *v1alpha1.StorageBenchmarkStatus) {
		status.State, status.NodeName = "Queued(1)", "node-a"
		status.Queue = &v1alpha1.QueueStatus{Since: metav1.MicroTime{Time: noon.Add(-time.Minute)}, Position: 1, Holder: "lab/other"}
		condition(status, v1alpha1.ConditionReady, false, v1alpha1.ReasonQueued, "number 1 in the queue for node-a, held by lab/other")
	})
	shows("lab/quickstart  Queued(1) on node-a, queued for 1m\n  number 1 in the queue for node-a, held by lab/other\n")
	phase := func(name string, done int32) {
		h.status(func(status *v1alpha1.StorageBenchmarkStatus) {
			status.State, status.Queue, status.Experiment = "Running", nil, "5c1f0a92"
			status.StartedAt = &metav1.Time{Time: noon.Add(-5 * time.Second)}
			status.Progress = &v1alpha1.ProgressStatus{RunsTotal: 2, RunsDone: done, CurrentRun: "quickstart-5c1f0a92-000", CurrentPhase: name,
				EstimatedEnd: &metav1.Time{Time: noon.Add(80 * time.Second)}}
			condition(status, v1alpha1.ConditionReady, false, v1alpha1.ReasonProgressing, "phase "+name+" is under way")
		})
	}
	phase("fill", 0)
	shows("lab/quickstart  Running on node-a, 0 of 2 runs done, 5s\n  phase fill is under way\n  ends about 12:01, in 1m20s\n")
	h.pod("fill-pod", "fill", `storagebench-progress {"percent":45,"rate":"1.2 GiB/s","secondsLeft":6}`+"\n")
	shows("  run 1 of 2  fill  [##########--------------]  45%  1.2 GiB/s  6s left\nlab/quickstart  Running")
	phase("read", 0)
	shows("  run 1 of 2  fill  done in 0s\n")
	h.status(finished(v1alpha1.VerdictPassed))
	if code := h.code(ended); code != ExitPassed {
		t.Error(code)
	}
	shows("  run 1 of 2  read  done in 0s\n")
}

// TestPhasesOfDeletedBenchmarks: a deletion ends a phase, but the phase is not done.
func TestPhasesOfDeletedBenchmarks(t *testing.T) {
	for name, deleted := range map[string]bool{"goes on": false, "deleted": true} {
		benchmark := &v1alpha1.StorageBenchmark{Status: v1alpha1.StorageBenchmarkStatus{
			Progress: &v1alpha1.ProgressStatus{RunsTotal: 1, CurrentRun: "q-1-000", CurrentPhase: "fill"}}}
		var one tracked
		one.see(benchmark, noon)
		next := benchmark.DeepCopy()
		next.Status.Progress.CurrentPhase = ""
		if deleted {
			next.DeletionTimestamp = &metav1.Time{Time: noon}
		}
		if ended, _ := one.see(next, noon.Add(time.Minute)); (ended == "") != deleted {
			t.Errorf("%s: %q", name, ended)
		}
	}
}

// TestUnfinishedWithoutNews: without a connection, it is not known whether a benchmark goes on.
func TestUnfinishedWithoutNews(t *testing.T) {
	for outage, says := range map[string]string{"": "it continues in the cluster", "connection refused": "no news from the cluster: connection refused. Last known: "} {
		app, out, _ := testApp()
		app.sayUnfinished(&tracked{benchmark: &v1alpha1.StorageBenchmark{}, outage: outage}, errTimeout, waitOptions{})
		if !strings.Contains(out.String(), says) {
			t.Errorf("%q: %s", outage, out)
		}
	}
}

// pod creates a running pod of the benchmark with the given log.
func (h *hub) pod(name, phase, log string) {
	h.t.Helper()
	var benchmark v1alpha1.StorageBenchmark
	if err := h.client.Get(h.t.Context(), types.NamespacedName{Namespace: "lab", Name: "quickstart"}, &benchmark); err != nil {
		h.t.Fatal(err)
	}
	reader, writer := io.Pipe()
	h.logs.mutex.Lock()
	h.logs.of[name] = reader
	h.logs.mutex.Unlock()
	go func() { _, _ = writer.Write([]byte(log)) }()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID(name), Labels: map[string]string{
		v1alpha1.LabelBenchmarkUID: string(benchmark.UID), v1alpha1.LabelRun: "quickstart-5c1f0a92-000", v1alpha1.LabelPhase: phase}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	if err := h.client.Create(h.t.Context(), pod); err != nil {
		h.t.Fatal(err)
	}
}

func TestRunWithoutWait(t *testing.T) {
	h := newHub(t)
	app, out, errors := testApp()
	h.connect(app)
	code := app.Main(t.Context(), []string{"run", "../../config/samples/quickstart.yaml"})
	want := "StorageBenchmark lab/quickstart created\nFollow its progress: kubectl storagebench watch quickstart -n lab\n"
	if code != 0 || out.String() != want {
		t.Errorf("%d %q %s", code, out, errors)
	}
}

func TestRunRefusesOtherKinds(t *testing.T) {
	for text, says := range map[string]string{
		"apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n": "run applies StorageBenchmarks, their " +
			"StorageTargets and ConfigMaps only",
		"apiVersion: storagebench.dev/v1alpha1\nkind: StorageBenchmark\nmetadata: {}\n":              "has no metadata.name",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n":                                     "it contains no StorageBenchmark",
		"apiVersion: storagebench.dev/v1alpha1\nkind: PoolOperation\nmetadata: {name: x}\n":          "run applies StorageBenchmarks",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: other}\ndata: {a: \"1\"}\n": "make them the same, or remove one",
	} {
		h := newHub(t)
		app, _, errors := testApp()
		h.connect(app)
		code := app.Main(t.Context(), []string{"run", file(t, "b.yaml", text), "-n", "lab"})
		if code != ExitRefused || !strings.Contains(errors.String(), says) {
			t.Errorf("%s: %d %s", text, code, errors)
		}
	}
}

const resultsText = `{"version":"results.storagebench.dev/v1alpha1","benchmark":{"namespace":"lab","name":"quickstart"},"verdict":"Passed",` +
	`"message":"all gates hold","seed":4711}`

func TestReport(t *testing.T) {
	benchmark := &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "quickstart"}}
	finished(v1alpha1.VerdictPassed)(&benchmark.Status)
	running := &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "running"}}
	running.Status.History = []v1alpha1.ResultsReference{{ConfigMap: "running-1"}}
	lost := benchmark.DeepCopy()
	lost.Name, lost.Status.Results.ConfigMap = "lost", "lost-1"
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "quickstart-5c1f0a92"},
		Data: map[string]string{"report.md": "# Passed\n", "results.json": resultsText, "junit.xml": "<x/>"}}
	old := stored.DeepCopy()
	old.Name, old.Data["results.json"] = "lost-2", `{"version":"results.storagebench.dev/v9"}`
	future := benchmark.DeepCopy()
	future.Name, future.Status.Results.ConfigMap = "future", old.Name
	folder := t.TempDir()
	for _, test := range []struct {
		arguments []string
		code      int
		says      string
	}{
		{[]string{"future", "-o", "html"}, ExitRefused, "use results of this release"},
		{[]string{"future", "-o", "markdown"}, 0, "# Passed\n"},
		{[]string{"quickstart"}, 0, "# Passed\n"},
		{[]string{"quickstart", "-o", "junit"}, 0, "<x/>"},
		{[]string{"quickstart", "-o", "html"}, 0, "<title>lab/quickstart: Passed</title>"},
		{[]string{"quickstart", "-o", "html"}, 0, "seed: 4711"},
		{[]string{"quickstart", "--output-dir", folder}, 0, folder + "/report.md\n"},
		{[]string{"absent"}, ExitNotFound, `"absent" not found`},
		{[]string{"running"}, ExitNotFound,
			"has no report yet: waiting for the operator\nThe report of its last experiment exists: kubectl get configmap running-1 -n lab"},
		{[]string{"lost"}, ExitNotFound, "should be in ConfigMap lost-1, which was deleted"},
	} {
		h := newHub(t, benchmark.DeepCopy(), running.DeepCopy(), lost.DeepCopy(), stored.DeepCopy(), future.DeepCopy(), old.DeepCopy())
		app, out, errors := testApp()
		h.connect(app)
		code := app.Main(t.Context(), append([]string{"report"}, test.arguments...))
		if code != test.code || !strings.Contains(out.String()+errors.String(), test.says) {
			t.Errorf("%v: %d %s%s", test.arguments, code, out, errors)
		}
	}
	if got := read(t, folder+"/results.json"); got != resultsText {
		t.Error(got)
	}
	if got := read(t, folder+"/report.html"); !strings.Contains(got, "All gates hold.") {
		t.Error(got)
	}
}

// TestReportOnATerminal: users who can write ConfigMaps cannot move the cursor. Programs get the text as it is stored.
func TestReportOnATerminal(t *testing.T) {
	benchmark := &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "quickstart"}}
	finished(v1alpha1.VerdictPassed)(&benchmark.Status)
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "quickstart-5c1f0a92"},
		Data: map[string]string{"report.md": "# Passed\n\x1b[2JFailed\n"}}
	for want, terminal := range map[string]bool{"# Passed\n[2JFailed\n": true, "# Passed\n\x1b[2JFailed\n": false} {
		app, out, errors := testApp()
		newHub(t, benchmark.DeepCopy(), stored.DeepCopy()).connect(app)
		app.Terminal = func() (int, int, bool) { return 80, 24, terminal }
		if code := app.Main(t.Context(), []string{"report", "quickstart"}); code != ExitPassed || out.String() != want {
			t.Errorf("%d %q %s", code, out, errors)
		}
	}
}

// TestReportWithPictures: pictures are drawn from the documents of the phases. If a document is missing, there are fewer pictures.
func TestReportWithPictures(t *testing.T) {
	benchmark := &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "quickstart"}}
	finished(v1alpha1.VerdictPassed)(&benchmark.Status)
	experiment := results.Experiment{Version: results.PhaseVersion, Benchmark: results.RunIdentity{Namespace: "lab", Name: "quickstart"}}
	for _, phase := range []string{"scan", "lost"} {
		experiment.Runs = append(experiment.Runs, results.RunResult{Name: "r-" + phase, Variant: "v", Valid: true, Phases: []results.RunPhase{{
			Name: phase, Kind: results.KindMeasure, Outcome: results.OutcomeValid, ConfigMap: "r-" + phase,
			Metrics: map[string]int64{"readBytesPerSecond": 5 << 20}}}})
	}
	experiment.Variants = results.Summarise(experiment.Runs)
	text, _, err := experiment.Encode(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "quickstart-5c1f0a92"},
		Data: map[string]string{"report.md": "# Passed\n", "results.json": string(text), "junit.xml": "<x/>"}}
	document := []byte(`{"version":"` + results.PhaseVersion + `","run":{"namespace":"lab","name":"r-scan","uid":"u"},"phase":"scan","kind":"measure",` +
		`"outcome":"Valid","startedAt":"2026-03-01T12:00:00Z","finishedAt":"2026-03-01T12:00:10Z","metrics":{"readBytesPerSecond":5242880},` +
		`"raw":{"regions":[{"index":0,"bytes":100,"nanoseconds":10},{"index":1,"bytes":100,"nanoseconds":20}]}}`)
	binary, data, _, err := results.StoredPhase(document, packing.Digest(document))
	if err != nil {
		t.Fatal(err)
	}
	phase := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "r-scan"}, Data: data, BinaryData: binary}
	h, folder := newHub(t, benchmark, stored, phase), t.TempDir()
	app, out, errors := testApp()
	h.connect(app)
	if code := app.Main(t.Context(), []string{"report", "quickstart", "--output-dir", folder}); code != 0 {
		t.Fatal(code, out, errors)
	}
	if !strings.Contains(errors.String(), "Not in the pictures: 1 phase whose ConfigMap is gone") {
		t.Error(errors)
	}
	for _, name := range []string{"regions-scan", "metric-readbytespersecond"} {
		if picture := read(t, folder+"/pictures/"+name+".svg"); !strings.HasPrefix(picture, "<svg ") {
			t.Errorf("%s: %.100s", name, picture)
		}
		if !strings.Contains(read(t, folder+"/report.md"), "](pictures/"+name+".svg)") {
			t.Errorf("report.md does not show %s", name)
		}
	}
	if page := read(t, folder+"/report.html"); strings.Count(page, "<figure>") != 2 {
		t.Errorf("%d pictures", strings.Count(page, "<figure>"))
	}
}

func TestErrorsOfTheCluster(t *testing.T) {
	kind := schema.GroupResource{Group: "storagebench.dev", Resource: "storagebenchmarks"}
	for _, test := range []struct {
		err  error
		code int
		says string
	}{
		{&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "StorageBenchmark"}}, ExitUnavailable, "install storagebench there first"},
		{apierrors.NewForbidden(kind, "b", errors.New("no")), ExitUnavailable, "ask for the cluster role edit"},
		{apierrors.NewForbidden(kind, "b", errors.New(`User "u" cannot patch resource "storagebenchmarks" in API group "storagebench.dev"`)),
			ExitUnavailable, "ask for the cluster role edit in the namespace"},
		{apierrors.NewForbidden(kind, "b", errors.New(`User "u" cannot get resource "storagebenchmarks" in API group "storagebench.dev"`)),
			ExitUnavailable, "ask for the cluster role view (or edit, to run benchmarks) in the namespace"},
		{apierrors.NewForbidden(kind, "", errors.New(`User "u" cannot list resource "nodes" in API group "" at the cluster scope`)),
			ExitUnavailable, "ask an admin for a ClusterRole with this right"},
		{apierrors.NewUnauthorized("who?"), ExitUnavailable, "use another context"},
		{apierrors.NewApplyConflict([]metav1.StatusCause{{Field: ".spec.seed", Message: "conflict with kubectl"}}, "x"), ExitRefused,
			"\n  spec.seed: conflict with kubectl\nUse --force-conflicts"},
		{apierrors.NewNotFound(kind, "b"), ExitNotFound, `"b" not found`},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, ExitUnavailable, "the cluster cannot be reached"},
		{apierrors.NewServiceUnavailable("later"), ExitUnavailable, "the cluster cannot be reached"},
		{errors.New("odd"), ExitError, "do it: odd"},
	} {
		err := explain("do it", test.err)
		if code, _ := exitCode(err); code != test.code || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%v: %d %v", test.err, code, err)
		}
	}
	if explain("x", nil) != nil || !errors.Is(explain("x", context.Canceled), context.Canceled) {
		t.Error("an error was made of nothing")
	}
}

// TestNoKubeconfig: the error names the flags that select the cluster.
func TestNoKubeconfig(t *testing.T) {
	app, _, errors := testApp()
	code := app.Main(t.Context(), []string{"report", "x", "--kubeconfig", t.TempDir() + "/none"})
	if code != ExitUnavailable || !strings.Contains(errors.String(), "set --kubeconfig, and --context") {
		t.Error(code, errors)
	}
}
