package experiment

import (
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/volume"
)

// State is all that is known of a benchmark.
type State struct {
	Now       time.Time
	Benchmark *v1alpha1.StorageBenchmark
	// Experiment is the hash of the current experiment, Slots its runs.
	Experiment string
	Slots      []Slot
	// ScheduledTime is the time of the schedule that the experiment belongs to; zero for the first.
	ScheduledTime time.Time
	// SpecError is set if the spec cannot be expanded or a gate does not compile.
	SpecError *SpecError
	// Limits are those of the cluster's admin, and TeardownGrace is how long a teardown that makes no progress holds the nodes.
	Limits        Limits
	TeardownGrace time.Duration
	// Neighbours are the other benchmarks of the namespace that have a share of the nodes and lines, or wait for one.
	Neighbours []Neighbour
	// Runs are all runs of this benchmark, those of earlier experiments too.
	Runs []v1alpha1.BenchmarkRun
	// Nodes that fit the pods, each with its line.
	Nodes []NodeState
	// Classes are the storage classes of the cluster.
	Classes []ClassState
	// Driver of OpenEBS, looked for if a target is on pools.
	Driver volume.DriverState
	// WithoutAgent says that no agent is installed.
	WithoutAgent bool
	// ClusterUnread says that the manager may read neither nodes nor StorageClasses: it knows of those that the spec names.
	ClusterUnread bool
	// Leases of the chosen nodes that somebody has, and those that the benchmark has on others.
	Leases []LeaseState
	// Waiting are the other benchmarks that stand in line for one of the chosen nodes.
	Waiting []Place
	// Pools are the BenchmarkPools that the benchmark keeps from one run to the next.
	Pools []KeptPool
	// Results are the ConfigMaps with results of this benchmark.
	Results []StoredExperiment
	// Standards that the gates are judged by, once the runs are over.
	Standards Standards
	// History is the ConfigMap with the history of this benchmark.
	History HistoryState
}

// HistoryState is the ConfigMap with the history of a benchmark.
type HistoryState struct {
	Exists bool
	// Folded are the results that have gone into it, by FoldKey.
	Folded []string
	// Foreign says that the name belongs to somebody else's ConfigMap.
	Foreign bool
}

// NodeState is a node on which pods of the benchmark could run.
type NodeState struct {
	Name string
	// Line is the number of benchmarks that have it or wait for it.
	Line int
}

// ClassState is a storage class.
type ClassState struct {
	Name    string
	Default bool
}

// LeaseState is the Lease on a node.
type LeaseState struct {
	Node       string
	Holder     string
	HolderName string
	// Since is when it was taken, Experiment for which one of the holder; empty if that is not known.
	Since      time.Time
	Experiment string
	// Vanished says that the holder does not exist any more. Abandoned says that nothing of it can be at work either.
	Vanished  bool
	Abandoned bool
}

// Place is a place in line.
type Place struct {
	UID   string
	Name  string
	Since time.Time
}

// StoredExperiment is a ConfigMap with results.
type StoredExperiment struct {
	ConfigMap   string
	Experiment  string
	Fingerprint string
	Verdict     string
	StoredAt    time.Time
	// Extended says that more repetitions are to be made, for the gates did not come to a verdict.
	Extended bool
	// ScheduledTime is the time of the schedule that they belong to.
	ScheduledTime time.Time
	// Foreign says that the name belongs to somebody else's ConfigMap.
	Foreign bool
}
