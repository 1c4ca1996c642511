package experiment

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/runs/runstest"

	corev1 "k8s.io/api/core/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestLimits: a spec that can never fit is refused, and the error names the field, the limit, and who sets the limit.
func TestLimits(t *testing.T) {
	tolerate := func(tolerations ...corev1.Toleration) func(*v1alpha1.StorageBenchmark) {
		return func(b *v1alpha1.StorageBenchmark) { b.Spec.PodTemplate.Tolerations = tolerations }
	}
	keys := Limits{TolerationKeys: []string{"dedicated", "example.com/*"}}
	for name, test := range map[string]struct {
		limits Limits
		change func(*v1alpha1.StorageBenchmark)
		says   string // empty if it is allowed
	}{
		"as most are": {DefaultLimits(), func(*v1alpha1.StorageBenchmark) {}, ""},
		"no limits": {Limits{}, func(b *v1alpha1.StorageBenchmark) {
			b.Spec.Deadline, b.Spec.Phases[0].Deadline, b.Spec.Phases[0].StartDeadline = runstest.Lasting(999999*time.Hour),
				runstest.Lasting(999999*time.Hour), runstest.Lasting(999999*time.Hour)
		}, ""},
		"a deadline of a day": {DefaultLimits(), func(b *v1alpha1.StorageBenchmark) { b.Spec.Deadline = runstest.Lasting(24 * time.Hour) },
			""},
		"a deadline of a century": {DefaultLimits(), func(b *v1alpha1.StorageBenchmark) {
			b.Spec.Deadline = runstest.Lasting(999999 * time.Hour)
		}, "spec.deadline is 999999h0m0s, but at most 24h0m0s is allowed (max-hold)"},
		"of a phase": {DefaultLimits(), func(b *v1alpha1.StorageBenchmark) {
			b.Spec.Phases[1].Deadline = runstest.Lasting(25 * time.Hour)
		}, "deadline of phase scan is 25h0m0s"},
		"of a phase that names none": {Limits{MaxHold: time.Hour}, func(b *v1alpha1.StorageBenchmark) {
			b.Spec.Phases[1].Deadline = runstest.Lasting(6 * time.Hour)
		}, ""},
		"of a start": {DefaultLimits(), func(b *v1alpha1.StorageBenchmark) {
			b.Spec.Phases[1].StartDeadline = runstest.Lasting(2 * time.Hour)
		}, "startDeadline of phase scan is 2h0m0s, but at most 1h0m0s"},
		"many nodes": {Limits{NodesPerNamespace: 2}, func(b *v1alpha1.StorageBenchmark) { onNodes(b, 3) },
			"target.zfs.nodes.count is 3, but the benchmarks of a namespace may hold 2 nodes"},
		"as many as may be": {Limits{NodesPerNamespace: 3}, func(b *v1alpha1.StorageBenchmark) { onNodes(b, 3) }, ""},
		"a priority class": {DefaultLimits(), func(b *v1alpha1.StorageBenchmark) {
			b.Spec.PodTemplate.PriorityClassName = "system-node-critical"
		}, "priorityClassName is system-node-critical, and no PriorityClass may be named"},
		"one that is granted": {Limits{PriorityClasses: []string{"bench"}}, func(b *v1alpha1.StorageBenchmark) {
			b.Spec.PodTemplate.PriorityClassName = "bench"
		}, ""},
		"another": {Limits{PriorityClasses: []string{"bench"}}, func(b *v1alpha1.StorageBenchmark) {
			b.Spec.PodTemplate.PriorityClassName = "benches"
		}, "only these PriorityClasses may be named: bench"},
		"a taint of the admin's": {DefaultLimits(),
			tolerate(corev1.Toleration{Key: "dedicated", Value: "bench", Effect: corev1.TaintEffectNoSchedule}), ""},
		"everything": {DefaultLimits(), tolerate(corev1.Toleration{Operator: corev1.TolerationOpExists}),
			"without a key, which tolerates every taint"},
		"everything, with keys": {keys, tolerate(corev1.Toleration{Operator: corev1.TolerationOpExists}), "without a key"},
		"a node that is not there": {DefaultLimits(), tolerate(corev1.Toleration{Key: "dedicated"},
			corev1.Toleration{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists}),
			"the taint node.kubernetes.io/unreachable, which Kubernetes itself uses to keep pods off a node"},
		"the control plane": {DefaultLimits(), tolerate(corev1.Toleration{Key: "node-role.kubernetes.io/control-plane"}), "toleration-keys"},
		"a key of the list": {keys, tolerate(corev1.Toleration{Key: "dedicated"}, corev1.Toleration{Key: "example.com/disk"}), ""},
		"another key": {keys, tolerate(corev1.Toleration{Key: "dedicated2"}),
			"only these may be tolerated (toleration-keys): dedicated, example.com/*"},
		"granted by the admin": {Limits{TolerationKeys: []string{"node-role.kubernetes.io/control-plane"}},
			tolerate(corev1.Toleration{Key: "node-role.kubernetes.io/control-plane"}), ""},
	} {
		benchmark := runstest.Benchmark()
		test.change(benchmark)
		slots, err := design.Expand(&benchmark.Spec, 1)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		err = test.limits.Check(&benchmark.Spec, slots)
		var wrong *design.SpecError
		switch {
		case test.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.says != "" && (!errors.As(err, &wrong) || wrong.Reason != v1alpha1.ReasonLimitExceeded ||
			!strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "ask the cluster's admin")):
			t.Errorf("%s: %v, want ...%s...", name, err, test.says)
		}
	}
}

// TestKeptDisksAreLimited: if keeping pools is forbidden, no run of a zfs target keeps its disks with retain, even if retain is set later.
func TestKeptDisksAreLimited(t *testing.T) {
	forbidden := Limits{ForbidKeeping: true}
	for _, test := range []struct {
		limits Limits
		zfs    bool
		retain v1alpha1.RetainPolicy
		gets   v1alpha1.RetainPolicy
		says   string
	}{
		{Limits{}, true, v1alpha1.RetainAlways, v1alpha1.RetainAlways, ""},
		{forbidden, false, v1alpha1.RetainAlways, v1alpha1.RetainAlways, ""},
		{forbidden, true, "", "", ""},
		{forbidden, true, v1alpha1.RetainNever, v1alpha1.RetainNever, ""},
		{forbidden, true, v1alpha1.RetainAlways, v1alpha1.RetainNever, "retain: Always holds the disks"},
		{forbidden, true, v1alpha1.RetainOnFailure, v1alpha1.RetainNever, "write retain: Never, or ask the cluster's admin"},
	} {
		state := testState()
		if test.zfs {
			state = keeping(v1alpha1.ResetPool)
		}
		state.Limits, state.Benchmark.Spec.Retain = test.limits, test.retain
		err := state.Limits.Check(&state.Benchmark.Spec, state.Slots)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v: %v", test, err)
		}
		run := NewRun(state, Action{Slot: &state.Slots[0], Attempt: 1}, []string{"n1"}, "fast")
		if run.Spec.Retain != test.gets {
			t.Errorf("%+v: its run keeps %s", test, run.Spec.Retain)
		}
	}
}

// TestLimitsAreValid: mistakes of the admin are found when the manager starts.
func TestLimitsAreValid(t *testing.T) {
	for says, limits := range map[string]Limits{
		"":                       DefaultLimits(),
		"toleration key \"*\"":   {TolerationKeys: []string{"*"}},
		"toleration key \"\"":    {TolerationKeys: []string{""}},
		"toleration key \"a*b\"": {TolerationKeys: []string{"a*b"}},
		"without a name":         {PriorityClasses: []string{""}},
		"negative":               {BenchmarksPerNamespace: -1},
		"maximum priority":       {MaxPriority: map[string]int32{"a": -1}},
		"queue weight":           {QueueWeights: map[string]int32{"a": 0}},
	} {
		err := limits.Validate()
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%+v: %v, want %q", limits, err, says)
		}
	}
}

// TestPriorityIsLimited: a namespace gets at most the priority that the admin allows, and a higher one is refused.
func TestPriorityIsLimited(t *testing.T) {
	limits := Limits{MaxPriority: map[string]int32{"lab": 5, "*": 1}, QueueWeights: map[string]int32{"lab": 3}}
	for _, test := range []struct {
		namespace string
		asked     int32
		gets      int32
		says      string
	}{
		{"lab", 0, 0, ""}, {"lab", 5, 5, ""}, {"other", 1, 1, ""},
		{"lab", 6, 5, "spec.priority is 6, and namespace lab may request at most 5 (max-priority): set spec.priority to at most 5"},
		{"other", 5, 1, "namespace other may request at most 1"},
	} {
		benchmark := runstest.Benchmark()
		benchmark.Namespace, benchmark.Spec.Priority = test.namespace, test.asked
		err := limits.CheckPriority(benchmark)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s asks for %d: %v", test.namespace, test.asked, err)
		}
		if got := PlaceOf(benchmark, limits).Priority; got != test.gets {
			t.Errorf("%s asks for %d and gets %d", test.namespace, test.asked, got)
		}
	}
	if limits.Weight("lab") != 3 || limits.Weight("other") != 1 {
		t.Errorf("weights %d and %d", limits.Weight("lab"), limits.Weight("other"))
	}
}
