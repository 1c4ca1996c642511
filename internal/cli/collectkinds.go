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
	// container is the name of storagebench's own container in the pods of the kind. Others, such as a sidecar of a service mesh, belong to
	// users: their arguments and logs may contain anything.
	container string
}

// collected lists what an archive contains. None of the kinds is meant for secrets.
var collected = []collectedKind{
	{GVK: v1alpha1.GroupVersion.WithKind(kindBenchmark)},
	{GVK: v1alpha1.GroupVersion.WithKind(kindRun)},
	{GVK: v1alpha1.GroupVersion.WithKind("StorageTarget")},
	// Results, but not the documents of all phases, which can be hundreds of MiB: report --output-dir saves these.
	{GVK: core("ConfigMap"), options: []client.ListOption{selecting(v1alpha1.LabelBenchmarkUID + ",!" + v1alpha1.LabelPhase)}},
	{GVK: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"},
		options: []client.ListOption{selecting(v1alpha1.LabelBenchmarkUID)}, container: runnerContainer},
	{GVK: core("Pod"), options: []client.ListOption{selecting(v1alpha1.LabelBenchmarkUID)}, container: runnerContainer},
	{GVK: core("PersistentVolumeClaim"), options: []client.ListOption{selecting(v1alpha1.LabelBenchmarkUID)}},
	{GVK: core("Event"), keep: aboutBenchmarks},
	{GVK: v1alpha1.GroupVersion.WithKind("BenchmarkPool"), everywhere: true},
	{GVK: v1alpha1.GroupVersion.WithKind("PoolOperation"), everywhere: true},
	{GVK: schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"}, everywhere: true},
	{GVK: core("Node"), everywhere: true},
	{GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, everywhere: true,
		options: []client.ListOption{component(partManager)}, keep: runsAs(partManager, "spec", "template", "spec"),
		container: partManager},
	{GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}, everywhere: true,
		options: []client.ListOption{component(partAgent)}, keep: runsAs(partAgent, "spec", "template", "spec"),
		container: partAgent},
	{GVK: core("Pod"), everywhere: true, options: []client.ListOption{component(partManager)}, suffix: "-manager",
		keep: runsAs(partManager, "spec"), container: partManager},
	{GVK: core("Pod"), everywhere: true, options: []client.ListOption{component(partAgent)}, suffix: "-agent",
		keep: runsAs(partAgent, "spec"), container: partAgent},
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

// removedFields are removed at any depth: addresses of nodes and pods, what may contain a token, and the bookkeeping of the API server.
var removedFields = []string{"managedFields", "httpHeaders", "hostAliases", "hostIP", "hostIPs", "nameservers", "podCIDR", "podCIDRs",
	"podIP", "podIPs"}

// ownAnnotations are prefixes of annotations about benchmarks or scheduling. Other annotations may contain anything.
var ownAnnotations = []string{v1alpha1.GroupVersion.Group + "/", annotationDefaultClass, "pv.kubernetes.io/", "volume.kubernetes.io/",
	"batch.kubernetes.io/", "kubernetes.io/description"}

// withoutSecrets returns a copy of an object without possible secrets, and without the bookkeeping of the API server. Of its containers,
// the one called own is storagebench's.
func withoutSecrets(object *unstructured.Unstructured, own string) *unstructured.Unstructured {
	object = object.DeepCopy()
	redact(object.Object, own)
	if object.GetKind() == "StorageClass" {
		redactClass(object)
	}
	if object.GetKind() == "Node" {
		unstructured.RemoveNestedField(object.Object, "status", "addresses")
		unstructured.RemoveNestedField(object.Object, "status", "images") // they include images of other workloads
	}
	return object
}

// redactClass removes values of parameters and mount options, because some drivers take passwords in them.
func redactClass(class *unstructured.Unstructured) {
	parameters, _, _ := unstructured.NestedStringMap(class.Object, "parameters")
	for name := range parameters {
		if !slices.Contains(harmless, strings.ToLower(name)) {
			parameters[name] = leftOut
		}
	}
	if len(parameters) > 0 {
		_ = unstructured.SetNestedStringMap(class.Object, parameters, "parameters") // strings can be set
	}
	options, _, _ := unstructured.NestedStringSlice(class.Object, "mountOptions")
	for i, option := range options {
		if name, _, hasValue := strings.Cut(option, "="); hasValue {
			options[i] = name + "=" + leftOut
		}
	}
	if len(options) > 0 {
		_ = unstructured.SetNestedStringSlice(class.Object, options, "mountOptions")
	}
}

// redact removes possible secrets from a value, recursively.
func redact(value any, own string) {
	switch value := value.(type) {
	case map[string]any:
		for _, field := range removedFields {
			delete(value, field)
		}
		redactAnnotations(value["annotations"])
		if variables, is := value["env"].([]any); is {
			redactVariables(variables, flagenv.Prefix)
		}
		if attributes, is := value["volumeAttributes"].(map[string]any); is { // what the driver of an injected volume gets
			for name := range attributes {
				attributes[name] = leftOut
			}
		}
		for _, field := range containerFields {
			redactForeign(value[field], own)
		}
		for _, below := range value {
			redact(below, own)
		}
	case []any:
		for _, below := range value {
			redact(below, own)
		}
	}
}

// redactAnnotations removes annotations of other tools.
func redactAnnotations(value any) {
	annotations, _ := value.(map[string]any)
	for name := range annotations {
		if !slices.ContainsFunc(ownAnnotations, func(own string) bool { return strings.HasPrefix(name, own) }) {
			delete(annotations, name)
		}
	}
}

// containerFields are the fields of pods with lists of containers, or of their states.
var containerFields = []string{"containers", "initContainers", "ephemeralContainers", "containerStatuses", "initContainerStatuses",
	"ephemeralContainerStatuses"}

// redactForeign removes what the containers that are not storagebench's run, and the last words of those that have ended.
func redactForeign(list any, own string) {
	containers, _ := list.([]any)
	for _, one := range containers {
		container, is := one.(map[string]any)
		if !is || own != "" && container["name"] == own {
			continue
		}
		for _, field := range []string{"command", "args"} {
			if container[field] != nil {
				container[field] = []any{leftOut}
			}
		}
		for _, field := range []string{"livenessProbe", "readinessProbe", "startupProbe", "lifecycle"} { // they have commands and paths
			delete(container, field)
		}
		if variables, is := container["env"].([]any); is {
			redactVariables(variables, "") // one may be called like a flag of storagebench
		}
		for _, state := range []string{"state", "lastState"} {
			unstructured.RemoveNestedField(container, state, "terminated", "message") // may be the end of its log
		}
	}
}

// redactVariables removes the values of environment variables, except those whose name begins with a prefix, if there is one.
func redactVariables(variables []any, except string) {
	for _, one := range variables {
		variable, is := one.(map[string]any)
		name, _ := variable["name"].(string)
		if is && variable["value"] != nil && (except == "" || !strings.HasPrefix(name, except)) {
			variable["value"] = leftOut
		}
	}
}
