package crd

import (
	"encoding/json"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestCRDsFitIntoAnAnnotation: 'kubectl apply' stores the object that it applied in an annotation, and annotations are limited to 262,144
// bytes.
func TestCRDsFitIntoAnAnnotation(t *testing.T) {
	const most, least = 240_000, 10_000
	all, err := All()
	if err != nil || len(all) != 5 {
		t.Fatalf("%d CRDs, %v", len(all), err)
	}
	for name, text := range all {
		var crd map[string]any
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		compact, err := json.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		if len(compact) > most || len(compact) < least {
			t.Errorf("%s has %d bytes as JSON, want %d to %d: shorten descriptions, share structs, or do not repeat rules", name, len(compact),
				least, most)
		}
	}
}
