package experiment

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/foresee"
)

// Limits are the limits that the admin sets for benchmarks. The zero value limits only priorities, priority classes and tolerations.
type Limits struct {
	// MaxHold is how long a benchmark may hold its nodes, and the longest spec.deadline.
	MaxHold time.Duration
	// MaxStartDeadline is the longest startDeadline that a phase may request: a node is idle while a pod waits to start.
	MaxStartDeadline time.Duration
	// MaxPriority is the highest spec.priority of a namespace, and QueueWeights are the shares of the queues, by namespace. The key "*" is
	// for all other namespaces. The defaults are priority 0 and equal shares.
	MaxPriority, QueueWeights map[string]int32
	// PriorityClasses are the PriorityClasses that workload pods may name.
	PriorityClasses []string
	// TolerationKeys are the taint keys that workload pods may tolerate. A key that ends in '*' matches a prefix. Empty allows
	// every key except those of Kubernetes itself.
	TolerationKeys []string
	// NodesPerNamespace is the number of nodes that the benchmarks of a namespace may hold and queue for at the same time.
	NodesPerNamespace int
	// BenchmarksPerNamespace is the number of benchmarks of a namespace that may hold nodes or be queued at the same time.
	BenchmarksPerNamespace int
	// ForbidKeeping forbids pools that hold their disks while no run uses them: because of target.zfs.keepFor between scheduled
	// experiments, or because of spec.retain after a run.
	ForbidKeeping bool
}

// DefaultLimits suit a cluster with independent tenants.
func DefaultLimits() Limits {
	return Limits{MaxHold: 24 * time.Hour, MaxStartDeadline: time.Hour, NodesPerNamespace: 8, BenchmarksPerNamespace: 4}
}

// PerNamespace reports whether namespaces have a limited share of the nodes and queues.
func (l Limits) PerNamespace() bool { return l.BenchmarksPerNamespace > 0 || l.NodesPerNamespace > 0 }

// Validate returns an error for limits that would let nothing run, or that contain mistakes.
func (l Limits) Validate() error {
	for _, key := range l.TolerationKeys {
		if name := strings.TrimSuffix(key, "*"); name == "" || strings.ContainsAny(name, "* \t") {
			return fmt.Errorf("toleration key %q: write the key of a taint, such as dedicated, or a prefix followed by '*', such as example.com/*",
				key)
		}
	}
	if slices.Contains(l.PriorityClasses, "") {
		return fmt.Errorf("a priority class without a name: write a comma-separated list of PriorityClasses")
	}
	if l.MaxStartDeadline > 0 && l.MaxStartDeadline < foresee.DefaultStartDeadline {
		return fmt.Errorf("the maximum startDeadline %s is below the default, %s: allow at least the default, or write 0 for "+
			"no limit",
			l.MaxStartDeadline, foresee.DefaultStartDeadline)
	}
	if l.MaxHold < 0 || l.MaxStartDeadline < 0 || l.NodesPerNamespace < 0 || l.BenchmarksPerNamespace < 0 {
		return fmt.Errorf("a limit is negative: write 0 for no limit")
	}
	return l.validateShares()
}

// Check returns an error for a spec that could never run within the limits.
func (l Limits) Check(spec *v1alpha1.StorageBenchmarkSpec, slots []design.Slot) error {
	if err := l.checkTime("spec.deadline", spec.Deadline, l.MaxHold, "max-hold"); err != nil {
		return err
	}
	for i := range slots {
		for _, phase := range slots[i].Phases {
			if phase.Deadline != nil && phase.Deadline.Duration.Duration != foresee.DefaultDeadline {
				if err := l.checkTime(fmt.Sprintf("deadline of phase %s", phase.Name), phase.Deadline, l.MaxHold, "max-hold"); err != nil {
					return err
				}
			}
			if err := l.checkTime(fmt.Sprintf("startDeadline of phase %s", phase.Name), phase.StartDeadline, l.MaxStartDeadline,
				"max-start-deadline"); err != nil {
				return err
			}
		}
	}
	if err := l.checkKeeping(spec, slots); err != nil {
		return err
	}
	if count := nodeCount(State{Slots: slots}); l.NodesPerNamespace > 0 && count > l.NodesPerNamespace {
		return exceeds("target.zfs.nodes.count is %d, but the benchmarks of a namespace may hold %d nodes at the same time "+
			"(nodes-per-namespace): request fewer nodes", count, l.NodesPerNamespace)
	}
	if class := spec.PodTemplate.PriorityClassName; class != "" && !slices.Contains(l.PriorityClasses, class) {
		return exceeds("podTemplate.priorityClassName is %s, and %s (priority-classes): remove it", class,
			oneOf("no PriorityClass may be named", "only these PriorityClasses may be named", l.PriorityClasses))
	}
	for _, toleration := range spec.PodTemplate.Tolerations {
		if err := l.checkToleration(toleration); err != nil {
			return err
		}
	}
	return nil
}

func (l Limits) checkKeeping(spec *v1alpha1.StorageBenchmarkSpec, slots []design.Slot) error {
	if l.ForbidKeeping && slices.ContainsFunc(slots, func(slot design.Slot) bool { return design.KeepsForSchedule(&slot) }) {
		return exceeds("target.zfs.keepFor holds disks between experiments, which is not allowed here (keep-pools): remove keepFor")
	}
	if slices.ContainsFunc(slots, func(slot design.Slot) bool { return l.retain(spec.Retain, &slot) != spec.Retain }) {
		return exceeds("retain: %s holds the disks of a zfs target after its runs, which is not allowed here (keep-pools): write retain: Never",
			spec.Retain)
	}
	return nil
}

// retain returns the retain policy that a run of a slot gets. The policy in the spec may have changed since it was checked, because it is
// not part of the experiment's hash.
func (l Limits) retain(asked v1alpha1.RetainPolicy, slot *design.Slot) v1alpha1.RetainPolicy {
	if l.ForbidKeeping && slot.Target.ZFS != nil && asked != "" {
		return v1alpha1.RetainNever
	}
	return asked
}

func (l Limits) checkTime(field string, asked *v1alpha1.Duration, most time.Duration, limit string) error {
	if most == 0 || asked == nil || asked.Duration.Duration <= most {
		return nil
	}
	return exceeds("the %s is %s, but at most %s is allowed (%s): make it shorter", field, asked, most, limit)
}

// kubernetesTaints are the key prefixes of the taints that Kubernetes itself uses to repel or evict pods.
var kubernetesTaints = []string{"node.kubernetes.io/", "node-role.kubernetes.io/", "node.cloudprovider.kubernetes.io/",
	"node.cluster.x-k8s.io/"}

func (l Limits) checkToleration(toleration corev1.Toleration) error {
	key := toleration.Key
	allowed := slices.ContainsFunc(l.TolerationKeys, func(pattern string) bool {
		beginning, found := strings.CutSuffix(pattern, "*")
		return key == pattern || found && strings.HasPrefix(key, beginning)
	})
	switch {
	case key == "":
		return exceeds("podTemplate.tolerations has one without a key, which tolerates every taint: set the key of the taint")
	case len(l.TolerationKeys) > 0 && !allowed:
		return exceeds("podTemplate.tolerations names the taint %s, and only these may be tolerated (toleration-keys): %s", key,
			strings.Join(l.TolerationKeys, ", "))
	case len(l.TolerationKeys) == 0 && slices.ContainsFunc(kubernetesTaints, func(beginning string) bool {
		return strings.HasPrefix(key, beginning)
	}):
		return exceeds("podTemplate.tolerations names the taint %s, which Kubernetes itself uses to keep pods off a node "+
			"(toleration-keys): remove it", key)
	}
	return nil
}

func oneOf(none, some string, names []string) string {
	if len(names) == 0 {
		return none
	}
	return some + ": " + strings.Join(names, ", ")
}

// exceeds returns an error that says who sets the limit, because a user cannot raise it.
func exceeds(format string, values ...any) *design.SpecError {
	return design.Refuse(v1alpha1.ReasonLimitExceeded, format+", or ask the cluster's admin, who sets this limit", values...)
}
