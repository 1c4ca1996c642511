package delivery

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/storagebench/storagebench/test/cluster"
)

// objects by "Kind namespace/name".
type objects map[string]*unstructured.Unstructured

// tool runs a pinned tool from the root of the checkout.
func tool(name string, args ...string) (stdout []byte, err error) {
	find := exec.Command("hack/tool", name)
	find.Dir = cluster.Root()
	find.Stderr = os.Stderr // says when it builds the tool first, which takes a while
	path, err := find.Output()
	if err != nil {
		return nil, fmt.Errorf("hack/tool %s: %w", name, err)
	}
	command := exec.Command(strings.TrimSpace(string(path)), args...)
	command.Dir = cluster.Root()
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err = command.Output()
	if err != nil {
		return stdout, fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, stdout, stderr.Bytes())
	}
	return stdout, nil
}

// kustomize builds a folder, given relative to the root of the checkout.
func kustomize(t *testing.T, folder string) objects {
	t.Helper()
	out, err := tool("kustomize", "build", folder)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, out)
}

// overlay builds the given folders of config/ as resources and components.
func overlay(t *testing.T, resources, components []string) objects {
	t.Helper()
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
	for field, folders := range map[string][]string{"resources": resources, "components": components} {
		text += field + ":\n"
		for _, path := range folders {
			text += "- " + configFolder + path + "\n"
		}
	}
	return kustomization(t, text)
}

// configFolder leads from the folder of a kustomization to config/.
const configFolder = "../../config/"

// kustomization builds a kustomization that a user could write.
func kustomization(t *testing.T, text string) objects {
	t.Helper()
	// Inside the checkout, because kustomize reads no folder by absolute path; ignored by git, as is all of dist/.
	parent := filepath.Join(cluster.Root(), "dist")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp(parent, "overlay-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kustomize(t, folder)
}

// helm renders the chart with further arguments, such as --set x=y.
func helm(t *testing.T, args ...string) objects {
	t.Helper()
	out, err := helmTemplate(args...)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, out)
}

func helmTemplate(args ...string) ([]byte, error) {
	return tool("helm", append([]string{"template", release, "charts/storagebench", "--namespace", namespace}, args...)...)
}

// parse reads YAML documents and drops the one annotation that only Helm understands.
func parse(t *testing.T, text []byte) objects {
	t.Helper()
	all, err := cluster.Objects(text)
	if err != nil {
		t.Fatal(err)
	}
	found := objects{}
	for _, object := range all {
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations", "helm.sh/resource-policy")
		key := object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
		if found[key] != nil {
			t.Fatalf("rendered twice: %s", key)
		}
		found[key] = object
	}
	return found
}

// get converts one rendered object to its type.
func get[T any](t *testing.T, from objects, key string) *T {
	t.Helper()
	object := from[key]
	if object == nil {
		t.Fatalf("not rendered: %s", key)
	}
	return convert[T](t, object)
}

func convert[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	into := new(T)
	// Strict: a field that the type does not have is a typo.
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true)
	if err != nil {
		t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
	return into
}

// ofKind returns the rendered objects of some kinds, in the order of the kinds, so that those that others need can come first.
func (o objects) ofKind(kinds ...string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, kind := range kinds {
		for _, name := range slices.Sorted(maps.Keys(o)) {
			if o[name].GetKind() == kind {
				found = append(found, o[name])
			}
		}
	}
	return found
}
