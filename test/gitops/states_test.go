// Package gitops tests how GitOps tools show storagebench's objects, with the code of these tools: the kstatus library of Flux and the Lua
// interpreter of Argo CD. The tests of the controllers have written the states to testdata.
package gitops

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// looks is how the tools show a state.
type looks struct {
	flux status.Status
	argo string
}

var (
	waits     = looks{status.InProgressStatus, "Progressing"}
	goesOn    = looks{status.CurrentStatus, "Healthy"}
	stops     = looks{status.FailedStatus, "Degraded"}
	suspended = looks{status.InProgressStatus, "Suspended"}
	// deleted is handled by Argo CD itself before any script.
	deleted = looks{status.TerminatingStatus, "Progressing"}
)

var expected = map[string]looks{
	"StorageBenchmark/queued":                         waits,
	"StorageBenchmark/waiting":                        waits,
	"StorageBenchmark/running":                        waits,
	"StorageBenchmark/suspended":                      suspended,
	"StorageBenchmark/refused":                        stops,
	"StorageBenchmark/deleting":                       deleted,
	"StorageBenchmark/passed-reported":                goesOn,
	"StorageBenchmark/failed-reported":                goesOn,
	"StorageBenchmark/inconclusive-reported":          goesOn,
	"StorageBenchmark/invalid-reported":               goesOn,
	"StorageBenchmark/failed-stored-without-a-policy": goesOn,
	"StorageBenchmark/passed-enforced":                goesOn,
	"StorageBenchmark/failed-enforced":                stops,
	"StorageBenchmark/inconclusive-enforced":          stops,
	"StorageBenchmark/invalid-enforced":               stops,
	"BenchmarkPool/ready":                             goesOn,
	"BenchmarkPool/changing":                          waits,
	"BenchmarkPool/rebuilding":                        waits,
	"BenchmarkPool/unhealthy":                         stops,
	"BenchmarkPool/unobserved":                        waits,
	"PoolOperation/running":                           waits,
	"PoolOperation/succeeded":                         goesOn,
	"PoolOperation/succeeded-then-changed":            goesOn,
	"PoolOperation/failed":                            stops,
	"PoolOperation/cancelled":                         goesOn,
}

// TestStates checks what Flux and Argo CD show for every state that the controllers write.
func TestStates(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.json")
	if err != nil || len(files) != len(expected) {
		t.Fatalf("%d files for %d states, %v", len(files), len(expected), err)
	}
	health := script(t)
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "testdata/"), ".json")
		want, known := expected[name]
		if !known {
			t.Errorf("what do the tools show for %s?", name)
			continue
		}
		check(t, health, name, read(t, file), want)
		if want == deleted {
			continue
		}
		changed := read(t, file)
		changed.SetGeneration(changed.GetGeneration() + 1)
		check(t, health, name+", changed since", changed, waits)
	}
}

// TestBeforeTheFirstStatus: a new object, which no controller has seen, must not look finished. kstatus treats an object without a status
// as current, so the CRDs have a default.
func TestBeforeTheFirstStatus(t *testing.T) {
	health := script(t)
	for plural, kind := range map[string]string{"storagebenchmarks": "StorageBenchmark", "benchmarkpools": "BenchmarkPool",
		"pooloperations": "PoolOperation"} {
		object := read(t, firstOf(t, kind))
		object.SetDeletionTimestamp(nil)
		unstructured.RemoveNestedField(object.Object, "status")
		if bare, err := status.Compute(object); err != nil || bare.Status != status.CurrentStatus {
			t.Errorf("%s without a status: Flux shows %v, %v: the default is needed no more", kind, bare, err)
		}
		if argo := health.of(t, object); argo != waits.argo {
			t.Errorf("%s without a status: Argo CD shows %s", kind, argo)
		}
		if err := unstructured.SetNestedMap(object.Object, statusDefault(t, plural), "status"); err != nil {
			t.Fatal(err)
		}
		check(t, health, kind+" that is new", object, waits)
	}
}

func check(t *testing.T, health *lua, name string, object *unstructured.Unstructured, want looks) {
	t.Helper()
	result, err := status.Compute(object)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if got := (looks{result.Status, health.of(t, object)}); got != want {
		t.Errorf("%s: Flux shows %s and Argo CD %s, want %s and %s", name, got.flux, got.argo, want.flux, want.argo)
	}
}

func read(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return object
}

func firstOf(t *testing.T, kind string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", kind, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no states of a %s: %v", kind, err)
	}
	return files[0]
}

// statusDefault returns the default of the status in a CRD.
func statusDefault(t *testing.T, plural string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "config/crd/bases/storagebench.dev_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema struct {
						Properties map[string]struct {
							Default json.RawMessage `json:"default"`
						} `json:"properties"`
					} `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &crd); err != nil || len(crd.Spec.Versions) != 1 {
		t.Fatalf("%s: %d versions, %v", plural, len(crd.Spec.Versions), err)
	}
	whole := []byte(`{"status":` + string(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Default) + `}`)
	// As an API server would send it: numbers are integers.
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(`{"apiVersion":"a/v1","kind":"K",` + string(whole[1:]))); err != nil {
		t.Fatalf("%s: the CRD has no default for the status: %v", plural, err)
	}
	fields, _, err := unstructured.NestedMap(object.Object, "status")
	if err != nil {
		t.Fatal(err)
	}
	return fields
}
