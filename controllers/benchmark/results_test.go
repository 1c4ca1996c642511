package benchmark

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/storagebench/storagebench/internal/results"
)

// TestALongListTakesNoMemory: a tenant can edit results so that their empty objects would take many times the memory of the text.
func TestALongListTakesNoMemory(t *testing.T) {
	for _, member := range []string{"runs", "gates", "variants", "groups", "notes"} {
		text := `{"version":"` + results.PhaseVersion + `","` + member + `":[` + strings.Repeat("{},", 340<<10) + `{}]}`
		stored := &corev1.ConfigMap{Data: map[string]string{keyResults: text}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := decodeResults(stored)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, results.ErrTooLarge) || took > 4<<20 {
			t.Errorf("%s: %d bytes took %d: %v", member, len(text), took, err)
		}
	}
	honest, err := os.ReadFile("../../test/catalogue/testdata/results.json")
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := decodeResults(&corev1.ConfigMap{Data: map[string]string{keyResults: string(honest)}})
	if err != nil || len(decoded.Variants) == 0 {
		t.Errorf("%+v, %v", decoded, err)
	}
}
