package api

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// bases are valid manifests. An invalid one is a base with a small patch, so that it is wrong in exactly one way.
var bases = map[string]string{
	"benchmark": `{apiVersion: storagebench.dev/v1alpha1, kind: StorageBenchmark, metadata: {name: b, namespace: default}, spec: {
  target: {storageClass: {name: fast, size: 1Gi}},
  phases: [
    {name: fill, fill: {to: 80%}},
    {name: age, fragment: {until: Converged}},
    {name: read, measure: {workload: {oltp: {duration: 1m}}}}],
  gates: [{name: g, bound: {metric: read.readOperationsPerSecond, min: "1"}}]}}`,
	"zfs": `{apiVersion: storagebench.dev/v1alpha1, kind: StorageBenchmark, metadata: {name: z, namespace: default}, spec: {
  target: {zfs: {nodes: {matchLabels: {lab: "true"}}, pool: {vdevs: [{type: mirror, devices: [/dev/disk/by-id/a, /dev/disk/by-id/b]}]},
    dataset: {properties: {recordsize: 8k}}}},
  variants: [{name: r8k, dataset: {properties: {recordsize: 8k}}}, {name: r128k, dataset: {properties: {recordsize: 128k}}}],
  phases: [{name: fill, fill: {to: 80%}}, {name: scan, measure: {workload: {scan: {}}}}]}}`,
	"run": `{apiVersion: storagebench.dev/v1alpha1, kind: BenchmarkRun, metadata: {name: r, namespace: default}, spec: {
  benchmark: b, experiment: abc, index: 0, variant: default, repetition: 1, attempt: 1, seed: 7, nodeName: n1, runnerImage: runner:1,
  target: {storageClass: {name: fast, size: 1Gi}}, phases: [{name: fill, fill: {to: 80%}}], retain: Never}}`,
	"pool": `{apiVersion: storagebench.dev/v1alpha1, kind: BenchmarkPool, metadata: {name: bench0}, spec: {
  nodeName: n1, namespace: lab, vdevs: [{type: mirror, devices: [/dev/disk/by-id/a, /dev/disk/by-id/b]}],
  log: [{devices: [/dev/disk/by-id/l]}], cache: [/dev/disk/by-id/c], datasets: [{path: data}]}}`,
	"two-vdevs": `{apiVersion: storagebench.dev/v1alpha1, kind: BenchmarkPool, metadata: {name: bench2}, spec: {
  nodeName: n1, vdevs: [{devices: [/dev/disk/by-id/a]}, {devices: [/dev/disk/by-id/b]}]}}`,
	"target":    `{apiVersion: storagebench.dev/v1alpha1, kind: StorageTarget, metadata: {name: t, namespace: default}, spec: {storageClass: {name: fast, size: 1Gi}}}`,
	"cancelled": `{apiVersion: storagebench.dev/v1alpha1, kind: PoolOperation, metadata: {name: c}, spec: {nodeName: n1, pool: bench0, action: {scrub: {}}, cancel: true}}`,
	"operation": `{apiVersion: storagebench.dev/v1alpha1, kind: PoolOperation, metadata: {name: o}, spec: {nodeName: n1, pool: bench0, action: {scrub: {}}}}`,
}

var resources = map[string]string{
	"StorageBenchmark": "storagebenchmarks", "BenchmarkRun": "benchmarkruns",
	"StorageTarget": "storagetargets", "BenchmarkPool": "benchmarkpools", "PoolOperation": "pooloperations",
}

// parse reads one manifest.
func parse(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	text, err := yaml.YAMLToJSONStrict([]byte(manifest))
	if err == nil {
		err = object.UnmarshalJSON(text)
	}
	if err != nil {
		t.Fatalf("%v in manifest:\n%s", err, manifest)
	}
	return object
}

// patched returns a base with a patch: lines of "path = YAML", or "path -" to remove.
func patched(t *testing.T, base, patch string) *unstructured.Unstructured {
	t.Helper()
	object := parse(t, bases[base])
	for line := range strings.SplitSeq(patch, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		path, text, set := strings.Cut(line, " = ")
		var value any
		if set {
			// Through UnmarshalJSON once more, so that whole numbers become integers as the API machinery wants them.
			value = parse(t, "{apiVersion: v1, kind: Value, value: "+text+"}").Object["value"]
		} else {
			path = strings.TrimSuffix(path, " -")
		}
		changed, err := change(object.Object, steps(path), value, set)
		if err != nil {
			t.Fatalf("patch %q: %v", line, err)
		}
		object.Object = changed.(map[string]any)
	}
	return object
}

// steps splits spec.phases[0].fill and spec.matrix[pool.ashift] into keys; indices stay in brackets until used.
func steps(path string) []string {
	var keys []string
	for path != "" {
		if rest, found := strings.CutPrefix(path, "["); found {
			key, tail, _ := strings.Cut(rest, "]")
			keys, path = append(keys, key), strings.TrimPrefix(tail, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			return append(keys, path)
		}
		keys, path = append(keys, path[:end]), strings.TrimPrefix(path[end:], ".")
	}
	return keys
}

func change(node any, keys []string, value any, set bool) (any, error) {
	if len(keys) == 0 {
		return value, nil
	}
	switch at := node.(type) {
	case []any:
		i, err := strconv.Atoi(keys[0])
		if err != nil || i > len(at) {
			return nil, fmt.Errorf("no index %q", keys[0])
		}
		if i == len(at) {
			at = append(at, nil)
		}
		at[i], err = change(at[i], keys[1:], value, set)
		return at, err
	case map[string]any:
		if len(keys) == 1 && !set {
			delete(at, keys[0])
			return at, nil
		}
		below, err := change(at[keys[0]], keys[1:], value, set)
		at[keys[0]] = below
		return at, err
	case nil:
		return change(map[string]any{}, keys, value, set)
	}
	return nil, fmt.Errorf("nothing to change below %q", keys[0])
}

// clientFor returns a client for objects of this kind and namespace, without the types of this project.
func clientFor(t *testing.T, object *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	all, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	resource := all.Resource(schema.GroupVersionResource{
		Group: "storagebench.dev", Version: "v1alpha1", Resource: resources[object.GetKind()]})
	if object.GetNamespace() != "" {
		return resource.Namespace(object.GetNamespace())
	}
	return resource
}

func dryCreate(t *testing.T, object *unstructured.Unstructured) error {
	t.Helper()
	_, err := clientFor(t, object).Create(context.Background(), object,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	return err
}
