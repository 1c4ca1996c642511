package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/benchmark"
	"github.com/storagebench/storagebench/controllers/line"
	"github.com/storagebench/storagebench/controllers/trim"
	planner "github.com/storagebench/storagebench/internal/experiment"
)

// view is a cache like that of a manager: it has the objects of each kind as they were at some moment. With a lag, each kind is behind by
// its own number of refreshes. This number changes all the time, but a kind never goes back in time.
type view struct {
	live      client.Client
	namespace string
	node      string
	lag       int
	random    *rand.Rand
	kinds     map[reflect.Type]*kindView
}

type kindView struct {
	list      client.ObjectList
	snapshots [][]client.Object
	at        int
	// touched is set when objects of the kind may have been written since the last snapshot.
	touched bool
}

func newView(live client.Client, namespace, node string, lag int, seed uint64) *view {
	v := &view{live: live, namespace: namespace, node: node, lag: lag, random: rand.New(rand.NewPCG(seed, 1)),
		kinds: map[reflect.Type]*kindView{}}
	for _, listType := range listTypes {
		list := reflect.New(listType.Elem()).Interface().(client.ObjectList)
		v.kinds[listType] = &kindView{list: list, at: -1, touched: true}
	}
	return v
}

// refresh takes a new snapshot of every kind and moves on to one that is not too old. It reports whether any kind is still behind.
func (v *view) refresh(ctx context.Context) (behind bool, err error) {
	for _, kind := range v.kinds {
		if kind.touched {
			snapshot, err := v.snapshot(ctx, kind)
			if err != nil {
				return false, err
			}
			kind.snapshots, kind.touched = append(kind.snapshots, snapshot), false
		} else {
			kind.at++ // when nothing happens, caches catch up
		}
		newest := len(kind.snapshots) - 1
		oldest := newest
		if newest > 0 { // a cache that has just been filled is up to date
			oldest -= v.random.IntN(v.lag + 1)
		}
		kind.at = min(max(oldest, kind.at), newest)
		behind = behind || kind.at < newest
	}
	return behind, nil
}

func (v *view) snapshot(ctx context.Context, kind *kindView) ([]client.Object, error) {
	list := kind.list.DeepCopyObject().(client.ObjectList)
	if err := v.live.List(ctx, list, belonging(v.namespace, list)); err != nil {
		return nil, err
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	snapshot := make([]client.Object, len(objects))
	for i := range objects {
		snapshot[i] = objects[i].(client.Object)
		if run, is := objects[i].(*v1alpha1.BenchmarkRun); is { // as controllers.Cache does
			if _, err := trim.Run(run); err != nil {
				return nil, err
			}
		}
	}
	return snapshot, nil
}

// belonging selects the objects of a machine: those in its namespace, or those with its label if their kind has no namespaces.
func belonging(namespace string, list client.ObjectList) client.ListOption {
	switch list.(type) {
	case *corev1.PersistentVolumeList, *v1alpha1.BenchmarkPoolList, *v1alpha1.PoolOperationList:
		return client.MatchingLabels{v1alpha1.LabelNamespace: namespace}
	}
	return client.InNamespace(namespace)
}

// touch records that objects of the given kinds, or of all kinds if none is given, may have been written.
func (v *view) touch(lists ...reflect.Type) {
	for listType, kind := range v.kinds {
		if len(lists) == 0 || slices.Contains(lists, listType) {
			kind.touched = true
		}
	}
}

// shown returns a string that identifies the state that the view shows of some kinds.
func (v *view) shown(lists []reflect.Type) string {
	var text strings.Builder
	for _, list := range lists {
		for _, object := range v.kinds[list].snapshots[v.kinds[list].at] {
			fmt.Fprintf(&text, "%s %s,", object.GetUID(), object.GetResourceVersion())
		}
		text.WriteString(";")
	}
	return text.String()
}

// line returns the queues as these caches show them.
func (v *view) line() *line.Index {
	x := line.New(planner.Limits{})
	benchmarks, _ := v.objects(reflect.TypeFor[*v1alpha1.StorageBenchmarkList]())
	for _, object := range benchmarks {
		x.Put(benchmark.EntryOf(object.(*v1alpha1.StorageBenchmark), planner.Limits{}))
	}
	leases, _ := v.objects(reflect.TypeFor[*coordinationv1.LeaseList]())
	for _, object := range leases {
		x.PutLease(*benchmark.LeaseState(object.(*coordinationv1.Lease)))
	}
	return x
}

// newest returns the current objects of a kind, whatever the lag.
func (v *view) newest(list reflect.Type) []client.Object {
	snapshots := v.kinds[list].snapshots
	return snapshots[len(snapshots)-1]
}

func (v *view) objects(list reflect.Type) ([]client.Object, bool) {
	kind, known := v.kinds[list]
	if !known || kind.at < 0 {
		return nil, known
	}
	return kind.snapshots[kind.at], true
}

// listTypes maps the type of an object to its list type. A view shows only these lists.
var listTypes = map[reflect.Type]reflect.Type{
	reflect.TypeFor[*v1alpha1.StorageBenchmark]():        reflect.TypeFor[*v1alpha1.StorageBenchmarkList](),
	reflect.TypeFor[*v1alpha1.BenchmarkRun]():            reflect.TypeFor[*v1alpha1.BenchmarkRunList](),
	reflect.TypeFor[*batchv1.Job]():                      reflect.TypeFor[*batchv1.JobList](),
	reflect.TypeFor[*corev1.Pod]():                       reflect.TypeFor[*corev1.PodList](),
	reflect.TypeFor[*corev1.PersistentVolumeClaim]():     reflect.TypeFor[*corev1.PersistentVolumeClaimList](),
	reflect.TypeFor[*corev1.PersistentVolume]():          reflect.TypeFor[*corev1.PersistentVolumeList](),
	reflect.TypeFor[*v1alpha1.BenchmarkPool]():           reflect.TypeFor[*v1alpha1.BenchmarkPoolList](),
	reflect.TypeFor[*v1alpha1.PoolOperation]():           reflect.TypeFor[*v1alpha1.PoolOperationList](),
	reflect.TypeFor[*corev1.Event]():                     reflect.TypeFor[*corev1.EventList](),
	reflect.TypeFor[*coordinationv1.Lease]():             reflect.TypeFor[*coordinationv1.LeaseList](),
	reflect.TypeFor[*corev1.ConfigMap]():                 reflect.TypeFor[*corev1.ConfigMapList](),
	reflect.TypeFor[*metav1.PartialObjectMetadata]():     reflect.TypeFor[*corev1.ConfigMapList](),
	reflect.TypeFor[*metav1.PartialObjectMetadataList](): reflect.TypeFor[*corev1.ConfigMapList](),
}

// Get reads from the view. Kinds that do not change in these tests come from the API server.
func (v *view) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into.(type) {
	case *corev1.Node, *storagev1.CSIDriver, *storagev1.StorageClass:
		return v.live.Get(ctx, key, into)
	}
	objects, known := v.objects(listTypes[reflect.TypeOf(into)])
	if !known {
		return fmt.Errorf("the view has no %T", into)
	}
	for _, object := range objects {
		if client.ObjectKeyFromObject(object) != key {
			continue
		}
		if metadata, is := into.(*metav1.PartialObjectMetadata); is {
			meta.AsPartialObjectMetadata(object).DeepCopyInto(metadata)
			return nil
		}
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(object.DeepCopyObject()).Elem())
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", into)}, key.Name)
}

// List reads from the view. Kinds that do not change in these tests (classes, this test's node) come from the API server.
func (v *view) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	switch list := into.(type) {
	case *storagev1.StorageClassList:
		return v.live.List(ctx, into)
	case *corev1.NodeList:
		var node corev1.Node
		if err := v.live.Get(ctx, client.ObjectKey{Name: v.node}, &node); err != nil {
			return err
		}
		list.Items = []corev1.Node{node}
		return nil
	}
	listType := reflect.TypeOf(into)
	if mapped, found := listTypes[listType]; found {
		listType = mapped
	}
	objects, known := v.objects(listType)
	if !known {
		return fmt.Errorf("the view has no %T", into)
	}
	var settings client.ListOptions
	settings.ApplyOptions(options)
	var chosen []runtime.Object
	for _, object := range objects {
		if settings.LabelSelector != nil && !settings.LabelSelector.Matches(labels.Set(object.GetLabels())) {
			continue
		}
		if _, metadata := into.(*metav1.PartialObjectMetadataList); metadata {
			chosen = append(chosen, meta.AsPartialObjectMetadata(object))
			continue
		}
		chosen = append(chosen, object.DeepCopyObject())
	}
	return meta.SetList(into, chosen)
}
