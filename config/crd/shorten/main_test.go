package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestShorten(t *testing.T) {
	const before = `---
spec:
  versions:
  - schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              target:
                description: kept
                properties:
                  description:
                    description: kept
              variants:
                items:
                  properties:
                    target:
                      description: kept
                      properties:
                        description:
                          description: removed
                          items:
                            description: removed
                            type: string
                          type: array
                        own:
                          description: kept
`
	const after = `---
spec:
  versions:
  - schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              target:
                description: kept
                properties:
                  description:
                    description: kept
              variants:
                items:
                  properties:
                    target:
                      description: kept
                      properties:
                        description:
                          items:
                            type: string
                          type: array
                        own:
                          description: kept
`
	pairs := [][2]string{{"spec.target", "spec.variants.items.target"}}
	path := filepath.Join(t.TempDir(), "crd.yaml")
	for _, text := range []string{before, after} { // a second time changes nothing
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := shorten(path, pairs); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != after {
			t.Errorf("%v\n%s", err, got)
		}
	}
	if err := os.WriteFile(path, []byte("spec: {versions: [{schema: {openAPIV3Schema: {}}}]}"), 0o600); err != nil || shorten(path, pairs) == nil {
		t.Error("a field that is not there is no mistake", err)
	}
}
