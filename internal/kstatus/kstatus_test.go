package kstatus

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestExclusive goes from every state to every other one: at most one of Reconciling and Stalled is present, and only while it is True.
func TestExclusive(t *testing.T) {
	states := map[string]struct {
		set                         func(*[]metav1.Condition, int64, string, string)
		ready, reconciling, stalled bool
	}{
		"progress": {SetProgressing, false, true, false},
		"stall":    {SetStalled, false, false, true},
		"done":     {SetReady, true, false, false},
	}
	for from, first := range states {
		for to, second := range states {
			t.Run(from+" to "+to, func(t *testing.T) {
				conditions := []metav1.Condition{{Type: "Passed", Status: metav1.ConditionTrue}}
				first.set(&conditions, 1, "First", "the first")
				second.set(&conditions, 2, "Second", "the second")
				for kind, want := range map[string]bool{
					v1alpha1.ConditionReady: second.ready, v1alpha1.ConditionReconciling: second.reconciling, v1alpha1.ConditionStalled: second.stalled,
				} {
					if meta.IsStatusConditionTrue(conditions, kind) != want {
						t.Errorf("%s is not %v", kind, want)
					}
					condition := meta.FindStatusCondition(conditions, kind)
					if condition == nil {
						if kind == v1alpha1.ConditionReady {
							t.Error("Ready is missing")
						}
						continue
					}
					if kind != v1alpha1.ConditionReady && condition.Status != metav1.ConditionTrue {
						t.Errorf("%s is there but not True", kind)
					}
					if condition.ObservedGeneration != 2 || condition.Reason != "Second" || condition.Message != "the second" {
						t.Errorf("%+v speaks of the past", condition)
					}
				}
				if meta.FindStatusCondition(conditions, "Passed") == nil {
					t.Error("another condition was removed")
				}
			})
		}
	}
}

func TestSetKeepsTheTimeOfTheChange(t *testing.T) {
	var conditions []metav1.Condition
	Set(&conditions, 1, "X", metav1.ConditionTrue, "A", "a")
	conditions[0].LastTransitionTime = metav1.Time{Time: time.Unix(1, 0)}
	Set(&conditions, 2, "X", metav1.ConditionTrue, "B", strings.Repeat("ü", maxMessage))
	if conditions[0].LastTransitionTime.Unix() != 1 {
		t.Error("the time changed without the status")
	}
	if message := conditions[0].Message; len(message) > maxMessage || !utf8.ValidString(message) {
		t.Errorf("the message has %d bytes", len(message))
	}
}

func TestSame(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 500, time.UTC)
	status := func(at time.Time, state string) v1alpha1.BenchmarkRunStatus {
		return v1alpha1.BenchmarkRunStatus{State: state, StartedAt: &metav1.Time{Time: at}}
	}
	elsewhere := at.In(time.FixedZone("x", 3600))
	for _, test := range []struct {
		name string
		a, b any
		want bool
	}{
		{"equal", status(at, "a"), status(at, "a"), true},
		{"a fraction of a second is lost on the way", status(at, "a"), status(at.Truncate(time.Second), "a"), true},
		{"another time zone", status(at, "a"), status(elsewhere, "a"), true},
		{"another second", status(at, "a"), status(at.Add(time.Second), "a"), false},
		{"another word", status(at, "a"), status(at, "b"), false},
		{"empty and nil lists", v1alpha1.BenchmarkRunStatus{}, v1alpha1.BenchmarkRunStatus{Phases: []v1alpha1.RunPhaseStatus{}}, true},
		{"what JSON cannot say", make(chan int), make(chan int), false},
	} {
		if Same(test.a, test.b) != test.want {
			t.Errorf("%s: not %v", test.name, test.want)
		}
	}
}

// TestStuck: a complete benchmark is not stuck, even if its verdict is enforced.
func TestStuck(t *testing.T) {
	var conditions []metav1.Condition
	if Stuck(conditions) != nil {
		t.Error("stuck without a condition")
	}
	SetStalled(&conditions, 1, "GateInvalid", "correct the gate")
	Set(&conditions, 1, v1alpha1.ConditionComplete, metav1.ConditionFalse, "GateInvalid", "some runs are unfinished")
	if stuck := Stuck(conditions); stuck == nil || stuck.Reason != "GateInvalid" {
		t.Errorf("not stuck: %+v", stuck)
	}
	Set(&conditions, 2, v1alpha1.ConditionComplete, metav1.ConditionTrue, "Finished", "over")
	if stuck := Stuck(conditions); stuck != nil {
		t.Errorf("stuck at its end: %+v", stuck)
	}
	SetProgressing(&conditions, 3, "Progressing", "again")
	Set(&conditions, 3, v1alpha1.ConditionComplete, metav1.ConditionFalse, "Progressing", "some runs are unfinished")
	if stuck := Stuck(conditions); stuck != nil {
		t.Errorf("stuck while it works: %+v", stuck)
	}
}
