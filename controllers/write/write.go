// Package write contains writes that several controllers need. They change only the observed version of an object, and emit an event only
// after the write.
package write

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/spelling"
)

// Finalizer adds or removes our finalizer with one of the functions of controllerutil, if the object still has the given version. It
// updates the finalizers and the version of the given object.
func Finalizer(ctx context.Context, writer client.Writer, object client.Object, change func(client.Object, string) bool) error {
	changed, _ := object.DeepCopyObject().(client.Object)
	if !change(changed, v1alpha1.FinalizerTeardown) {
		return nil
	}
	if err := writer.Patch(ctx, changed, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	object.SetFinalizers(changed.GetFinalizers())
	object.SetResourceVersion(changed.GetResourceVersion())
	return nil
}

// Announce emits an event for a changed reason of the condition Ready. Event reasons equal condition reasons.
func Announce(recorder events.EventRecorder, object client.Object, before, after []metav1.Condition) {
	earlier, now := meta.FindStatusCondition(before, v1alpha1.ConditionReady), meta.FindStatusCondition(after, v1alpha1.ConditionReady)
	if now == nil || earlier != nil && earlier.Reason == now.Reason {
		return
	}
	kind := corev1.EventTypeNormal
	if meta.IsStatusConditionTrue(after, v1alpha1.ConditionStalled) || now.Reason == v1alpha1.ReasonActionFailed {
		kind = corev1.EventTypeWarning
	}
	recorder.Eventf(object, nil, kind, now.Reason, "Reconcile", "%s", spelling.Shorten(now.Message, 900))
}
