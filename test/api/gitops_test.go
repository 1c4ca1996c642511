package api

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storagebench/storagebench/test/cluster"
)

// TestDiffIsCleanAfterApply runs kubectl itself, with both ways to apply. If there were a difference, a GitOps tool that compares in the
// same way would write forever.
func TestDiffIsCleanAfterApply(t *testing.T) {
	samples := filepath.Join(cluster.Root(), "config/samples")
	for _, way := range []string{"--server-side=true", "--server-side=false"} {
		t.Run(way, func(t *testing.T) {
			namespace := "diff" + strings.NewReplacer("--", "-", "=", "-").Replace(way)
			pluginNamespace(t, namespace)
			run := kubectl(t, namespace)
			defer func() {
				if code, said := run("delete", "--filename", samples, "--wait=false"); code != 0 {
					t.Error(said)
				}
			}()
			if code, said := run("diff", way, "--filename", samples); code != 1 || strings.Count(said, "kind: StorageBenchmark") < 20 {
				t.Fatalf("the diff finds nothing before the first apply: %d\n%s", code, said)
			}
			if code, said := run("apply", way, "--filename", samples); code != 0 {
				t.Fatal(said)
			}
			if code, said := run("diff", way, "--filename", samples); code != 0 || said != "" {
				t.Errorf("exit code %d:\n%s", code, said)
			}
			// The second apply stores the default of the status, which a manager would have replaced by then.
			if code, said := run("apply", way, "--filename", samples); code != 0 {
				t.Fatal(said)
			}
			// kubectl says "configured" for lists that it sends as a whole. The API server knows that nothing has changed.
			versions := []string{"get", "--filename", samples, "--output", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.generation} {.metadata.resourceVersion}{"\n"}{end}`}
			_, before := run(versions...)
			if code, said := run("apply", way, "--filename", samples); code != 0 {
				t.Error(said)
			}
			if _, after := run(versions...); after != before || strings.Count(after, "\n") < 25 {
				t.Errorf("applied again without a change, objects were written again:\n%s\n%s", before, after)
			}
		})
	}
}

// TestNewObjectsWait: the status of a new object says that no controller has seen it. Without a status, kstatus, and with it Flux, would
// treat the object as finished.
func TestNewObjectsWait(t *testing.T) {
	seen := 0
	for _, sample := range []string{"quickstart", "benchmarkpool", "pooloperations"} {
		text, err := os.ReadFile(filepath.Join(cluster.Root(), "config/samples", sample+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), "\n---\n")
		object := parse(t, first)
		if object.GetKind() == "StorageBenchmark" {
			object.SetNamespace("default")
		}
		object.SetName(object.GetName() + "-new")
		door := clientFor(t, object)
		created, err := door.Create(t.Context(), object, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = door.Delete(t.Context(), object.GetName(), metav1.DeleteOptions{}) }()
		read, err := door.Get(t.Context(), object.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		selector := metav1.ListOptions{FieldSelector: "metadata.name=" + object.GetName()}
		list, err := door.List(t.Context(), selector)
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("%d objects, %v", len(list.Items), err)
		}
		watch, err := door.Watch(t.Context(), selector)
		if err != nil {
			t.Fatal(err)
		}
		event := <-watch.ResultChan()
		watch.Stop()
		watched, is := event.Object.(*unstructured.Unstructured)
		if !is {
			t.Fatalf("%+v", event)
		}
		for from, object := range map[string]*unstructured.Unstructured{"get": read, "list": &list.Items[0], "watch": watched} {
			generation, found, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
			if generation != -1 || !found || err != nil {
				t.Errorf("%s, %s: observedGeneration is %d, %v, %v", object.GetKind(), from, generation, found, err)
			}
			seen++
		}
		t.Logf("%s: the answer to a create has %v", object.GetKind(), created.Object["status"])
	}
	if seen != 9 {
		t.Errorf("%d objects were seen", seen)
	}
}

// kubectl returns a function that runs kubectl in a namespace, with the rights of the test: the installed kubectl, or the pinned one.
func kubectl(t *testing.T, namespace string) func(arguments ...string) (code int, said string) {
	t.Helper()
	program, err := exec.LookPath("kubectl")
	if err != nil {
		path, err := exec.CommandContext(t.Context(), filepath.Join(cluster.Root(), "hack/tool"), "kubectl").Output()
		if err != nil {
			t.Fatal(err)
		}
		program = strings.TrimSpace(string(path))
	}
	kubeconfig := cluster.Kubeconfig(t, config)
	return func(arguments ...string) (code int, said string) {
		command := exec.CommandContext(t.Context(), program, append(arguments, "--kubeconfig", kubeconfig, "--namespace", namespace)...)
		var out bytes.Buffer
		command.Stdout, command.Stderr = &out, &out
		if err := command.Run(); command.ProcessState == nil {
			t.Fatal(err)
		}
		return command.ProcessState.ExitCode(), out.String()
	}
}
