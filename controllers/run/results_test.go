package run

import (
	"context"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/fresh"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/runs"
)

var someDigest = "sha256:" + strings.Repeat("0a", 32)

// TestStoredResult: a result whose annotations the manager would not write is corrupt, and none of them gets into the status.
func TestStoredResult(t *testing.T) {
	for name, test := range map[string]struct {
		change map[string]string
		sound  bool
		lag    int64
	}{
		"as it is written": {nil, true, -1},
		"started late":     {map[string]string{annotationStartLag: "1234"}, true, 1234},
		"started in time":  {map[string]string{annotationStartLag: "0"}, true, 0},
		"no digest":        {map[string]string{annotationDigest: ""}, false, -1},
		"a long digest":    {map[string]string{annotationDigest: strings.Repeat("0", 81)}, false, -1},
		"a longer digest":  {map[string]string{annotationDigest: someDigest + "0"}, false, -1},
		"two lines":        {map[string]string{annotationDigest: someDigest + "\n"}, false, -1},
		"capital letters":  {map[string]string{annotationDigest: strings.ToUpper(someDigest)}, false, -1},
		"a negative lag":   {map[string]string{annotationStartLag: "-1"}, false, -1},
		"a huge lag":       {map[string]string{annotationStartLag: "9223372036854775807"}, false, -1},
		"a larger lag":     {map[string]string{annotationStartLag: "9223372036854775808"}, false, -1},
		"no number":        {map[string]string{annotationStartLag: "late"}, false, -1},
	} {
		item := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "b-000-fill", Annotations: map[string]string{
			annotationDigest: someDigest, annotationOutcome: "Valid", annotationReason: "R", annotationMessage: "m"}}}
		maps.Copy(item.Annotations, test.change)
		got := storedResult(item)
		lag := int64(-1)
		if got.StartLagMilliseconds != nil {
			lag = *got.StartLagMilliseconds
		}
		want := runs.StoredResult{ConfigMap: "b-000-fill", Digest: someDigest, Outcome: results.OutcomeValid, Reason: "R", Message: "m"}
		if !test.sound {
			want.Digest, want.Outcome, want.Reason, want.Message = "", results.OutcomeInvalid, v1alpha1.ReasonResultCorrupt, got.Message
		}
		if got.StartLagMilliseconds = nil; *got != want || lag != test.lag || got.Message == "" {
			t.Errorf("%s: %+v, %d ms late", name, got, lag)
		}
	}
}

// TestStoredResultIsSeen: a result that an earlier turn has stored is seen although the cache lags, so its log is not read again. Only in
// this case the API server is asked, and its answer decides.
func TestStoredResultIsSeen(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	one := &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "b-000", UID: "u"},
		Spec: v1alpha1.BenchmarkRunSpec{Phases: []v1alpha1.Phase{{Name: "fill"}}}}
	document := func(owner metav1.OwnerReference) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: naming.PhaseObjectName(one.Name, "fill"),
			Labels: map[string]string{v1alpha1.LabelRun: one.Name}, Annotations: map[string]string{annotationDigest: someDigest},
			OwnerReferences: []metav1.OwnerReference{owner}}}
	}
	other := one.DeepCopy()
	other.UID = "other"
	own, foreign := document(ownerReference(one)), document(ownerReference(other))
	for name, test := range map[string]struct {
		cached, live []client.Object
		noted        bool
		stored       bool
		reads        int
	}{
		"the cache shows it":         {[]client.Object{own}, []client.Object{own}, true, true, 0},
		"the cache does not show it": {nil, []client.Object{own}, true, true, 1},
		"it was deleted meanwhile":   {nil, nil, true, false, 1},
		"another has the name":       {nil, []client.Object{foreign}, true, false, 1},
		"nothing was stored":         {nil, []client.Object{own}, false, false, 0},
	} {
		reads := 0
		r := &Reconciler{Memory: &fresh.Memory[*v1alpha1.BenchmarkRun]{},
			Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(test.cached...).Build(),
			Live: interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(test.live...).Build(), interceptor.Funcs{
				Get: func(ctx context.Context, server client.WithWatch, key client.ObjectKey, object client.Object,
					options ...client.GetOption) error {
					reads++
					return server.Get(ctx, key, object, options...)
				}})}
		r.Memory.Keep(one)
		r.Memory.Note(one, storedFact("fill"), test.noted)
		state := runs.State{Run: one, Phases: make([]runs.PhaseState, 1)}
		if err := r.observeResults(t.Context(), &state); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		stored := state.Phases[0].Stored
		if (stored != nil) != test.stored || stored != nil && stored.Digest != someDigest || reads != test.reads {
			t.Errorf("%s: %+v after %d live reads", name, stored, reads)
		}
	}
}
