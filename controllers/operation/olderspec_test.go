package operation

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
)

// TestOperationsDoNotActOnOlderSpecs: the restored status of the pool says that it is ready, but the pool was changed for a newer spec since.
// Nothing begins, and nothing that has begun runs, until a person accepts the spec.
func TestOperationsDoNotActOnOlderSpecs(t *testing.T) {
	for _, begun := range []bool{false, true} {
		w := newWorld(t, wanted("op", acts()["destroyDataset"].action))
		if begun {
			if _, err := w.turn("op"); err != nil {
				t.Fatal(err)
			}
		}
		w.node.pools[0].datasets[0].properties[pools.PropertySpec] = "2"
		for range 5 {
			if _, err := w.turn("op"); err != nil {
				t.Fatal(err)
			}
			w.rest("op")
			w.node.clock.Step(10 * time.Second)
		}
		waiting := w.get("op")
		expect(t, waiting, "", v1alpha1.ReasonPoolOlderSpec)
		if len(w.node.commands) > 0 || begun != (waiting.Status.StartedAt != nil) {
			t.Errorf("begun %v: commands %q, status %+v", begun, w.node.commands, waiting.Status)
		}
		pool := w.pool("bench0")
		if message := waiting.Status.Conditions[0].Message; !strings.HasSuffix(message, v1alpha1.AnnotationAcceptSpec+"=1") {
			t.Errorf("the way is not shown: %s", message)
		}
		metav1.SetMetaDataAnnotation(&pool.ObjectMeta, v1alpha1.AnnotationAcceptSpec, "1")
		if err := w.client.Update(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
		expect(t, w.settle("op"), "Succeeded", v1alpha1.ReasonSucceeded)
	}
}
