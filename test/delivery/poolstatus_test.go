package delivery

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestManagerWritesConditionsOnly: of a status, the policy lets the manager write only the conditions and their generation. This test finds
// a new field that the policy lacks. The agent decides by some of these fields which disks it may clear.
func TestManagerWritesConditionsOnly(t *testing.T) {
	var fields []string
	for _, status := range []any{v1alpha1.BenchmarkPoolStatus{}, v1alpha1.PoolOperationStatus{}} {
		for field := range reflect.TypeOf(status).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name != "observedGeneration" && name != "conditions" {
				fields = append(fields, name)
			}
		}
	}
	list := regexp.MustCompile(`\[('guid'[^]]*)\]`)
	for _, file := range []string{"config/agent/policies.yaml", "charts/storagebench/templates/agent-policy.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		found := list.FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s has no list of fields that begins with 'guid'", file)
		}
		kept := regexp.MustCompile(`\w+`).FindAllString(string(found[1]), -1)
		if difference := cmp.Diff(slices.Sorted(slices.Values(fields)), slices.Sorted(slices.Values(kept))); difference != "" {
			t.Errorf("%s: fields of a status that the manager may not write (-want +got):\n%s", file, difference)
		}
	}
}
