package run

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/runs"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/workload"
)

var (
	fromConfigMap = &v1alpha1.ConfigMapKey{Name: "jobs", Key: "mixed.fio"}
	fioPhase      = v1alpha1.Phase{Name: "fio",
		Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{JobFileFrom: fromConfigMap}}}}
	postgresPhase = v1alpha1.Phase{Name: "pg", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{
		Postgres: &v1alpha1.PostgresWorkload{Mode: "Script", Script: fromConfigMap}}}}
)

func TestPodHasTheFile(t *testing.T) {
	for _, phase := range []v1alpha1.Phase{fioPhase, postgresPhase} {
		pod := podSpec(testRun(corev1.PersistentVolumeFilesystem), phase, "")
		for _, wrong := range restricted(pod) {
			t.Errorf("%s: %s", phase.Name, wrong)
		}
		mount := pod.Containers[0].VolumeMounts[len(pod.Containers[0].VolumeMounts)-1]
		volume := pod.Volumes[len(pod.Volumes)-1]
		if mount.MountPath != workload.FilesPath || !mount.ReadOnly || mount.Name != volume.Name || mount.SubPath != "" {
			t.Errorf("%s: mount %+v", phase.Name, mount)
		}
		source := volume.ConfigMap
		if source == nil || source.Name != "jobs" || len(source.Items) != 1 || source.Items[0].Key != "mixed.fio" ||
			workload.FilesPath+"/"+source.Items[0].Path != workload.PhaseFile || *source.DefaultMode != 0o444 || source.Optional != nil {
			t.Errorf("%s: volume %+v", phase.Name, volume)
		}
	}
}

func TestPodWithoutAFile(t *testing.T) {
	for name, phase := range map[string]v1alpha1.Phase{
		"fill":     {Fill: &v1alpha1.FillPhase{To: "80%"}},
		"inline":   {Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{JobFile: "[a]"}}}},
		"postgres": {Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Postgres: &v1alpha1.PostgresWorkload{Mode: "TPCBLike"}}}},
		"oltp":     {Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{}}}},
	} {
		for _, volume := range podSpec(testRun(corev1.PersistentVolumeFilesystem), phase, "").Volumes {
			if volume.ConfigMap != nil {
				t.Errorf("%s: a ConfigMap is mounted: %+v", name, volume)
			}
		}
	}
}

// oneConfigMap is an API server with one ConfigMap, or with trouble.
type oneConfigMap struct {
	client.Reader
	found *corev1.ConfigMap
	err   error
	asked int
}

func (o *oneConfigMap) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	o.asked++
	if o.err != nil {
		return o.err
	}
	if o.found == nil || key.Name != o.found.Name || key.Namespace != "lab" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	o.found.DeepCopyInto(object.(*corev1.ConfigMap))
	return nil
}

func TestObserveFile(t *testing.T) {
	configMap := func(data map[string]string, binary map[string][]byte) *corev1.ConfigMap {
		one := &corev1.ConfigMap{Data: data, BinaryData: binary}
		one.Name = "jobs"
		return one
	}
	now := time.Now()
	waiting := runs.PhaseState{Executor: runs.ExecutorState{Exists: true}, Pod: runs.PodState{Exists: true}}
	running := runs.PhaseState{Executor: runs.ExecutorState{Exists: true}, Pod: runs.PodState{Exists: true, Started: &now}}
	refused := errors.New("refused")
	for _, test := range []struct {
		name  string
		phase runs.PhaseState
		live  oneConfigMap
		says  string
		asked int
		err   error
	}{
		{name: "there", phase: waiting, live: oneConfigMap{found: configMap(map[string]string{"mixed.fio": ""}, nil)}, asked: 1},
		{name: "there, binary", phase: waiting, live: oneConfigMap{found: configMap(nil, map[string][]byte{"mixed.fio": {}})}, asked: 1},
		{name: "no ConfigMap", phase: waiting, says: "ConfigMap jobs, used by the phase, does not exist: create it with the key mixed.fio",
			asked: 1},
		{name: "no key", phase: waiting, live: oneConfigMap{found: configMap(map[string]string{"other": ""}, nil)},
			says: "ConfigMap jobs has no key mixed.fio", asked: 1},
		{name: "trouble", phase: waiting, live: oneConfigMap{err: refused}, asked: 1, err: refused},
		{name: "no Job yet", live: oneConfigMap{err: refused}},
		{name: "the phase runs", phase: running, live: oneConfigMap{err: refused}},
		{name: "the phase has ended", phase: runs.PhaseState{Executor: runs.ExecutorState{Exists: true}, Pod: runs.PodState{Ended: &now}},
			live: oneConfigMap{err: refused}},
		{name: "the result is stored", phase: runs.PhaseState{Executor: runs.ExecutorState{Exists: true}, Stored: &runs.StoredResult{}},
			live: oneConfigMap{err: refused}},
	} {
		run := testRun(corev1.PersistentVolumeFilesystem)
		run.Spec.Phases = []v1alpha1.Phase{run.Spec.Phases[0], fioPhase}
		state := runs.State{Run: run, Phases: []runs.PhaseState{waiting, test.phase}}
		err := (&Reconciler{Live: &test.live}).observeFile(t.Context(), &state)
		if !errors.Is(err, test.err) || test.live.asked != test.asked {
			t.Errorf("%s: %v, the API server was asked %d times", test.name, err, test.live.asked)
		}
		if said := state.Phases[1].FileProblem; (said == "") != (test.says == "") || !strings.Contains(said, test.says) ||
			state.Phases[0].FileProblem != "" {
			t.Errorf("%s: %q, and of a phase without a file %q", test.name, said, state.Phases[0].FileProblem)
		}
	}
}
