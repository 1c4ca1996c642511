package run

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/volume"

	corev1 "k8s.io/api/core/v1"

	storagev1 "k8s.io/api/storage/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

var openEBS = volume.Drivers()[volume.ProvisionerOpenEBS]

func drivenRun() *v1alpha1.BenchmarkRun {
	run := testRun(corev1.PersistentVolumeFilesystem)
	run.Spec.Target = v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Dataset: &v1alpha1.DatasetTemplate{Provisioner: volume.ProvisionerOpenEBS}}}
	return run
}

func driverObject(kind, name, pool string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"poolName": pool}}}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: volume.DriverGroup, Version: volume.DriverVersion, Kind: kind})
	object.SetNamespace("openebs")
	object.SetName(name)
	return object
}

// drivenReconciler has a fake API server with the driver's kinds, or without.
func drivenReconciler(t *testing.T, driver bool, objects ...client.Object) *Reconciler {
	t.Helper()
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(kinds); err != nil {
			t.Fatal(err)
		}
	}
	built := fake.NewClientBuilder().WithScheme(kinds).WithIndex(&corev1.Event{}, byObject, aboutObject).WithIndex(driverObject("ZFSNode", "", ""),
		metav1.ObjectNameField, func(object client.Object) []string { return []string{object.GetName()} }).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
			options ...client.ListOption) error {
			if kind := list.GetObjectKind().GroupVersionKind(); kind.Group == volume.DriverGroup && !driver {
				return &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
			}
			return c.List(ctx, list, options...)
		}}).WithStatusSubresource(&v1alpha1.BenchmarkRun{}).WithObjects(objects...).Build()
	return &Reconciler{Client: built, Live: built}
}

// failing returns a reconciler whose API server returns an error for the driver's kinds.
func failing(t *testing.T, r *Reconciler, err error) *Reconciler {
	t.Helper()
	built, ok := r.Client.(client.WithWatch)
	if !ok {
		t.Fatalf("%T cannot be intercepted", r.Client)
	}
	wrapped := interceptor.NewClient(built, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
		options ...client.ListOption) error {
		if list.GetObjectKind().GroupVersionKind().Group == volume.DriverGroup {
			return err
		}
		return c.List(ctx, list, options...)
	}})
	return &Reconciler{Client: wrapped, Live: wrapped}
}

// TestDrivenLeftAfterTheDriver: a client that still knows the driver's kinds gets a 404 after they were removed.
func TestDrivenLeftAfterTheDriver(t *testing.T) {
	run := drivenRun()
	unknown := apierrors.NewGenericServerResponse(404, "list", schema.GroupResource{Group: volume.DriverGroup, Resource: "zfsvolumes"}, "",
		"404 page not found", 0, true)
	if left, err := failing(t, drivenReconciler(t, true), unknown).driverLeft(t.Context(), run, "data", openEBS); err != nil || left != "" {
		t.Errorf("the kinds are gone: %q, %v", left, err)
	}
	if _, err := failing(t, drivenReconciler(t, true), errors.New("no route")).driverLeft(t.Context(), run, "data", openEBS); err == nil {
		t.Error("not to be told is taken for nothing left")
	}
}

// TestDrivenLeft: the pool stays until the driver has deleted its volume, and then the StorageClass is deleted.
func TestDrivenLeft(t *testing.T) {
	run := drivenRun()
	pool := naming.RunPoolName(run, "data")
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: pool, Labels: runs.ClusterLabels(run)}}
	others := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: pool}}
	for name, test := range map[string]struct {
		driver  bool
		objects []client.Object
		want    runs.Claims
	}{
		"no such driver":  {false, nil, runs.Claims{}},
		"nothing":         {true, nil, runs.Claims{}},
		"of another pool": {true, []client.Object{driverObject("ZFSVolume", "pvc-1", pool+"x/parent")}, runs.Claims{}},
		"the driver has it": {true, []client.Object{driverObject("ZFSVolume", "pvc-1", pool+"/parent"), class},
			runs.Claims{Some: true, Deleting: true, Unwatched: "ZFSVolume openebs/pvc-1"}},
		"the class":             {true, []client.Object{class}, runs.Claims{Some: true}},
		"a class of another":    {true, []client.Object{others}, runs.Claims{}},
		"without driver, class": {false, []client.Object{class}, runs.Claims{Some: true}},
	} {
		got, err := drivenReconciler(t, test.driver, test.objects...).observeBehind(t.Context(), run, volume.RunVolumes(run)[0])
		if err != nil || got != test.want {
			t.Errorf("%s: %+v %v, want %+v", name, got, err, test.want)
		}
	}
}

// TestDrivenLeftInPages: a cluster may have thousands of volumes, and that of the run may be on the last page.
func TestDrivenLeftInPages(t *testing.T) {
	run, pages := drivenRun(), 0
	r := drivenReconciler(t, true)
	built, ok := r.Client.(client.WithWatch)
	if !ok {
		t.Fatalf("%T cannot be intercepted", r.Client)
	}
	r.Live = interceptor.NewClient(built, interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList,
		options ...client.ListOption) error {
		asked := (&client.ListOptions{}).ApplyOptions(options)
		page, is := list.(*unstructured.UnstructuredList)
		if !is || asked.Limit == 0 || asked.Continue != strings.Repeat("x", pages) {
			t.Errorf("page %d: %T is read with %+v", pages, list, asked)
		}
		if pages++; pages < 3 {
			page.Items = []unstructured.Unstructured{*driverObject("ZFSVolume", "other", "tank")}
			page.SetContinue(strings.Repeat("x", pages))
			return nil
		}
		page.Items = []unstructured.Unstructured{*driverObject("ZFSVolume", "pvc-1", naming.RunPoolName(run, "data"))}
		return nil
	}})
	if left, err := r.driverLeft(t.Context(), run, "data", openEBS); err != nil || left != "ZFSVolume openebs/pvc-1" || pages != 3 {
		t.Errorf("%q after %d pages: %v", left, pages, err)
	}
}

func TestRescan(t *testing.T) {
	run := drivenRun()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{volume.DriverNodeLabel: "id-1"}}}
	r := drivenReconciler(t, true, driverObject("ZFSNode", "id-1", ""), driverObject("ZFSNode", "id-2", ""))
	if err := r.rescan(t.Context(), run, "data", node, openEBS); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"id-1": naming.RunPoolName(run, "data"), "id-2": ""} {
		found := driverObject("ZFSNode", name, "")
		if err := r.Live.Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil ||
			found.GetAnnotations()[v1alpha1.AnnotationRescan] != want {
			t.Errorf("%s has %v, want %q: %v", name, found.GetAnnotations(), want, err)
		}
	}
	if err := drivenReconciler(t, true).rescan(t.Context(), run, "data", node, openEBS); err == nil ||
		!strings.Contains(err.Error(), "ZFSNode id-1 does not exist") {
		t.Errorf("without a ZFSNode: %v", err)
	}
	if err := drivenReconciler(t, false).rescan(t.Context(), run, "data", node, openEBS); err == nil {
		t.Error("without the driver nothing is said")
	}
}

// TestReportDatasets: only the run's own pool gets the annotation.
func TestReportDatasets(t *testing.T) {
	run := drivenRun()
	name := naming.RunPoolName(run, "data")
	state := &runs.State{Run: run, Pools: runs.Pools{Unasked: map[string]v1alpha1.DatasetPath{"data": "parent/pvc-1"}}}
	for _, test := range []struct {
		labels map[string]string
		want   string
	}{{runs.ClusterLabels(run), "parent/pvc-1"}, {nil, ""}} {
		pool := &v1alpha1.BenchmarkPool{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: test.labels}}
		r := drivenReconciler(t, true, pool)
		for range 2 {
			if err := r.reportDatasets(t.Context(), state); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Live.Get(t.Context(), client.ObjectKeyFromObject(pool), pool); err != nil ||
			pool.Annotations[v1alpha1.AnnotationReport] != test.want {
			t.Errorf("labels %v: annotations %v %v", test.labels, pool.Annotations, err)
		}
	}
}

// TestDrivenPromise: the runner is promised the dataset that the driver has created.
func TestDrivenPromise(t *testing.T) {
	run := drivenRun()
	dataset := naming.RunPoolName(run, "data") + "/parent/pvc-1"
	if got, err := runs.Request(run, run.Spec.Phases[0], runs.Pools{Datasets: map[string]string{"data": dataset}}); err != nil || got.Source != dataset {
		t.Errorf("promised is %q: %v", got.Source, err)
	}
}
