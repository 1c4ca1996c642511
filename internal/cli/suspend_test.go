package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// read returns the benchmark as it is in the cluster.
func (h *hub) read(name string) *v1alpha1.StorageBenchmark {
	h.t.Helper()
	var one v1alpha1.StorageBenchmark
	if err := h.client.Get(h.t.Context(), types.NamespacedName{Namespace: "lab", Name: name}, &one); err != nil {
		h.t.Fatal(err)
	}
	return &one
}

// appliedBy sets the managed fields as if a tool had applied these fields.
func appliedBy(one *v1alpha1.StorageBenchmark, manager, fields string) *v1alpha1.StorageBenchmark {
	one.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationApply,
		APIVersion: v1alpha1.GroupVersion.String(), FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}}
	return one
}

// TestSuspendAndResume: the output names the losses, and it is no error to repeat a command.
func TestSuspendAndResume(t *testing.T) {
	h := newHub(t, benchmarkNamed("lab", "running", running), benchmarkNamed("lab", "done", passed))
	steps := []struct {
		arguments string
		suspended bool
		says      []string
	}{
		{"suspend running", true, []string{"lab/running is suspended", "Kept: the numbers of 1 valid run",
			"Lost: what run running-5c1f0a92-001 has measured so far", "kubectl storagebench resume running -n lab"}},
		{"cancel running", true, []string{"lab/running is suspended already"}},
		{"resume running", false, []string{"lab/running continues", "kubectl storagebench watch running -n lab"}},
		{"resume running", false, []string{"lab/running is not suspended: run 2 of 2"}},
		{"suspend done", false, []string{"lab/done has ended: there is nothing to stop"}},
	}
	for _, step := range steps {
		arguments := strings.Fields(step.arguments)
		code, out, errors := called(t, h, arguments...)
		if is := h.read(arguments[1]).Spec.Suspend; code != ExitPassed || errors != "" || is != step.suspended {
			t.Errorf("%s: %d %s, suspended: %t", step.arguments, code, errors, is)
		}
		for _, says := range step.says {
			if !strings.Contains(out, says) {
				t.Errorf("%s: does not say %q:\n%s", step.arguments, says, out)
			}
		}
	}
	if code, _, _ := called(t, h, "suspend", "absent"); code != ExitNotFound {
		t.Errorf("absent: %d", code)
	}
}

// TestSuspendOfRunsThatShareAPool: suspending deletes the pool and hours of ageing, so it requires a flag. Runs of an earlier experiment do
// not count.
func TestSuspendOfRunsThatShareAPool(t *testing.T) {
	one := benchmarkNamed("lab", "running", running)
	for experiment, refuses := range map[string]bool{"5c1f0a92": true, "0ld": false} {
		objects := append(runsOf(one), one)
		for _, run := range objects[:2] {
			run.(*v1alpha1.BenchmarkRun).Spec.Experiment = experiment
			run.(*v1alpha1.BenchmarkRun).Spec.Target.ZFS = &v1alpha1.ZFSTarget{Reset: v1alpha1.ResetNone}
		}
		h := newHub(t, objects...)
		code, _, errors := called(t, h, "suspend", "running")
		if refuses != (code == ExitRefused) || refuses != strings.Contains(errors, "Allow it with --delete-pool") || h.read("running").Spec.Suspend == refuses {
			t.Errorf("%s: %d %s", experiment, code, errors)
		}
		if !refuses {
			continue
		}
		code, out, errors := called(t, h, "suspend", "running", "--delete-pool")
		if code != ExitPassed || !strings.Contains(out, "Lost: the pool that its runs pass on to each other (reset: None)") || !h.read("running").Spec.Suspend {
			t.Errorf("%s: %d %s%s", experiment, code, out, errors)
		}
	}
}

// TestSuspendOfASchedule: suspending between two experiments keeps the next experiment from starting.
func TestSuspendOfASchedule(t *testing.T) {
	one := benchmarkNamed("lab", "nightly", passed)
	one.Spec.Schedule = &v1alpha1.Schedule{Cron: "0 3 * * *"}
	h := newHub(t, one)
	if code, out, _ := called(t, h, "suspend", "nightly"); code != ExitPassed || !h.read("nightly").Spec.Suspend || strings.Contains(out, "Lost") {
		t.Errorf("%d %s", code, out)
	}
}

// TestChangeOfWhatChanged: after a conflict, the change is decided again on the newer object, and the output is about that object.
func TestChangeOfWhatChanged(t *testing.T) {
	h := newHub(t, benchmarkNamed("lab", "running", running))
	patches := 0
	inner := h.client
	h.client = interceptor.NewClient(inner, interceptor.Funcs{Patch: func(ctx context.Context, through client.WithWatch, object client.Object,
		patch client.Patch, options ...client.PatchOption) error {
		if patches++; patches == 1 {
			newer := h.read("running")
			newer.Status.Progress.CurrentRun = "running-5c1f0a92-002"
			if err := inner.Status().Update(ctx, newer); err != nil {
				t.Error(err)
			}
		}
		return through.Patch(ctx, object, patch, options...)
	}})
	code, out, errors := called(t, h, "suspend", "running")
	if code != ExitPassed || patches != 2 || !strings.Contains(out, "Lost: what run running-5c1f0a92-002") || !h.read("running").Spec.Suspend {
		t.Errorf("%d, %d patches: %s%s", code, patches, out, errors)
	}
}

// TestChangeOfWhatChangesOften: the command succeeds even if the manager writes several times in a row, for example at the end of
// a run.
func TestChangeOfWhatChangesOften(t *testing.T) {
	h := newHub(t, benchmarkNamed("lab", "running", running))
	var quiet time.Time
	h.client = interceptor.NewClient(h.client, interceptor.Funcs{Patch: func(ctx context.Context, through client.WithWatch, object client.Object,
		patch client.Patch, options ...client.PatchOption) error {
		if quiet.IsZero() {
			quiet = time.Now().Add(150 * time.Millisecond)
		}
		if time.Now().Before(quiet) {
			return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("storagebenchmarks").GroupResource(), "running", nil)
		}
		return through.Patch(ctx, object, patch, options...)
	}})
	if code, out, errors := called(t, h, "suspend", "running"); code != ExitPassed || quiet.IsZero() || !h.read("running").Spec.Suspend {
		t.Errorf("%d %s%s", code, out, errors)
	}
}

func TestChangeIsRefused(t *testing.T) {
	kind := v1alpha1.GroupVersion.WithResource("storagebenchmarks").GroupResource()
	for says, refusal := range map[string]struct {
		err  error
		code int
	}{
		"ask for the cluster role edit": {apierrors.NewForbidden(kind, "running", nil), ExitUnavailable},
		"again and again":               {apierrors.NewConflict(kind, "running", nil), ExitError},
	} {
		h := newHub(t, benchmarkNamed("lab", "running", running))
		h.client = interceptor.NewClient(h.client, interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch,
			...client.PatchOption) error {
			return refusal.err
		}})
		code, out, errors := called(t, h, "suspend", "running")
		if code != refusal.code || out != "" || !strings.Contains(errors, says) || strings.Contains(errors, "--force") {
			t.Errorf("%d %s%s", code, out, errors)
		}
	}
}

// TestOwnersAreNamed: the user is warned of a tool that has applied the field, because it may set the field back.
func TestOwnersAreNamed(t *testing.T) {
	h := newHub(t, appliedBy(benchmarkNamed("lab", "running", running), "argocd\x1b[2J", `{"f:spec":{"f:suspend":{}}}`),
		appliedBy(benchmarkNamed("lab", "other", running), "argocd", `{"f:spec":{"f:repetitions":{}}}`))
	_, _, errors := called(t, h, "suspend", "running")
	if !strings.Contains(errors, "Warning: argocd[2J has applied this field, and may set it back: write spec.suspend: true") {
		t.Errorf("%q", errors)
	}
	if _, _, errors := called(t, h, "suspend", "other"); errors != "" {
		t.Error(errors)
	}
}

// TestRerun: the experiment starts at once if nothing is lost. Otherwise rerun requires the flag for the loss.
func TestRerun(t *testing.T) {
	busy, idle := benchmarkNamed("lab", "running", running), benchmarkNamed("lab", "done", passed)
	kept := benchmarkNamed("lab", "kept", passed)
	full := benchmarkNamed("lab", "full", passed)
	full.Spec.ResultsHistory = ptr.To(int32(1))
	full.Status.History = []v1alpha1.ResultsReference{{Experiment: "0ld", ConfigMap: "full-0ld"}}
	keeping := benchmarkNamed("lab", "keeping", running) // its last run retains nothing yet
	keeping.Spec.ResultsHistory = ptr.To(int32(2))
	for _, name := range []string{"0ld", "0lder"} {
		keeping.Status.History = append(keeping.Status.History, v1alpha1.ResultsReference{Experiment: name, ConfigMap: "keeping-" + name})
	}
	objects := append(append(runsOf(busy), runsOf(idle)...), busy, idle, kept, full, keeping)
	for _, run := range runsOf(keeping) {
		run.(*v1alpha1.BenchmarkRun).Spec.Retain = v1alpha1.RetainAlways
		objects = append(objects, run)
	}
	for _, run := range runsOf(kept) {
		run.(*v1alpha1.BenchmarkRun).Spec.Retain = v1alpha1.RetainOnFailure
		objects = append(objects, run)
	}
	for _, object := range objects {
		if run, is := object.(*v1alpha1.BenchmarkRun); is {
			run.Spec.Experiment = "5c1f0a92"
		}
	}
	for _, test := range []struct {
		arguments   string
		code        int
		says, never []string
	}{
		{"done", ExitPassed, []string{"lab/done starts over", "documents of their phases are deleted", "watch done -n lab"},
			[]string{"lost", "retained", "resultsHistory"}},
		{"running", ExitRefused, []string{"this would be lost", "5c1f0a92 ends without a verdict: 1 of 2 runs done, 1 invalid",
			"what run running-5c1f0a92-001 has measured so far is lost", "Allow it with --even-if-running"}, []string{"--delete-retained"}},
		{"running --even-if-running", ExitPassed, []string{"starts over", "what run running-5c1f0a92-001 has measured so far is lost"}, nil},
		{"kept", ExitRefused, []string{"are deleted: kept-5c1f0a92-001-1\nAllow it with --delete-retained"}, []string{"--even-if-running"}},
		{"kept --delete-retained", ExitPassed, []string{"starts over", "are deleted: kept-5c1f0a92-001-1"}, nil},
		{"keeping --even-if-running", ExitRefused, []string{"are deleted: keeping-5c1f0a92-000-1, keeping-5c1f0a92-001-1\nAllow it with " +
			"--delete-retained"}, nil},
		{"keeping --even-if-running --delete-retained", ExitPassed, []string{
			"the results of experiment 0lder in ConfigMap keeping-0lder are deleted: spec.resultsHistory is 2"}, []string{"experiment 0ld "}},
		{"full", ExitPassed, []string{"the results of experiment 0ld in ConfigMap full-0ld are deleted: spec.resultsHistory is 1"}, nil},
		{"absent", ExitNotFound, nil, nil},
		{"done --timeout 1h", ExitUsage, []string{"--timeout needs --wait"}, nil},
	} {
		h := newHub(t, objects...)
		arguments := strings.Fields(test.arguments)
		code, out, errors := called(t, h, append([]string{"rerun"}, arguments...)...)
		said := out + errors
		if code != test.code {
			t.Errorf("%s: %d %s", test.arguments, code, said)
		}
		for _, says := range test.says {
			if !strings.Contains(said, says) {
				t.Errorf("%s: does not say %q:\n%s", test.arguments, says, said)
			}
		}
		for _, never := range test.never {
			if strings.Contains(said, never) {
				t.Errorf("%s: says %q:\n%s", test.arguments, never, said)
			}
		}
		if test.code == ExitNotFound || test.code == ExitUsage {
			continue
		}
		if value := h.read(arguments[0]).Annotations[v1alpha1.AnnotationRerun]; (value == "2026-01-02T12:00:00Z") != (code == ExitPassed) {
			t.Errorf("%s: the annotation is %q", test.arguments, value)
		}
	}
}

// TestRerunWaits for the new experiment: the verdict of the earlier one does not count.
func TestRerunWaits(t *testing.T) {
	one := benchmarkNamed("lab", "quickstart", passed)
	one.Status.Experiment = "0ld"
	h := newHub(t, one)
	app, out, _ := testApp()
	ended := h.watching(t.Context(), app, "rerun", "quickstart", "--wait")
	h.status(func(status *v1alpha1.StorageBenchmarkStatus) {
		finished(v1alpha1.VerdictFailed)(status)
		status.Experiment = "5c1f0a92"
	})
	if code := h.code(ended); code != ExitFailed || strings.Contains(out.String(), "Passed") {
		t.Errorf("%d %s", code, out)
	}
}

// TestWatchAfterRerun: the command that rerun recommends waits for the new experiment too.
func TestWatchAfterRerun(t *testing.T) {
	one := benchmarkNamed("lab", "quickstart", passed)
	one.Status.Experiment = "01d01d01"
	h := newHub(t, one)
	code, out, _ := called(t, h, "rerun", "quickstart")
	_, hint, is := strings.Cut(out, "Follow its progress: kubectl storagebench ")
	if code != ExitPassed || !is {
		t.Fatal(code, out)
	}
	app, said, _ := testApp()
	ended := h.watching(t.Context(), app, strings.Fields(hint)...)
	h.status(func(status *v1alpha1.StorageBenchmarkStatus) {
		finished(v1alpha1.VerdictFailed)(status)
		status.Experiment = "5c1f0a92"
	})
	if code := h.code(ended); code != ExitFailed || strings.Contains(said.String(), "Passed") {
		t.Errorf("%d %s", code, said)
	}
	if code, _, errors := called(t, h, "watch", "quickstart", "other", "--after", "01d01d01"); code != ExitUsage || !strings.Contains(errors, "one NAME") {
		t.Errorf("%d %s", code, errors)
	}
}

// TestRerunOfASuspendedBenchmark: rerun --wait does not wait for a verdict that cannot come.
func TestRerunOfASuspendedBenchmark(t *testing.T) {
	one := benchmarkNamed("lab", "quickstart", passed)
	one.Spec.Suspend = true
	h := newHub(t, one)
	code, _, errors := called(t, h, "rerun", "quickstart", "--wait", "--timeout", "1m")
	if code != ExitRefused || !strings.Contains(errors, "Resume it first: kubectl storagebench resume quickstart -n lab") ||
		h.read("quickstart").Annotations[v1alpha1.AnnotationRerun] != "" {
		t.Errorf("%d %s", code, errors)
	}
	if code, out, _ := called(t, h, "rerun", "quickstart"); code != ExitPassed || !strings.Contains(out, "resume quickstart -n lab") {
		t.Errorf("%d %s", code, out)
	}
}

// TestRunAfterRerun: a file without the annotation does not remove it, so there is no new experiment to wait for.
func TestRunAfterRerun(t *testing.T) {
	for annotation, want := range map[string]int{"": ExitPassed, "annotations: {storagebench.dev/rerun: other}": ExitTimeout} {
		timeout := map[int]string{ExitPassed: "1m", ExitTimeout: "50ms"}[want]
		one := benchmarkNamed("lab", "quickstart", passed)
		one.Status.Experiment, one.Annotations = "5c1f0a92", map[string]string{v1alpha1.AnnotationRerun: "once"}
		h := newHub(t, one)
		manifest := fmt.Sprintf("apiVersion: storagebench.dev/v1alpha1\nkind: StorageBenchmark\nmetadata:\n  name: quickstart\n  %s\n", annotation)
		code, out, errors := called(t, h, "run", file(t, "b.yaml", manifest), "--wait", "--timeout", timeout, "--force-conflicts")
		if code != want {
			t.Errorf("%q: %d instead of %d\n%s%s", annotation, code, want, out, errors)
		}
	}
}

// TestSuspendOfAnAgeingPool: even between two experiments, suspending would delete the pool with weeks of ageing, so it requires a flag
// too.
func TestSuspendOfAnAgeingPool(t *testing.T) {
	one := benchmarkNamed("lab", "nightly", passed)
	one.Spec.Schedule = &v1alpha1.Schedule{Cron: "0 3 * * *"}
	objects := append(runsOf(one), one)
	for _, object := range objects {
		if run, is := object.(*v1alpha1.BenchmarkRun); is {
			run.Spec.Target.ZFS = &v1alpha1.ZFSTarget{Reset: v1alpha1.ResetNone, KeepFor: v1alpha1.KeepForSchedule}
			run.Status.Volumes = []v1alpha1.RunVolumeStatus{{Name: "data", PoolAge: &v1alpha1.PoolAge{
				Since: metav1.NewTime(time.Date(2026, 11, 1, 2, 0, 0, 0, time.UTC)), Experiments: 14, Runs: 84}}}
		}
	}
	h := newHub(t, objects...)
	code, out, errors := called(t, h, "show", "nightly")
	if !strings.Contains(out, "\nThe pool was aged over 14 experiments (84 runs) since 2026-11-01T02:00:00Z\n") {
		t.Errorf("%d %s%s", code, out, errors)
	}
	if code, _, errors = called(t, h, "suspend", "nightly"); code != ExitRefused || h.read("nightly").Spec.Suspend {
		t.Errorf("%d %s", code, errors)
	}
	code, out, errors = called(t, h, "suspend", "nightly", "--delete-pool")
	if code != ExitPassed || !strings.Contains(out, "(keepFor: Schedule), with its age") || !h.read("nightly").Spec.Suspend {
		t.Errorf("%d %s%s", code, out, errors)
	}
}
