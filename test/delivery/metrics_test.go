package delivery

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const monitored = "metrics.serviceMonitor.enabled=true,metrics.serviceMonitor.labels.release=kube,agent.enabled=true," +
	"agent.metrics.enabled=true,agent.metrics.port=9443,agent.metrics.serviceMonitor.enabled=true,agent.metrics.serviceMonitor.labels.release=kube"

// TestMonitors: the agent may check who reads its metrics, and nothing more. The manager and the agent have a ServiceMonitor with the
// labels of the values.
func TestMonitors(t *testing.T) {
	got, without := helm(t, "--set", monitored), helm(t, "--set", "agent.enabled=true")
	container := get[appsv1.DaemonSet](t, got, "DaemonSet storagebench-agent/storagebench-agent").Spec.Template.Spec.Containers[0]
	service := get[corev1.Service](t, got, "Service storagebench-agent/storagebench-agent-metrics")
	if flagsOf(container)["metrics-bind-address"] != ":9443" || container.Ports[1].ContainerPort != 9443 ||
		service.Spec.Ports[0].Port != 9443 || service.Spec.ClusterIP != "None" {
		t.Errorf("flags %v, ports %v, service %v", flagsOf(container), container.Ports, service.Spec)
	}
	binding := get[rbacv1.ClusterRoleBinding](t, got, "ClusterRoleBinding /storagebench-agent-metrics-auth")
	if binding.RoleRef.Name != "storagebench-metrics-auth" || binding.Subjects[0].Name != "storagebench-agent" ||
		binding.Subjects[0].Namespace != "storagebench-agent" {
		t.Errorf("the agent is bound as %+v", binding)
	}
	for _, key := range []string{"ServiceMonitor " + namespace + "/storagebench-metrics",
		"ServiceMonitor storagebench-agent/storagebench-agent-metrics"} {
		monitor := got[key]
		if monitor == nil {
			t.Fatalf("not rendered: %s", key)
		}
		endpoints, _, err := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
		if err != nil || len(endpoints) != 1 || endpoints[0].(map[string]any)["honorLabels"] != true || monitor.GetLabels()["release"] != "kube" {
			t.Errorf("%s: %v, %v, labels %v", key, err, endpoints, monitor.GetLabels())
		}
		if without[key] != nil {
			t.Errorf("by default there is %s", key)
		}
	}
	if without["Service storagebench-agent/storagebench-agent-metrics"] != nil ||
		len(get[appsv1.DaemonSet](t, without, "DaemonSet storagebench-agent/storagebench-agent").Spec.Template.Spec.Containers[0].Ports) != 1 {
		t.Error("by default the agent serves metrics")
	}
}
