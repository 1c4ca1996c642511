//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/packing"
	"github.com/storagebench/storagebench/internal/results"
)

// kinds is the number of different documents. Each run has one of them, so that equal figures repeat, but not within a pair.
const kinds = 64

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// store answers reads with one of a few documents, so that the bench measures the reader and not the store.
type store struct {
	client.Reader
	documents [kinds]corev1.ConfigMap
	digests   [kinds]string
	kindOf    map[string]int
}

// Get copies a document, as a client does when it decodes a response.
func (s *store) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	s.documents[s.kindOf[key.Name]].DeepCopyInto(object.(*corev1.ConfigMap))
	object.SetName(key.Name)
	return nil
}

// newStore makes documents as the runner does: about 40 metrics, 60 facts about the environment, latencies, samples and a report of fio.
func newStore() (*store, error) {
	s := &store{kindOf: map[string]int{}}
	for kind := range kinds {
		text, err := json.Marshal(document(kind))
		if err != nil {
			return nil, err
		}
		s.digests[kind] = packing.Digest(text)
		binary, data, _, err := results.StoredPhase(text, s.digests[kind])
		if err != nil {
			return nil, err
		}
		s.documents[kind] = corev1.ConfigMap{Data: data, BinaryData: binary}
	}
	return s, nil
}

func document(kind int) results.PhaseDocument {
	random := rand.New(rand.NewPCG(uint64(kind), 10))
	metrics := map[string]int64{}
	for _, metric := range results.Metrics()[:40] {
		metrics[metric.Name] = int64(1e6 * math.Exp(0.02*random.NormFloat64()))
	}
	metrics["readBytesPerSecond"] = int64(1e9 * math.Exp(0.02*random.NormFloat64()))
	metrics["readLatencyP99Nanoseconds"] = int64(8e5 * math.Exp(0.05*random.NormFloat64()))
	environment := map[string]string{}
	for i := range 60 {
		environment[fmt.Sprintf("host.setting%02d", i)] = "the same value on every run"
	}
	raw, err := json.Marshal(details(random))
	if err != nil {
		panic(err) // there are only numbers in it
	}
	return results.PhaseDocument{Version: results.PhaseVersion, Run: results.RunIdentity{Namespace: "bench", Name: "run", UID: "uid"},
		Phase: "read", Kind: results.KindMeasure, Outcome: results.OutcomeValid, StartedAt: began, FinishedAt: began.Add(time.Minute),
		Metrics: metrics, Distributions: map[string]results.Distribution{"readLatency": distribution(random)}, Seeds: []int64{1, 2, 3},
		Environment: environment, Raw: raw}
}

// distribution returns about as many bins as fio fills.
func distribution(random *rand.Rand) results.Distribution {
	d := results.Distribution{Unit: results.UnitNanoseconds}
	for i := range 400 {
		from := int64(1e5 * math.Exp(float64(i)/64))
		d.Add(from, from+from/64, 1+random.Int64N(10_000))
	}
	return d
}

// details returns details in the form of those of the workloads.
func details(random *rand.Rand) map[string]any {
	var bins []fio.Bin
	var samples []fio.Sample
	for i := range 500 {
		bins = append(bins, fio.Bin{Nanoseconds: int64(1e5 * math.Exp(float64(i)/100)), Count: 1 + random.Int64N(10_000)})
	}
	for i := range 2000 {
		samples = append(samples, fio.Sample{Milliseconds: int64(30 * i), Nanoseconds: int64(8e5 * math.Exp(0.5*random.NormFloat64()))})
	}
	return map[string]any{"latencies": map[string]any{"read": bins}, "samples": samples, "samplesSeen": 2_000_000,
		"fio": []any{map[string]any{"jobs": []any{bins}}}}
}

// repetitions of each variant. Gates compare at most a few hundred pairs.
const repetitions = 250

// variants returns as many names as the number of runs needs.
func variants(runs int) []string {
	names := []string{"old"}
	for len(names) < runs/repetitions {
		names = append(names, fmt.Sprintf("new-%02d", len(names)))
	}
	return names
}

// runs returns runs of equal variants, interleaved.
func (s *store) runs(count int) []v1alpha1.BenchmarkRun {
	made, names := make([]v1alpha1.BenchmarkRun, count), variants(count)
	for i := range made {
		run := &made[i]
		run.Name, run.Namespace, run.UID = fmt.Sprintf("bench-0123abcd-%05d", i), "bench", "uid"
		run.CreationTimestamp = metav1.Time{Time: began.Add(time.Duration(i) * time.Minute)}
		run.Spec.Index, run.Spec.Variant, run.Spec.Repetition, run.Spec.Attempt = int32(i), names[i%len(names)], int32(i/len(names)+1), 1
		run.Spec.NodeName, run.Spec.Experiment, run.Spec.Seed = "node-a", "0123abcd", int64(i/len(names))
		run.Spec.Target.StorageClass = &v1alpha1.StorageClassTarget{Name: "fast"}
		meta.SetStatusCondition(&run.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: "Valid"})
		meta.SetStatusCondition(&run.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionValid, Status: metav1.ConditionTrue, Reason: "Valid"})
		name, kind := run.Name+"-read", (i*37+i/kinds)%kinds
		s.kindOf[name] = kind
		run.Status.Phases = []v1alpha1.RunPhaseStatus{{Name: "read", Result: name, Digest: s.digests[kind]}}
	}
	return made
}
