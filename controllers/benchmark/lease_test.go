package benchmark

import (
	"context"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/storagebench/storagebench/internal/naming"
)

// TestDeleteLease: only the Lease of the given holder is deleted, whatever an old cache shows.
func TestDeleteLease(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	held := func(version, holder string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "leases", Name: naming.LeaseName("n1"), UID: "u",
			ResourceVersion: version}, Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(holder)}}
	}
	server := func(leases ...client.Object) client.WithWatch {
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(leases...).Build()
	}
	for name, test := range map[string]struct {
		cached, live []client.Object
		left         int
		reads        int
	}{
		"the cache is up to date":              {[]client.Object{held("7", "own")}, []client.Object{held("7", "own")}, 0, 0},
		"the cache is old":                     {[]client.Object{held("6", "own")}, []client.Object{held("7", "own")}, 0, 1},
		"the cache does not show it":           {nil, []client.Object{held("7", "own")}, 0, 1},
		"another has it":                       {[]client.Object{held("7", "other")}, []client.Object{held("7", "other")}, 1, 1},
		"another has it, which was not seen":   {[]client.Object{held("6", "own")}, []client.Object{held("7", "other")}, 1, 1},
		"another had it, which the cache says": {[]client.Object{held("6", "other")}, []client.Object{held("7", "own")}, 0, 1},
		"it is gone":                           {nil, nil, 0, 1},
		"it is gone, which was not seen":       {[]client.Object{held("6", "own")}, nil, 0, 0},
	} {
		live, cached, reads := server(test.live...), server(test.cached...), 0
		r := &Reconciler{LeaseNamespace: "leases",
			Client: interceptor.NewClient(live, interceptor.Funcs{Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey,
				object client.Object, options ...client.GetOption) error {
				return cached.Get(ctx, key, object, options...)
			}}),
			Live: interceptor.NewClient(live, interceptor.Funcs{Get: func(ctx context.Context, server client.WithWatch, key client.ObjectKey,
				object client.Object, options ...client.GetOption) error {
				reads++
				return server.Get(ctx, key, object, options...)
			}})}
		if err := r.deleteLease(t.Context(), "n1", "own"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var left coordinationv1.LeaseList
		if err := live.List(t.Context(), &left); err != nil || len(left.Items) != test.left || reads != test.reads {
			t.Errorf("%s: %d Leases are left after %d live reads, want %d after %d (%v)", name, len(left.Items), reads, test.left, test.reads, err)
		}
	}
}
