package benchmark

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/line"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/naming"
)

// TestForgedResults: ConfigMaps that others create in the name of a benchmark, or change, cannot make its status invalid.
func TestForgedResults(t *testing.T) {
	const hash, mark = "0a1b2c3d", "4e5f6071"
	long := strings.Repeat("0", 17)
	for name, test := range map[string]struct {
		document, label, fingerprint, verdict string
		listed                                bool
		wantMark, wantVerdict                 string
	}{
		"results":            {"b1-" + hash, hash, mark, "Passed", true, mark, "Passed"},
		"superseded":         {"b1-" + hash, hash, mark, "", true, mark, ""},
		"a long label":       {"b1-" + long, long, mark, "Passed", false, "", ""},
		"a label of words":   {"b1-other", "other", mark, "Passed", false, "", ""},
		"no label":           {"b1-" + hash, "", mark, "Passed", false, "", ""},
		"the label of other": {"mine", hash, mark, "Passed", false, "", ""},
		"a long fingerprint": {"b1-" + hash, hash, long, "Passed", true, "", "Passed"},
		"two fingerprints":   {"b1-" + hash, hash, mark + " " + mark, "Passed", true, "", "Passed"},
		"a long verdict":     {"b1-" + hash, hash, mark, strings.Repeat("P", 17), true, mark, ""},
	} {
		document := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: test.document,
			Labels: map[string]string{v1alpha1.LabelExperiment: test.label}, Annotations: map[string]string{
				v1alpha1.AnnotationFingerprint: test.fingerprint, v1alpha1.AnnotationVerdict: test.verdict}}}
		if listed := hasResults(document, waiting(1)); listed != test.listed {
			t.Errorf("%s: listed is %t", name, listed)
		}
		if !test.listed {
			continue
		}
		want := experiment.StoredExperiment{ConfigMap: test.document, Experiment: hash, Fingerprint: test.wantMark, Verdict: test.wantVerdict}
		if got := storedExperiment(document); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// TestOwnResultsAreFound: the results of the current experiment are found by their name, even if a tenant has changed their label.
func TestOwnResultsAreFound(t *testing.T) {
	observed := testObservation()
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: naming.ResultsName(observed.Benchmark.Name, observed.Experiment),
		Labels: map[string]string{v1alpha1.LabelExperiment: strings.Repeat("0", 17)}}}
	for range 2 {
		observed.noteResults(stored, nil)
	}
	if len(observed.Results) != 1 || observed.Results[0].Experiment != observed.Experiment || len(experiment.History(observed.State)) > 0 {
		t.Errorf("%+v", observed.Results)
	}
}

// TestARefusedStatus: a benchmark whose status the API server refuses leaves its queues, with one write.
func TestARefusedStatus(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for words, refusal := range map[string]error{
		"refuses the status as invalid": apierrors.NewInvalid(schema.GroupKind{Kind: "StorageBenchmark"}, "b1", nil),
		"remove labels":                 apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
		"":                              apierrors.NewServiceUnavailable("down"),
	} {
		writes := 0
		server := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.StorageBenchmark{}).WithObjects(waiting(1)).Build()
		r := &Reconciler{Line: line.New(experiment.Limits{}), Client: interceptor.NewClient(server, interceptor.Funcs{
			SubResourceUpdate: func(ctx context.Context, c client.Client, name string, object client.Object,
				options ...client.SubResourceUpdateOption) error {
				if len(object.(*v1alpha1.StorageBenchmark).Status.History) > 0 {
					return refusal
				}
				writes++
				return c.SubResource(name).Update(ctx, object, options...)
			}})}
		var got v1alpha1.StorageBenchmark
		for range 3 {
			if err := server.Get(t.Context(), client.ObjectKeyFromObject(waiting(1)), &got); err != nil {
				t.Fatal(err)
			}
			full := *got.Status.DeepCopy()
			full.Queue, full.History = waiting(1).Status.Queue, []v1alpha1.ResultsReference{{Experiment: "forged"}}
			if err := r.writeStatus(t.Context(), got.DeepCopy(), full, false); err == nil {
				t.Errorf("%q: the refusal is not returned", words)
			}
		}
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(waiting(1)), &got); err != nil {
			t.Fatal(err)
		}
		ready := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionReady)
		left := words != ""
		if experiment.Waits(&got) == left || left != (writes == 1) || left && !strings.Contains(ready.Message, words) {
			t.Errorf("%q: %+v after %d writes", words, got.Status, writes)
		}
	}
}
