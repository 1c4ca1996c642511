package metrics

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// source computes metrics from the caches of a program. It shows nothing until the caches are complete. A manager that waits to become the
// leader has no caches and shows nothing: if two managers showed the same objects, these would be counted twice.
type source struct {
	cache   cache.Informers
	reader  client.Reader
	watched map[client.Object]toolscache.ResourceEventHandlerFuncs
	parts   []func(out chan<- prometheus.Metric) error
	ready   atomic.Bool
}

// Start registers for changes, and then lets scrapes read the caches.
func (s *source) Start(ctx context.Context) error {
	for kind, follow := range s.watched {
		informer, err := s.cache.GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("watch %T for the metrics: %w", kind, err)
		}
		// A kind that is only read needs no event handler. It would cost two goroutines and a queue of all changes.
		if follow.UpdateFunc == nil {
			continue
		}
		if _, err := informer.AddEventHandler(follow); err != nil {
			return fmt.Errorf("follow %T for the metrics: %w", kind, err)
		}
	}
	s.ready.Store(true)
	<-ctx.Done()
	return nil
}

// Describe sends no descriptions, because the series depend on the objects.
func (s *source) Describe(chan<- *prometheus.Desc) {}

// Collect computes the metrics of a scrape.
func (s *source) Collect(out chan<- prometheus.Metric) {
	if !s.ready.Load() {
		return
	}
	for _, part := range s.parts {
		if err := part(out); err != nil {
			out <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
		}
	}
}

// list reads from the cache without a deep copy: nothing here may change the objects.
func (s *source) list(into client.ObjectList) error {
	if err := s.reader.List(context.Background(), into, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list %T from the cache: %w", into, err)
	}
	return nil
}

// updates calls a function for each update of an object. Objects that already exist at the start do not count.
func updates[T client.Object](do func(before, after T)) toolscache.ResourceEventHandlerFuncs {
	return toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		old, is := before.(T)
		changed, are := after.(T)
		if is && are && old.GetUID() == changed.GetUID() {
			do(old, changed)
		}
	}}
}
