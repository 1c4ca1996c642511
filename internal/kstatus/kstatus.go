// Package kstatus maintains the three conditions that tools such as Flux, Argo CD and kubectl wait use for any object: Ready,
// Reconciling and Stalled. At most one of the latter two is present, and only while it is true.
package kstatus

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/spelling"
)

// maxMessage keeps a condition far below the API's own limit of 32 KiB.
const maxMessage = 1024

// SetProgressing sets the conditions of an object while its controller is working or waiting.
func SetProgressing(conditions *[]metav1.Condition, generation int64, reason, message string) {
	Set(conditions, generation, v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
	Set(conditions, generation, v1alpha1.ConditionReconciling, metav1.ConditionTrue, reason, message)
	meta.RemoveStatusCondition(conditions, v1alpha1.ConditionStalled)
}

// SetStalled sets the conditions of an object for which nothing happens until a user changes something.
func SetStalled(conditions *[]metav1.Condition, generation int64, reason, message string) {
	Set(conditions, generation, v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
	Set(conditions, generation, v1alpha1.ConditionStalled, metav1.ConditionTrue, reason, message)
	meta.RemoveStatusCondition(conditions, v1alpha1.ConditionReconciling)
}

// SetReady sets the conditions of an object that matches its spec.
func SetReady(conditions *[]metav1.Condition, generation int64, reason, message string) {
	Set(conditions, generation, v1alpha1.ConditionReady, metav1.ConditionTrue, reason, message)
	meta.RemoveStatusCondition(conditions, v1alpha1.ConditionReconciling)
	meta.RemoveStatusCondition(conditions, v1alpha1.ConditionStalled)
}

// Stuck returns the condition Stalled of an object that is not complete, or nil. A complete benchmark can be Stalled too, if
// spec.gatePolicy enforces its verdict, but it is not stuck.
func Stuck(conditions []metav1.Condition) *metav1.Condition {
	if meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionComplete) {
		return nil
	}
	return meta.FindStatusCondition(conditions, v1alpha1.ConditionStalled)
}

// Set sets one condition.
func Set(conditions *[]metav1.Condition, generation int64, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: spelling.Shorten(message, maxMessage), ObservedGeneration: generation,
	})
}

// Same reports whether the API server would store two statuses as the same JSON. If they were compared as Go values, a time with a fraction
// of a second would differ from itself after a round trip, and the controller would write the status forever.
func Same(a, b any) bool {
	first, err := json.Marshal(a)
	if err != nil {
		return false
	}
	second, err := json.Marshal(b)
	return err == nil && bytes.Equal(first, second)
}
