package operation

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/zfs"
)

// silent is a ZFS that does not answer.
type silent struct{}

func (silent) Run(context.Context, zfs.Command) ([]byte, error) {
	return nil, errors.New("the ZFS modules are not loaded")
}

// TestAnOperationIsReleased: an annotation with the name of the node releases an operation although ZFS does not answer.
func TestAnOperationIsReleased(t *testing.T) {
	for name, says := range map[string]string{
		"scrub": "the scrub of pool bench0 may be half done", "observe": "the observe of pool bench0 may be",
		"moduleParameter": "zfs_txg_timeout has its earlier value",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, wanted("op", acts()[name].action))
			for range 3 {
				if _, err := w.turn("op"); err != nil {
					t.Fatal(err)
				}
				w.rest("op")
			}
			if err := w.client.Delete(t.Context(), w.get("op")); err != nil {
				t.Fatal(err)
			}
			w.agent.ZFS = zfs.New(silent{})
			commands := len(w.node.commands)
			release := func(node string) {
				t.Helper()
				operation := w.get("op")
				operation.Annotations = map[string]string{v1alpha1.AnnotationReleasePool: node}
				if err := w.client.Update(t.Context(), operation); err != nil {
					t.Fatal(err)
				}
			}
			release("node-b")
			if _, err := w.turn("op"); err == nil || w.get("op") == nil {
				t.Fatalf("released for another node: %v", err)
			}
			if message := w.get("op").Status.Conditions[0].Message; !strings.Contains(message,
				"kubectl annotate pooloperation op storagebench.dev/release-pool=node-a") {
				t.Errorf("it does not say how to release it: %q", message)
			}
			release("node-a")
			if _, err := w.turn("op"); err != nil || w.get("op") != nil {
				t.Fatalf("error %v, object %+v", err, w.get("op"))
			}
			if len(w.node.commands) != commands || len(w.agent.jobs.all) > 0 || w.node.read(t, "/sys/module/zfs/parameters/zfs_txg_timeout") != "5" {
				t.Errorf("commands %q, jobs %v", w.node.commands, w.agent.jobs.all)
			}
			if told := allEvents(w); !strings.Contains(told, v1alpha1.ReasonPoolLeftBehind+" released by its annotation: ") ||
				!strings.Contains(told, says) {
				t.Errorf("events %s", told)
			}
		})
	}
}

func allEvents(w *world) string {
	recorder, _ := w.agent.Recorder.(*events.FakeRecorder)
	var all []string
	for len(recorder.Events) > 0 {
		all = append(all, <-recorder.Events)
	}
	return strings.Join(all, "\n")
}
