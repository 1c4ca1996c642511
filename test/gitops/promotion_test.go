package gitops

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	batchv1 "k8s.io/api/batch/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const promotion = root + "/config/gitops/promotion"

// documents decodes the objects of a file, each strictly: a field that the kind does not have is an error.
func documents[T any](t *testing.T, file string) (all []T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(promotion, file))
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(string(text), "\n---\n") {
		var one T
		if err := yaml.UnmarshalStrict([]byte(document), &one); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, one)
	}
	return all
}

// gate checks the benchmark of the example and returns its name and namespace. test/documents checks its fields, with the plugin's
// validate.
func gate(t *testing.T) (name, namespace string) {
	t.Helper()
	benchmark := &unstructured.Unstructured{Object: documents[map[string]any](t, "gate/benchmark.yaml")[0]}
	if policy, _, _ := unstructured.NestedString(benchmark.Object, "spec", "gatePolicy"); policy != "Enforce" {
		t.Errorf("gatePolicy is %q: no verdict stops anything", policy)
	}
	for _, field := range []string{"ttlAfterFinished", "schedule", "suspend"} {
		if _, found, _ := unstructured.NestedFieldNoCopy(benchmark.Object, "spec", field); found {
			t.Errorf("%s: the tools would wait, or apply it again and again", field)
		}
	}
	classes := documents[storagev1.StorageClass](t, "storage/class.yaml")
	class := classes[len(classes)-1] // the change
	tested, _, _ := unstructured.NestedString(benchmark.Object, "spec", "target", "storageClass", "name")
	if tested != class.Name {
		t.Errorf("the benchmark measures the class %q, and the change is %q", tested, class.Name)
	}
	named := []string{tested}
	variants, _, _ := unstructured.NestedSlice(benchmark.Object, "spec", "variants")
	for _, variant := range variants {
		fields, _ := variant.(map[string]any)
		if name, found, _ := unstructured.NestedString(fields, "storageClass", "name"); found {
			named = append(named, name)
		}
	}
	if len(named) < 2 {
		t.Errorf("it compares only %q", named)
	}
	for _, name := range named {
		if !slices.ContainsFunc(classes, func(one storagev1.StorageClass) bool { return one.Name == name }) {
			t.Errorf("the benchmark names the class %q, which is not in Git: the tools would delete it", name)
		}
	}
	_, version, _ := strings.Cut(class.Name, "-")
	if !strings.HasSuffix(benchmark.GetName(), "-"+version) {
		t.Errorf("%s would not measure the next change: its name has no %s", benchmark.GetName(), version)
	}
	waves := [2]string{class.Annotations["argocd.argoproj.io/sync-wave"], benchmark.GetAnnotations()["argocd.argoproj.io/sync-wave"]}
	if waves != [2]string{"0", "1"} {
		t.Errorf("waves %q", waves)
	}
	return benchmark.GetName(), benchmark.GetNamespace()
}

// TestPromotionByFlux: stage, then the benchmark, then production, each only after the one before, at the same commit.
func TestPromotionByFlux(t *testing.T) {
	gate(t)
	steps := documents[kustomizev1.Kustomization](t, "flux.yaml")
	if len(steps) != 3 {
		t.Fatalf("%d steps", len(steps))
	}
	for i, step := range steps {
		if step.APIVersion != kustomizev1.GroupVersion.String() || step.Kind != kustomizev1.KustomizationKind {
			t.Errorf("%s %s", step.APIVersion, step.Kind)
		}
		if !step.Spec.Wait || !step.Spec.Prune || step.Spec.SourceRef != steps[0].Spec.SourceRef {
			t.Errorf("%s: wait, prune and the source of all %+v", step.Name, step.Spec)
		}
		if i > 0 && (len(step.Spec.DependsOn) != 1 || step.Spec.DependsOn[0].Name != steps[i-1].Name) {
			t.Errorf("%s depends on %v", step.Name, step.Spec.DependsOn)
		}
		if info, err := os.Stat(filepath.Join(promotion, step.Spec.Path)); err != nil || !info.IsDir() {
			t.Errorf("%s: no folder %s", step.Name, step.Spec.Path)
		}
	}
	paths := []string{steps[0].Spec.Path, steps[1].Spec.Path, steps[2].Spec.Path}
	if !slices.Equal(paths, []string{"./storage", "./gate", "./storage"}) || steps[2].Spec.KubeConfig == nil || steps[1].Spec.KubeConfig != nil {
		t.Errorf("paths %q", paths)
	}
	if timeout := steps[1].Spec.Timeout; timeout == nil || timeout.Hours() < 1 {
		t.Errorf("a benchmark needs more than %v", timeout)
	}
}

// TestPromotionByArgo: the sync of production begins with a hook that waits for the benchmark of stage.
func TestPromotionByArgo(t *testing.T) {
	name, namespace := gate(t)
	applications := documents[map[string]any](t, "argocd.yaml")
	if len(applications) != 2 {
		t.Fatalf("%d Applications", len(applications))
	}
	include, _, _ := unstructured.NestedString(applications[0], "spec", "source", "directory", "include")
	if include != "{storage/*,gate/*}" {
		t.Errorf("stage applies %q", include)
	}
	sources, _, _ := unstructured.NestedSlice(applications[1], "spec", "sources")
	var paths []string
	for _, source := range sources {
		fields, _ := source.(map[string]any)
		path, _ := fields["path"].(string)
		paths = append(paths, path)
	}
	if !slices.Equal(paths, []string{"production", "storage"}) {
		t.Errorf("production applies %q", paths)
	}
	hook := documents[batchv1.Job](t, "production/wait.yaml")[0]
	if hook.Annotations["argocd.argoproj.io/hook"] != "PreSync" || hook.Spec.Template.Spec.RestartPolicy != "Never" || *hook.Spec.BackoffLimit != 0 {
		t.Errorf("%+v", hook)
	}
	command := strings.Join(hook.Spec.Template.Spec.Containers[0].Command, " ")
	if !strings.HasPrefix(command, "kubectl-storagebench watch "+name+" --namespace "+namespace+" --kubeconfig /stage/kubeconfig") {
		t.Errorf("it runs %q", command)
	}
}
