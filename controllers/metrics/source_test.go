package metrics

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// informers remembers which kinds are requested and followed.
type informers struct {
	cache.Informers
	asked, followed []string
}

func (i *informers) GetInformer(_ context.Context, kind client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	name := reflect.TypeOf(kind).Elem().Name()
	i.asked = append(i.asked, name)
	return informer{follow: func() { i.followed = append(i.followed, name) }}, nil
}

type informer struct {
	cache.Informer
	follow func()
}

func (i informer) AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.follow()
	return nil, nil
}

// TestOnlyWhatIsCountedIsFollowed: kinds that a scrape reads have a cache, and kinds whose changes are counted also have an event handler.
func TestOnlyWhatIsCountedIsFollowed(t *testing.T) {
	caches := &informers{}
	from := &source{cache: caches, watched: map[client.Object]toolscache.ResourceEventHandlerFuncs{
		&v1alpha1.BenchmarkPool{}: {}, &v1alpha1.BenchmarkRun{}: updates(func(_, _ *v1alpha1.BenchmarkRun) {})}}
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := from.Start(ctx); err != nil || !from.ready.Load() {
		t.Fatalf("ready %t: %v", from.ready.Load(), err)
	}
	slices.Sort(caches.asked)
	if diff := cmp.Diff([]string{"BenchmarkPool", "BenchmarkRun"}, caches.asked); diff != "" {
		t.Errorf("caches (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"BenchmarkRun"}, caches.followed); diff != "" {
		t.Errorf("followed (-want +got):\n%s", diff)
	}
}
