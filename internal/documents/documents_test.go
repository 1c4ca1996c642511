package documents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/internal/packing"
	"github.com/storagebench/storagebench/internal/results"
)

// server answers reads with a function.
type server struct {
	client.Reader
	get func(ctx context.Context, name string) error
}

func (s server) Get(ctx context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.SetName(key.Name)
	return s.get(ctx, key.Name)
}

func some(count int) (names []string) {
	for i := range count {
		names = append(names, fmt.Sprintf("document-%04d", i))
	}
	return names
}

// TestEachReadsTogether: the reads wait for each other until as many as allowed are in progress. Sequential reads would never finish.
func TestEachReadsTogether(t *testing.T) {
	var meet sync.WaitGroup
	meet.Add(parallel)
	var started, underway, most atomic.Int32
	var mutex sync.Mutex
	visited := map[string]bool{}
	err := Each(t.Context(), server{get: func(_ context.Context, name string) error {
		now := underway.Add(1)
		defer underway.Add(-1)
		for before := most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
		}
		if started.Add(1) <= parallel {
			meet.Done()
			meet.Wait()
		}
		if name == "document-0007" {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
		}
		return nil
	}}, "tests", some(100), func(stored *corev1.ConfigMap) {
		mutex.Lock()
		defer mutex.Unlock()
		visited[stored.Name] = true
	})
	if err != nil || len(visited) != 99 || visited["document-0007"] || most.Load() != parallel {
		t.Errorf("error %v, %d visited, %d at once: want 99, without the missing one, and %d at once", err, len(visited), most.Load(), parallel)
	}
}

// TestEachStops: Each stops at the first error, and when its context ends.
func TestEachStops(t *testing.T) {
	var reads atomic.Int32
	broken := errors.New("the API server is away")
	err := Each(t.Context(), server{get: func(context.Context, string) error { reads.Add(1); return broken }}, "tests", some(1000),
		func(*corev1.ConfigMap) { t.Error("visited") })
	if !errors.Is(err, broken) || reads.Load() > 4*parallel {
		t.Errorf("%v after %d reads", err, reads.Load())
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, broken)
	defer cancel()
	if err := Each(ctx, server{get: func(ctx context.Context, _ string) error { <-ctx.Done(); return context.Cause(ctx) }}, "tests", some(10),
		func(*corev1.ConfigMap) {}); !errors.Is(err, broken) {
		t.Errorf("%v, want the cause", err)
	}
}

// shelf has the same document under every name.
type shelf struct {
	client.Reader
	stored *corev1.ConfigMap
}

func (s shelf) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	s.stored.DeepCopyInto(object.(*corev1.ConfigMap))
	object.SetName(key.Name)
	return nil
}

// TestMemoryIsShared: documents for which there is no memory are refused, and other experiments wait until the memory is free.
func TestMemoryIsShared(t *testing.T) {
	defer func(most int64, left *semaphore.Weighted) { mostBytes, memory = most, left }(mostBytes, memory)
	mostBytes, memory = 8<<10, semaphore.NewWeighted(8<<10)
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	text, err := json.Marshal(results.PhaseDocument{Version: results.PhaseVersion, Run: results.RunIdentity{Namespace: "tests", Name: "r", UID: "u"},
		Phase: "read", Kind: results.KindMeasure, Outcome: results.OutcomeValid, StartedAt: began, FinishedAt: began,
		Metrics: map[string]int64{"readBytes": 1}})
	if err != nil {
		t.Fatal(err)
	}
	binary, data, _, err := results.StoredPhase(text, packing.Digest(text))
	if err != nil {
		t.Fatal(err)
	}
	reader, digests := shelf{stored: &corev1.ConfigMap{Data: data, BinaryData: binary}}, map[string]string{}
	for _, name := range some(100) {
		digests[name] = data[results.KeyDigest]
	}
	load := func(ctx context.Context) (Loaded, error) {
		return Phases(ctx, reader, "tests", digests, nil, func() {})
	}
	first, err := load(t.Context())
	if count := len(first.Phases); err != nil || count == 0 || count > 10 || first.Refused != 100-count {
		t.Fatalf("%d documents and %d refused, error %v", count, first.Refused, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := load(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want it to wait for the memory of the first", err)
	}
	first.Free()
	second, err := load(t.Context())
	if err != nil || len(second.Phases) == 0 {
		t.Errorf("%d documents, error %v", len(second.Phases), err)
	}
	second.Free()
}

// TestTurns: a few goroutines have a turn at the same time, and the others wait.
func TestTurns(t *testing.T) {
	turns := make([]Turn, cap(decoding))
	for i := range turns {
		for range 2 { // the second time does nothing
			if err := turns[i].Take(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	var late Turn
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := late.Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the end of the context", err)
	}
	late.End() // it has no turn
	for i := range turns {
		turns[i].End()
	}
	if err := late.Take(t.Context()); err != nil || len(decoding) != 1 {
		t.Errorf("error %v, %d turns", err, len(decoding))
	}
	late.End()
}
