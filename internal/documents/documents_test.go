package documents

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
