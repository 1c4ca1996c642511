package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/storagebench/storagebench/test/cluster"
)

// TestSamplesAreAccepted applies everything that users are told to copy.
func TestSamplesAreAccepted(t *testing.T) {
	var files []string
	for _, of := range []struct {
		pattern string
		least   int
	}{{"config/samples/*.yaml", 10}, {"experiments/*/*.yaml", 41}, {"experiments/*/lab/target.yaml", 41}} {
		found, err := filepath.Glob(filepath.Join(cluster.Root(), filepath.FromSlash(of.pattern)))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) < of.least {
			t.Errorf("%d files %s, fewer than %d", len(found), of.pattern, of.least)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		name, err := filepath.Rel(cluster.Root(), file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { accepted(t, file) })
	}
	fmt.Println("sample files accepted:", len(files))
}

func accepted(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(text), "# ") {
		t.Error("begin the file with a comment that says what it shows")
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		manifest, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		object := parse(t, string(manifest))
		if resources[object.GetKind()] == "" {
			continue // a ConfigMap beside a benchmark
		}
		if kind := object.GetKind(); kind == "StorageBenchmark" || kind == "StorageTarget" {
			object.SetNamespace("default") // samples name none: they go where kubectl's context points
		}
		if err := dryCreate(t, object); err != nil {
			t.Error(err)
			continue
		}
		door := clientFor(t, object)
		if _, err := door.Create(context.Background(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
			t.Error(err)
		}
		_ = door.Delete(context.Background(), object.GetName(), metav1.DeleteOptions{})
	}
}
