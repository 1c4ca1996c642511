package run

import (
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/runs"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/workload"
)

// TestAgreedStartTravels: the runner gets the agreed start, the status shows it, and a single run has none.
func TestAgreedStartTravels(t *testing.T) {
	run := testRun("Filesystem")
	at := time.Date(2026, 3, 1, 12, 0, 20, 123456000, time.UTC)
	job, err := buildJob(run, run.Spec.Phases[0], runs.Pools{}, at)
	if err != nil {
		t.Fatal(err)
	}
	request, err := workload.DecodeRequest(job.Spec.Template.Spec.Containers[0].Env[0].Value)
	if err != nil || request.StartAt == nil || !request.StartAt.Equal(at) {
		t.Errorf("the request says %v, %v", request.StartAt, err)
	}
	if *job.Spec.ActiveDeadlineSeconds != 3600+60+backstopSeconds+int64(runs.StartAllowance.Seconds()) {
		t.Errorf("the Job ends after %d s", *job.Spec.ActiveDeadlineSeconds)
	}
	runs.Mark(job, at, "")
	job.UID = "job"
	state := runs.State{Now: at, Run: run, Phases: make([]runs.PhaseState, len(run.Spec.Phases))}
	state.Phases[0].Executor = runs.JobExecutor(job, "")
	lag := int64(1234)
	state.Phases[0].Stored = &runs.StoredResult{ConfigMap: "c", Digest: "sha256:1", StartLagMilliseconds: &lag}
	status := runs.Summarise(state, runs.Decision{Reason: "R", Message: "m", ReadyFor: "scan"})
	if got := status.Phases[0]; got.StartAt == nil || !got.StartAt.Time.Equal(at) || *got.StartLagMilliseconds != lag {
		t.Errorf("the status says %+v", got)
	}
	if ready := status.ReadyFor; ready == nil || ready.Phase != "scan" || !ready.Since.Time.Equal(at) {
		t.Errorf("ready for %+v", ready)
	}
	alone, err := buildJob(run, run.Spec.Phases[0], runs.Pools{}, time.Time{})
	if err != nil || len(alone.Annotations) > 0 || runs.JobExecutor(alone, "").StartAt != nil {
		t.Errorf("a run alone has agreed on %v, %v", alone.Annotations, err)
	}
}

func TestPeersAreWoken(t *testing.T) {
	run := &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "g-b"}}
	if got := peersOf(t.Context(), run); len(got) > 0 {
		t.Errorf("a run alone has peers: %v", got)
	}
	run.Spec.Group = &v1alpha1.RunGroup{Name: "g", Index: 1, Nodes: []string{"n1", "n2", "n3"}}
	if got := peersOf(t.Context(), run); len(got) != 2 || got[0].Name != "g-a" || got[1].Name != "g-c" || got[0].Namespace != "lab" {
		t.Errorf("%v", got)
	}
}
