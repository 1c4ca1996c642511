package api

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/test/cluster"
)

// applyLimit is the largest object for 'kubectl apply', which stores the whole object in an annotation of at most 256 KiB.
const applyLimit = 240 << 10

func readCRD(t *testing.T, plural string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(cluster.Root(), "config", "crd", "bases", "storagebench.dev_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd map[string]any
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

func TestCRDsFitIntoKubectlApply(t *testing.T) {
	for _, plural := range resources {
		text, err := json.Marshal(readCRD(t, plural))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s: %d KiB of %d\n", plural, len(text)>>10, applyLimit>>10)
		if len(text) < 10_000 {
			t.Errorf("%s is %d bytes: this is not the whole CRD", plural, len(text))
		}
		if len(text) >= applyLimit {
			t.Errorf("%s is %d bytes: 'kubectl apply' refuses it over 256 KiB; shorten rules or messages", plural, len(text))
		}
	}
}

// TestSchemasAndTypesAgree finds a CRD that was not regenerated, and fields that the generator left out.
func TestSchemasAndTypesAgree(t *testing.T) {
	for plural, kind := range map[string]any{"storagebenchmarks": v1alpha1.StorageBenchmark{}, "benchmarkruns": v1alpha1.BenchmarkRun{},
		"benchmarkpools": v1alpha1.BenchmarkPool{}, "pooloperations": v1alpha1.PoolOperation{}, "storagetargets": v1alpha1.StorageTarget{}} {
		version := readCRD(t, plural)["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
		schema := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
		if fields := agree(t, reflect.TypeOf(kind), schema, plural); fields < 40 {
			t.Errorf("%s: only %d fields were compared", plural, fields)
		}
	}
}

// agree compares a type with its schema, and returns the number of fields that both have.
func agree(t *testing.T, kind reflect.Type, schema map[string]any, path string) (fields int) {
	for kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	switch {
	case kind.Kind() == reflect.Slice && kind.Elem().Kind() != reflect.Uint8:
		return agree(t, kind.Elem(), below(schema, "items"), path+"[]")
	case kind.Kind() == reflect.Map:
		return agree(t, kind.Elem(), below(schema, "additionalProperties"), path+"{}")
	case !ours(kind):
		return 0
	}
	properties := below(schema, "properties")
	known := map[string]bool{"apiVersion": true, "kind": true, "metadata": true}
	for _, field := range flat(kind) {
		name := jsonName(field)
		known[name] = true
		if properties[name] == nil {
			t.Errorf("%s.%s is in the Go type %s, but not in the CRD", path, name, kind.Name())
			continue
		}
		fields += 1 + agree(t, field.Type, properties[name].(map[string]any), path+"."+name)
	}
	for name := range properties {
		if !known[name] {
			t.Errorf("%s.%s is in the CRD, but not in the Go type %s", path, name, kind.Name())
		}
	}
	return fields
}

func below(schema map[string]any, key string) map[string]any {
	part, _ := schema[key].(map[string]any)
	return part
}

// flat lists the fields of a struct with those of inlined structs.
func flat(kind reflect.Type) []reflect.StructField {
	var fields []reflect.StructField
	for i := range kind.NumField() {
		field := kind.Field(i)
		switch {
		case metadata(field):
		case field.Anonymous:
			fields = append(fields, flat(field.Type)...)
		default:
			fields = append(fields, field)
		}
	}
	return fields
}
