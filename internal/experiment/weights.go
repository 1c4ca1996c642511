package experiment

import (
	"fmt"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// anyNamespace is the key of the limits of all namespaces that are not named.
const anyNamespace = "*"

// Weight is the share of the queues that a namespace gets, relative to the other namespaces that wait.
func (l Limits) Weight(namespace string) int64 {
	weight, named := l.QueueWeights[namespace]
	if !named {
		weight = l.QueueWeights[anyNamespace]
	}
	return max(1, int64(weight))
}

func (l Limits) maxPriority(namespace string) int32 {
	most, named := l.MaxPriority[namespace]
	if !named {
		most = l.MaxPriority[anyNamespace]
	}
	return most
}

// priority returns the requested priority, or the limit of the namespace if that is lower: a reduced limit also applies to benchmarks that
// are already queued.
func (l Limits) priority(namespace string, requested int32) int32 {
	return min(requested, l.maxPriority(namespace))
}

// CheckPriority returns an error if the namespace may not request the priority of the benchmark.
func (l Limits) CheckPriority(benchmark *v1alpha1.StorageBenchmark) error {
	requested, most := benchmark.Spec.Priority, l.maxPriority(benchmark.Namespace)
	if requested <= most {
		return nil
	}
	return exceeds("spec.priority is %d, and namespace %s may request at most %d (max-priority): set spec.priority to at most %[3]d",
		requested, benchmark.Namespace, most)
}

// validateShares returns an error for priorities and weights that make no sense.
func (l Limits) validateShares() error {
	for namespace, most := range l.MaxPriority {
		if namespace == "" || most < 0 || most > 1000 {
			return fmt.Errorf("the maximum priority %q=%d: write NAMESPACE=NUMBER, or *=NUMBER for all others, with a number from 0 to 1000",
				namespace, most)
		}
	}
	for namespace, weight := range l.QueueWeights {
		if namespace == "" || weight < 1 || weight > Round {
			return fmt.Errorf("the queue weight %q=%d: write NAMESPACE=NUMBER, or *=NUMBER for all others, with a number from 1 to %d",
				namespace, weight, Round)
		}
	}
	return nil
}
