package experiment

import (
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
)

// TestToleratedLikeTheScheduler compares with the scheduler's own rule over all combinations that the API server admits.
func TestToleratedLikeTheScheduler(t *testing.T) {
	effects := []corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	words, compared := []string{"", "a", "b"}, 0
	for _, taintEffect := range effects[1:] {
		for _, taintValue := range words {
			taint := &corev1.Taint{Key: "a", Value: taintValue, Effect: taintEffect}
			for _, effect := range effects {
				for _, key := range words {
					for _, value := range words {
						for _, operator := range []corev1.TolerationOperator{"", corev1.TolerationOpEqual, corev1.TolerationOpExists} {
							if key == "" && operator != corev1.TolerationOpExists {
								continue // refused by the API server
							}
							toleration := corev1.Toleration{Key: key, Operator: operator, Value: value, Effect: effect}
							want := toleration.ToleratesTaint(logr.Discard(), taint, false) || taintEffect == corev1.TaintEffectPreferNoSchedule
							if got := tolerated(taint, []corev1.Toleration{{Key: "other", Operator: "Exists"}, toleration}); got != want {
								t.Errorf("%+v with %+v: %v, the scheduler says %v", taint, toleration, got, want)
							}
							compared++
						}
					}
				}
			}
		}
	}
	if compared != 3*3*(4*3*3*3-2*4*3) {
		t.Errorf("%d combinations", compared)
	}
	if tolerated(&corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoExecute}, nil) {
		t.Error("a taint is tolerated without a toleration")
	}
}

func TestNumericTolerations(t *testing.T) {
	taint := &corev1.Taint{Key: "a", Value: "5", Effect: corev1.TaintEffectNoSchedule}
	for _, operator := range []corev1.TolerationOperator{corev1.TolerationOpLt, corev1.TolerationOpGt} {
		for _, value := range []string{"4", "5", "6"} {
			toleration := corev1.Toleration{Key: "a", Operator: operator, Value: value}
			want := toleration.ToleratesTaint(logr.Discard(), taint, true)
			if got := tolerated(taint, []corev1.Toleration{toleration}); got != want {
				t.Errorf("operator %s: %s against %s gives %v, the scheduler says %v", operator, value, taint.Value, got, want)
			}
		}
	}
}

func TestFits(t *testing.T) {
	now := metav1.Now()
	for _, test := range []struct {
		name     string
		node     func(*corev1.Node)
		template v1alpha1.PodTemplate
		zfs      *v1alpha1.ZFSTarget
		want     bool
	}{
		{name: "plain", want: true},
		{name: "cordoned", node: func(n *corev1.Node) { n.Spec.Unschedulable = true }},
		{name: "going", node: func(n *corev1.Node) { n.DeletionTimestamp = &now }},
		{name: "not ready", node: func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionFalse }},
		{name: "unknown", node: func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionUnknown }},
		{name: "without a word", node: func(n *corev1.Node) { n.Status.Conditions = nil }},
		{name: "selected", template: v1alpha1.PodTemplate{NodeSelector: map[string]string{"disk": "nvme"}}, want: true},
		{name: "another value", template: v1alpha1.PodTemplate{NodeSelector: map[string]string{"disk": "hdd"}}},
		{name: "one label of two", template: v1alpha1.PodTemplate{NodeSelector: map[string]string{"disk": "nvme", "zone": "a"}}},
		{name: "tainted", node: taint(corev1.TaintEffectNoSchedule)},
		{name: "tainted softly", node: taint(corev1.TaintEffectPreferNoSchedule), want: true},
		{name: "tainted and tolerated", node: taint(corev1.TaintEffectNoExecute),
			template: v1alpha1.PodTemplate{Tolerations: []corev1.Toleration{{Key: "lab", Operator: "Exists"}}}, want: true},
		{name: "one taint of two", node: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "lab", Effect: "NoSchedule"}, {Key: "x", Effect: "NoSchedule"}}
		}, template: v1alpha1.PodTemplate{Tolerations: []corev1.Toleration{{Key: "lab", Operator: "Exists"}}}},
		{name: "everything tolerated", node: taint(corev1.TaintEffectNoSchedule),
			template: v1alpha1.PodTemplate{Tolerations: []corev1.Toleration{{Operator: "Exists"}}}, want: true},
		{name: "zfs target, no agent", zfs: &v1alpha1.ZFSTarget{}},
		{name: "zfs target, agent", node: withAgent, zfs: &v1alpha1.ZFSTarget{}, want: true},
		{name: "zfs target, other nodes", node: withAgent, zfs: zfsOn("hdd")},
		{name: "zfs target, these nodes", node: withAgent, zfs: zfsOn("nvme"), want: true},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"disk": "nvme"}},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}, {Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
		if test.node != nil {
			test.node(node)
		}
		slots := []design.Slot{{}, {Target: v1alpha1.Target{ZFS: test.zfs}}}
		if got := Fits(node, test.template, slots); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

func taint(effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "lab", Value: "x", Effect: effect}} }
}

func withAgent(n *corev1.Node) { n.Labels[v1alpha1.LabelLabNode] = "true" }

func zfsOn(disk string) *v1alpha1.ZFSTarget {
	return &v1alpha1.ZFSTarget{Nodes: v1alpha1.NodeChoice{MatchLabels: map[string]string{"disk": disk}}}
}
