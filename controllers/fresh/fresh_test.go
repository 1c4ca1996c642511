package fresh

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestMemory: what this process wrote last is used only if the cache shows exactly that; everything else is read live.
func TestMemory(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	at := func(version, state string) *v1alpha1.BenchmarkRun {
		return &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "r", UID: "u", ResourceVersion: version},
			Status: v1alpha1.BenchmarkRunStatus{State: state}}
	}
	server := func(objects ...client.Object) client.Client {
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	}
	key := client.ObjectKeyFromObject(at("1", ""))
	other := at("7", "recreated")
	other.UID = "other"
	for name, test := range map[string]struct {
		kept   *v1alpha1.BenchmarkRun
		cached client.Client
		want   string
	}{
		"nothing is known":          {nil, server(at("7", "cached")), "live"},
		"the cache shows it":        {at("7", "kept"), server(at("7", "cached")), "kept"},
		"the cache is older":        {at("7", "kept"), server(at("6", "cached")), "live"},
		"the cache is newer":        {at("7", "kept"), server(at("8", "cached")), "live"},
		"the cache shows nothing":   {at("7", "kept"), server(), "live"},
		"the cache shows another's": {at("7", "kept"), server(other), "live"},
	} {
		var memory Memory[*v1alpha1.BenchmarkRun]
		if test.kept != nil {
			memory.Keep(test.kept)
		}
		got, err := memory.Get(t.Context(), test.cached, server(at("9", "live")), key, &v1alpha1.BenchmarkRun{})
		if err != nil || got.Status.State != test.want || got == test.kept {
			t.Errorf("%s: %s, %v, want %s", name, got.Status.State, err, test.want)
		}
	}
	var memory Memory[*v1alpha1.BenchmarkRun]
	if memory.Note(at("7", ""), "done", true); memory.Noted(at("7", ""), "done") {
		t.Error("something is known about a run that is not")
	}
	memory.Keep(at("7", ""))
	if memory.Note(at("7", ""), "done", true); !memory.Noted(at("8", ""), "done") || memory.Noted(at("8", ""), "other") {
		t.Error("what was found out is forgotten, or something else is known")
	}
	if _, err := memory.Get(t.Context(), server(), server(), key, &v1alpha1.BenchmarkRun{}); !apierrors.IsNotFound(err) {
		t.Errorf("a run that is gone: %v", err)
	}
	if len(memory.known)+len(memory.facts) != 0 {
		t.Error("something is left of a run that is gone")
	}
	var none *Memory[*v1alpha1.BenchmarkRun]
	none.Keep(at("7", ""))
	if got, err := none.Get(t.Context(), server(at("7", "cached")), server(at("7", "live")), key, &v1alpha1.BenchmarkRun{}); err != nil ||
		got.Status.State != "live" {
		t.Errorf("without a memory: %s, %v", got.Status.State, err)
	}
}
