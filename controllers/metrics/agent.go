package metrics

import (
	"errors"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

var (
	agentDisks = define(typeGauge, "agent_disks", "Disks in the pools of a node, by state as ZFS reports it, or LEFT after leaving.",
		"node", "state")
	diskErrors = define(typeGauge, "agent_disk_errors",
		"Errors that ZFS counts for the disks in the pools of a node, by kind (read, write, checksum). They go with the pool.", "node", "kind")
	hanging = define(typeGauge, "agent_hanging", "Commands, and checks of disks, that hang in the kernel of a node, by kind (command, disk).",
		"node", "kind")
	refusals = define(typeCounter, "agent_refusals_total",
		"Pools and operations that the agent has refused since it was started, by the reason of their conditions.", "node", "reason")
)

// refusing are the reasons for which the agent refuses to touch things that are not granted to it or not its own.
var refusing = []string{v1alpha1.ReasonPoolDeviceRefused, v1alpha1.ReasonPoolDeviceDenied, v1alpha1.ReasonPoolNameTaken,
	v1alpha1.ReasonPoolConflict, v1alpha1.ReasonPoolOlderSpec, v1alpha1.ReasonPoolNotAllowed, v1alpha1.ReasonParameterNotAllowed,
	v1alpha1.ReasonGUIDMismatch, v1alpha1.ReasonDeviceInPool, v1alpha1.ReasonTargetNotEmpty, v1alpha1.ReasonDatasetInUse}

// Agent contains what the metrics of an agent need.
type Agent struct {
	// Node that the agent runs on.
	Node string
	// Version of the agent.
	Version string
	// Hanging returns the numbers of commands and of checks of disks that hang in the kernel.
	Hanging func() (commands, disks int)
}

// SetupWithManager registers the metrics of an agent.
func (a Agent) SetupWithManager(manager ctrl.Manager, into prometheus.Registerer) error {
	refused := refusals.counter()
	for _, reason := range refusing {
		refused.WithLabelValues(a.Node, reason)
	}
	count := func(before, after []metav1.Condition) {
		if reason := refusal(before, after); reason != "" {
			refused.WithLabelValues(a.Node, reason).Inc()
		}
	}
	from := &source{cache: manager.GetCache(), reader: manager.GetCache()}
	from.watched = map[client.Object]toolscache.ResourceEventHandlerFuncs{
		&v1alpha1.BenchmarkPool{}: updates(func(before, after *v1alpha1.BenchmarkPool) {
			count(before.Status.Conditions, after.Status.Conditions)
		}),
		&v1alpha1.PoolOperation{}: updates(func(before, after *v1alpha1.PoolOperation) {
			count(before.Status.Conditions, after.Status.Conditions)
		}),
	}
	from.parts = []func(chan<- prometheus.Metric) error{a.hanging, a.disks(from)}
	return errors.Join(build(into, "agent", a.Node, a.Version), manager.Add(from), into.Register(from), into.Register(refused))
}

// refusal returns the reason if a change of the conditions means that the agent now refuses an object, and otherwise "".
func refusal(before, after []metav1.Condition) string {
	old, ready := meta.FindStatusCondition(before, v1alpha1.ConditionReady), meta.FindStatusCondition(after, v1alpha1.ConditionReady)
	if ready == nil || !slices.Contains(refusing, ready.Reason) || old != nil && old.Reason == ready.Reason {
		return ""
	}
	return ready.Reason
}

func (a Agent) hanging(out chan<- prometheus.Metric) error {
	commands, disks := a.Hanging()
	out <- hanging.gauge(float64(commands), a.Node, "command")
	out <- hanging.gauge(float64(disks), a.Node, "disk")
	return nil
}

// disks counts the vdevs without children, by state, and their errors.
func (a Agent) disks(from *source) func(chan<- prometheus.Metric) error {
	return func(out chan<- prometheus.Metric) error {
		var pools v1alpha1.BenchmarkPoolList
		if err := from.list(&pools); err != nil {
			return err
		}
		states, problems := tally{}, tally{{a.Node, "read"}: 0, {a.Node, "write"}: 0, {a.Node, "checksum"}: 0}
		for i := range pools.Items {
			parents := map[string]bool{}
			for _, vdev := range pools.Items[i].Status.Vdevs {
				parents[vdev.Parent] = true
			}
			for _, vdev := range pools.Items[i].Status.Vdevs {
				if parents[vdev.Name] {
					continue
				}
				states[[2]string{a.Node, vdev.State}]++
				problems[[2]string{a.Node, "read"}] += float64(vdev.ReadErrors)
				problems[[2]string{a.Node, "write"}] += float64(vdev.WriteErrors)
				problems[[2]string{a.Node, "checksum"}] += float64(vdev.ChecksumErrors)
			}
		}
		states.show(out, agentDisks)
		problems.show(out, diskErrors)
		return nil
	}
}
