package cli

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/flagenv"
)

const kindRun = "BenchmarkRun"

// collectedKind says which objects of a kind an archive contains.
type collectedKind struct {
	GVK schema.GroupVersionKind
	// everywhere selects all namespaces, or a cluster-scoped kind, instead of the collected namespace.
	everywhere bool
	options    []client.ListOption
	// suffix of the folder, for a kind that is collected more than once.
	suffix string
	// keep selects objects. Nil keeps all.
	keep func(*bundle, *unstructured.Unstructured) bool
}

// collected lists what an archive contains. None of the kinds is meant for secrets.
var collected = []collectedKind{
	{GVK: v1alpha1.GroupVersion.WithKind(kindBenchmark)},
	{GVK: v1alpha1.GroupVersion.WithKind(kindRun)},
	{GVK: v1alpha1.GroupVersion.WithKind("StorageTarget")},
	// Results, but not the documents of all phases, which can be hundreds of MiB: report --output-dir saves these.
	{GVK: core("ConfigMap"), options: []client.ListOption{selecting(v1alpha1.LabelBenchmarkUID + ",!" + v1alpha1.LabelPhase)}},
	{GVK: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"},
		options: []client.ListOption{selecting(v1alpha1.LabelBenchmarkUID)}},
	{GVK: core("Pod"), options: []client.ListOption{selecting(v1alpha1.LabelBenchmarkUID)}},
	{GVK: core("PersistentVolumeClaim"), options: []client.ListOption{selecting(v1alpha1.LabelBenchmarkUID)}},
	{GVK: core("Event"), keep: aboutBenchmarks},
	{GVK: v1alpha1.GroupVersion.WithKind("BenchmarkPool"), everywhere: true},
	{GVK: v1alpha1.GroupVersion.WithKind("PoolOperation"), everywhere: true},
	{GVK: schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"}, everywhere: true},
	{GVK: core("Node"), everywhere: true},
	{GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, everywhere: true,
		options: []client.ListOption{component(partManager)}, keep: runsAs(partManager, "spec", "template", "spec")},
	{GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}, everywhere: true,
		options: []client.ListOption{component(partAgent)}, keep: runsAs(partAgent, "spec", "template", "spec")},
	{GVK: core("Pod"), everywhere: true, options: []client.ListOption{component(partManager)}, suffix: "-manager",
		keep: runsAs(partManager, "spec")},
	{GVK: core("Pod"), everywhere: true, options: []client.ListOption{component(partAgent)}, suffix: "-agent",
		keep: runsAs(partAgent, "spec")},
	{GVK: schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, everywhere: true,
		options: []client.ListOption{client.HasLabels{v1alpha1.LabelNodeLease}}},
}

func core(kind string) schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind(kind) }

// selecting selects objects with a label selector in kubectl's syntax.
func selecting(text string) client.ListOption {
	selector, err := labels.Parse(text)
	if err != nil {
		panic(err) // the selectors are constants in this file
	}
	return client.MatchingLabelsSelector{Selector: selector}
}

// runsAs selects objects whose pod spec, at path, uses the ServiceAccount of a part: other objects can have the same labels.
func runsAs(part string, path ...string) func(*bundle, *unstructured.Unstructured) bool {
	return func(_ *bundle, object *unstructured.Unstructured) bool {
		account, _, _ := unstructured.NestedString(object.Object, append(path, "serviceAccountName")...)
		return account == accountOf(part)
	}
}

// aboutBenchmarks reports whether an event is about an object of storagebench or of a run.
func aboutBenchmarks(b *bundle, event *unstructured.Unstructured) bool {
	version, _, _ := unstructured.NestedString(event.Object, "involvedObject", "apiVersion")
	name, _, _ := unstructured.NestedString(event.Object, "involvedObject", "name")
	return strings.HasPrefix(version, v1alpha1.GroupVersion.Group+"/") ||
		slices.ContainsFunc(b.runs, func(run string) bool { return strings.HasPrefix(name, run) })
}

// leftOut replaces a value that may be a secret.
const leftOut = "(left out)"

// harmless are parameters of StorageClasses that contain no secrets. Some drivers take addresses and passwords as parameters.
var harmless = []string{"atime", "compression", "csi.storage.k8s.io/fstype", "dedup", "encryption", "fstype", "logbias", "poolname",
	"primarycache", "recordsize", "secondarycache", "shared", "sync", "thinprovision", "type", "volblocksize"}

// addressFields are removed at any depth from nodes and pods.
var addressFields = []string{"hostAliases", "hostIP", "hostIPs", "nameservers", "podCIDR", "podCIDRs", "podIP", "podIPs"}

// ownAnnotations are prefixes of annotations about benchmarks or scheduling. Other annotations may contain anything.
var ownAnnotations = []string{v1alpha1.GroupVersion.Group + "/", annotationDefaultClass, "pv.kubernetes.io/", "volume.kubernetes.io/",
	"batch.kubernetes.io/", "kubernetes.io/description"}

// withoutSecrets returns a copy of an object without possible secrets, and without the bookkeeping of the API server.
func withoutSecrets(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	redact(object.Object)
	if object.GetKind() == "StorageClass" {
		parameters, _, _ := unstructured.NestedStringMap(object.Object, "parameters")
		for name := range parameters {
			if !slices.Contains(harmless, strings.ToLower(name)) {
				parameters[name] = leftOut
			}
		}
		if len(parameters) > 0 {
			_ = unstructured.SetNestedStringMap(object.Object, parameters, "parameters") // strings can be set
		}
	}
	if object.GetKind() == "Node" {
		unstructured.RemoveNestedField(object.Object, "status", "addresses")
		unstructured.RemoveNestedField(object.Object, "status", "images") // they include images of other workloads
	}
	return object
}

// redact removes possible secrets from a value, recursively.
func redact(value any) {
	switch value := value.(type) {
	case map[string]any:
		delete(value, "managedFields")
		for _, field := range addressFields {
			delete(value, field)
		}
		if annotations, is := value["annotations"].(map[string]any); is {
			for name := range annotations {
				if !slices.ContainsFunc(ownAnnotations, func(own string) bool { return strings.HasPrefix(name, own) }) {
					delete(annotations, name)
				}
			}
		}
		if variables, is := value["env"].([]any); is {
			redactVariables(variables)
		}
		for _, below := range value {
			redact(below)
		}
	case []any:
		for _, below := range value {
			redact(below)
		}
	}
}

func redactVariables(variables []any) {
	for _, one := range variables {
		variable, is := one.(map[string]any)
		name, _ := variable["name"].(string)
		if is && variable["value"] != nil && !strings.HasPrefix(name, flagenv.Prefix) {
			variable["value"] = leftOut
		}
	}
}
