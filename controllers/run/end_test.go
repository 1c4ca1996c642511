package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/fresh"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/workload"
)

// endingPhase lasts as long as the operation beside it.
var endingPhase = v1alpha1.Phase{Name: "busy", Measure: &v1alpha1.MeasurePhase{Until: v1alpha1.UntilOperationEnds,
	Workload: v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{}}}}

// TestPodWaitsForTheEnd: the pod starts without the ConfigMap, and later sees one key of it.
func TestPodWaitsForTheEnd(t *testing.T) {
	run := testRun(corev1.PersistentVolumeFilesystem)
	pod := podSpec(run, endingPhase, "")
	for _, wrong := range restricted(pod) {
		t.Error(wrong)
	}
	mount, volume := pod.Containers[0].VolumeMounts[len(pod.Containers[0].VolumeMounts)-1], pod.Volumes[len(pod.Volumes)-1]
	if mount.MountPath != workload.EndPath || !mount.ReadOnly || mount.Name != volume.Name || mount.SubPath != "" {
		t.Errorf("mount %+v", mount)
	}
	source := volume.ConfigMap
	if source == nil || source.Name != run.Name+"-busy.end" || !ptr.Deref(source.Optional, false) || len(source.Items) != 1 ||
		source.Items[0].Key != workload.EndKey || workload.EndPath+"/"+source.Items[0].Path != workload.EndFile {
		t.Errorf("volume %+v", volume)
	}
	lasting := *endingPhase.DeepCopy()
	lasting.Measure.Until = ""
	if with, without := len(pod.Volumes), len(podSpec(run, lasting, "").Volumes); without != with-1 {
		t.Errorf("%d volumes, and %d for a phase with a duration", with, without)
	}
}

// TestTellEnd: the ConfigMap is created once, and one of another owner is not mistaken for it.
func TestTellEnd(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	run := testRun(corev1.PersistentVolumeFilesystem)
	run.Spec.Phases = []v1alpha1.Phase{endingPhase}
	action := runs.Action{Kind: runs.TellEnd, EndAt: time.Date(2026, 11, 25, 18, 0, 0, 0, time.UTC)}
	server := fake.NewClientBuilder().WithScheme(scheme).Build()
	r := &Reconciler{Client: server, Live: server, Memory: &fresh.Memory[*v1alpha1.BenchmarkRun]{}}
	key := client.ObjectKey{Namespace: run.Namespace, Name: run.Name + "-busy.end"}
	state := runs.State{Run: run, Phases: make([]runs.PhaseState, 1)}
	if err := r.observeResults(t.Context(), &state); err != nil || state.Phases[0].EndTold {
		t.Fatalf("before: %+v, %v", state.Phases[0], err)
	}
	for range 2 { // the second time the cache lags
		if err := r.act(t.Context(), &state, []runs.Action{action}); err != nil {
			t.Fatal(err)
		}
	}
	var told corev1.ConfigMap
	if err := server.Get(t.Context(), key, &told); err != nil {
		t.Fatal(err)
	}
	if told.Data[workload.EndKey] != workload.EndText("run-uid", action.EndAt) || !metav1.IsControlledBy(&told, run) ||
		!ptr.Deref(told.Immutable, false) || told.Labels[v1alpha1.LabelBenchmarkUID] == "" {
		t.Errorf("%+v", told)
	}
	if err := r.observeResults(t.Context(), &state); err != nil || !state.Phases[0].EndTold || state.Phases[0].Stored != nil {
		t.Errorf("after: %+v, %v", state.Phases[0], err)
	}
	foreign := told.DeepCopy()
	foreign.OwnerReferences, foreign.ResourceVersion = nil, ""
	foreign.Data = map[string]string{"theirs": "1"}
	server = fake.NewClientBuilder().WithScheme(scheme).WithObjects(foreign).Build()
	r.Client, r.Live, state.Phases[0] = server, server, runs.PhaseState{}
	if err := r.observeResults(t.Context(), &state); err != nil || state.Phases[0].EndTold {
		t.Errorf("another's: %+v, %v", state.Phases[0], err)
	}
	if err := r.act(t.Context(), &state, []runs.Action{action}); err != nil {
		t.Errorf("the run fails by another's: %v", err)
	}
	if err := server.Get(t.Context(), key, &told); err != nil || told.Data["theirs"] != "1" || len(told.OwnerReferences) > 0 {
		t.Errorf("another's was changed: %+v, %v", told, err)
	}
	failing := func(failure error) client.Client {
		return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{Create: func(context.Context, client.WithWatch,
			client.Object, ...client.CreateOption) error {
			return failure
		}}).Build()
	}
	r.Client = failing(apierrors.NewForbidden(corev1.Resource("configmaps"), key.Name, errors.New("exceeded quota")))
	if err := r.act(t.Context(), &state, []runs.Action{action}); err != nil {
		t.Errorf("the run fails by a quota: %v", err)
	}
	r.Client = failing(apierrors.NewInternalError(errors.New("no leader")))
	if err := r.act(t.Context(), &state, []runs.Action{action}); err == nil {
		t.Error("what passes is not tried again")
	}
}

// TestOperationWasSeen: a manager that has seen the operation beside a phase knows that it existed, even after it is gone.
func TestOperationWasSeen(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	run := testRun(corev1.PersistentVolumeFilesystem)
	run.Spec.Target.ZFS = &v1alpha1.ZFSTarget{}
	beside := *endingPhase.DeepCopy()
	beside.Measure.Operate = &v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}
	run.Spec.Phases = []v1alpha1.Phase{beside}
	operation := &v1alpha1.PoolOperation{ObjectMeta: metav1.ObjectMeta{Name: runs.CompanionName(run, beside, runs.Beside),
		Labels: map[string]string{v1alpha1.LabelRunUID: string(run.UID)}}}
	with := fake.NewClientBuilder().WithScheme(scheme).WithObjects(operation).Build()
	without := fake.NewClientBuilder().WithScheme(scheme).Build()
	r := &Reconciler{Memory: &fresh.Memory[*v1alpha1.BenchmarkRun]{}}
	r.Memory.Keep(run)
	for _, turn := range []struct {
		server client.Client
		seen   bool
	}{{without, false}, {with, true}, {without, true}} {
		r.Client, r.Live = turn.server, turn.server
		state := runs.State{Run: run, Phases: make([]runs.PhaseState, 1)}
		if err := r.observeOperations(t.Context(), &state); err != nil || state.Phases[0].BesideSeen != turn.seen ||
			(state.Phases[0].Companions[runs.Beside] != nil) != (turn.server == with) {
			t.Errorf("%+v, %v, want it seen: %t", state.Phases[0], err, turn.seen)
		}
	}
}

// TestARefusedCreate: a creation that a quota or a policy refuses is not retried as an error, because only the planner has a time limit.
func TestARefusedCreate(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		err     error
		refused bool
	}{
		"a quota":                        {apierrors.NewForbidden(corev1.Resource("configmaps"), "x", errors.New("exceeded quota")), true},
		"a policy":                       {apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "x", nil), true},
		"a webhook that denies it":       {apierrors.NewBadRequest("admission webhook \"x\" denied the request"), true},
		"a webhook that does not answer": {apierrors.NewInternalError(errors.New("failed calling webhook")), false},
		"an outage":                      {apierrors.NewServiceUnavailable("down"), false},
		"a conflict":                     {apierrors.NewConflict(corev1.Resource("configmaps"), "x", errors.New("changed")), false},
	} {
		r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return test.err }}).Build()}
		err := r.create(t.Context(), &v1alpha1.BenchmarkRun{}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
		refused, is := errors.AsType[*refusedError](fmt.Errorf("start: %w", err))
		if is != test.refused || !errors.Is(err, test.err) || is && !strings.Contains(refused.Error(), "ConfigMap x cannot be created: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
