package benchmark

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/packing"
	"github.com/storagebench/storagebench/internal/results"
)

// slowServer takes its time for each document.
type slowServer struct {
	client.Reader
	stored map[string]*corev1.ConfigMap
	takes  time.Duration
}

func (s slowServer) Get(ctx context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	timer := time.NewTimer(s.takes)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
	}
	stored, found := s.stored[key.Name]
	if !found {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	stored.DeepCopyInto(object.(*corev1.ConfigMap))
	return nil
}

// storedRuns are runs of one phase each, with their documents.
func storedRuns(t *testing.T, count int) (runs []v1alpha1.BenchmarkRun, stored map[string]*corev1.ConfigMap) {
	t.Helper()
	stored = map[string]*corev1.ConfigMap{}
	for i := range count {
		name := fmt.Sprintf("run-%d", i)
		began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		text, err := json.Marshal(results.PhaseDocument{Version: results.PhaseVersion,
			Run: results.RunIdentity{Namespace: "tests", Name: name, UID: name}, Phase: "read", Kind: results.KindMeasure,
			Outcome: results.OutcomeValid, StartedAt: began, FinishedAt: began, Metrics: map[string]int64{"readBytes": int64(i)}})
		if err != nil {
			t.Fatal(err)
		}
		binary, data, _, err := results.StoredPhase(text, packing.Digest(text))
		if err != nil {
			t.Fatal(err)
		}
		stored[name] = &corev1.ConfigMap{Data: data, BinaryData: binary}
		stored[name].Name = name
		run := v1alpha1.BenchmarkRun{}
		run.Name, run.Namespace = name, "tests"
		run.Status.Phases = []v1alpha1.RunPhaseStatus{{Name: "read", Result: name, Digest: packing.Digest(text)}, {Name: "pending"}}
		runs = append(runs, run)
	}
	return runs, stored
}

// TestManyDocumentsTakeLongerThanATurn: a slow API server delays the results of a large experiment, but does not prevent them.
func TestManyDocumentsTakeLongerThanATurn(t *testing.T) {
	runs, stored := storedRuns(t, 300)
	delete(stored, "run-7")
	stored["run-8"].Data[results.KeyDigest] = packing.Digest([]byte("edited"))
	stored["run-9"].BinaryData = nil
	stored["run-10"].Data, stored["run-10"].BinaryData = stored["run-11"].Data, stored["run-11"].BinaryData
	synctest.Test(t, func(t *testing.T) {
		ctx, end := patiently(t.Context())
		defer end()
		began := time.Now()
		loaded, err := (&Reconciler{Documents: slowServer{stored: stored, takes: 30 * time.Second}}).loadDocuments(ctx, runs, nil)
		if err != nil || len(loaded.Phases) != 296 || loaded.Phases["run-299"].Metrics["readBytes"] != 299 || loaded.Refused != 0 {
			t.Errorf("%d documents, error %v: want 296, without the missing, the edited, the emptied and the replaced one", len(loaded.Phases), err)
		}
		loaded.Free()
		if took := time.Since(began); took < 5*turnPatience {
			t.Errorf("it took %s, which a fixed deadline would allow too", took)
		}
	})
}

// TestATurnWithoutProgressEnds: an API server that does not answer does not keep a worker for ever.
func TestATurnWithoutProgressEnds(t *testing.T) {
	runs, stored := storedRuns(t, 20)
	synctest.Test(t, func(t *testing.T) {
		ctx, end := patiently(t.Context())
		defer end()
		began := time.Now()
		_, err := (&Reconciler{Documents: slowServer{stored: stored, takes: time.Hour}}).loadDocuments(ctx, runs, nil)
		if !errors.Is(err, errTurnStuck) || time.Since(began) != turnPatience {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}
