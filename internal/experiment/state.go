package experiment

import (
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/foresee"
	"github.com/storagebench/storagebench/internal/verdict"
	"github.com/storagebench/storagebench/internal/volume"
)

// State is the observed state of a benchmark.
type State struct {
	Now       time.Time
	Benchmark *v1alpha1.StorageBenchmark
	// Experiment is the hash of the current experiment. Slots are its runs.
	Experiment string
	Slots      []design.Slot
	// Lineage is the hash that the experiments of the schedule have in common. Empty without a schedule.
	Lineage string
	// ScheduledTime is the scheduled time that the experiment belongs to. Zero for the first.
	ScheduledTime time.Time
	// SpecError is set if the spec cannot be expanded or a gate does not compile.
	SpecError *design.SpecError
	// TargetDigest is the digest of the StorageTargets of the experiment. TargetError is set if they are missing or have changed.
	TargetDigest string
	TargetError  *design.SpecError
	// Undecidable says which gates cannot be decided with the repetitions of the spec. Empty if all can.
	Undecidable string
	// Warnings are about settings that this release does not know, and settings that mean less than they seem to. They are shown until the
	// experiment begins.
	Warnings []foresee.Warning
	// Rehearsed is true if runs of the variants were validated with the API server in this reconciliation.
	Rehearsed bool
	// Images are the runner images of new experiments.
	Images Images
	// Limits are set by the admin. TeardownGrace is how long a teardown without progress holds the nodes.
	Limits        Limits
	TeardownGrace time.Duration
	// Neighbours are the other benchmarks of the namespace that use part of its share of nodes and queues, or wait for it.
	Neighbours []Neighbour
	// Runs are all runs of this benchmark, including those of earlier experiments, with as much of their specs as package trim keeps.
	Runs []v1alpha1.BenchmarkRun
	// Nodes are the nodes that fit the pods, each with the length of its queue.
	Nodes []NodeState
	// Classes are the storage classes of the cluster.
	Classes []ClassState
	// Drivers are the drivers of the provisioners, by provisioner. They are observed only if a target uses pools.
	Drivers map[string]volume.DriverState
	// WithoutAgent is true if no agent is installed.
	WithoutAgent bool
	// ClusterUnread is true if the manager may read neither nodes nor StorageClasses. It then knows only those that the spec names.
	ClusterUnread bool
	// Leases are all Leases that this benchmark holds, and those that others hold on the chosen nodes.
	Leases []LeaseState
	// Waiting are the other benchmarks in the queue for one of the chosen nodes: all of them, or only the first PlacesShown ahead of this
	// one.
	Waiting []Place
	// Turn is the turn in the queue that the benchmark gets if it joins now.
	Turn int64
	// Pools are the BenchmarkPools that the benchmark keeps between runs.
	Pools []KeptPool
	// Results are the ConfigMaps with results of this benchmark.
	Results []StoredExperiment
	// Standards are the documents that gates use once the runs have finished.
	Standards verdict.Standards
	// History is the ConfigMap with the history of this benchmark.
	History HistoryState
}

// HistoryState is the ConfigMap with the history of a benchmark.
type HistoryState struct {
	Exists bool
	// Folded are the FoldKeys of the results that are merged into it.
	Folded []string
	// Foreign is true if a ConfigMap of that name belongs to another owner.
	Foreign bool
}

// NodeState is a node on which pods of the benchmark could run.
type NodeState struct {
	Name string
	// Load is the number of benchmarks that hold the node or wait for it.
	Load int
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
	// Since is when the Lease was taken, Experiment the holder's experiment at that time, and Turn its turn in the queue. Empty if
	// unknown.
	Since      time.Time
	Experiment string
	Turn       int64
	// Vanished is true if the holder no longer exists. Abandoned is true if, in addition, nothing of it can be running.
	Vanished  bool
	Abandoned bool
}

// StoredExperiment is a ConfigMap with results.
type StoredExperiment struct {
	ConfigMap   string
	Experiment  string
	Fingerprint string
	Verdict     string
	StoredAt    time.Time
	// Extended is true if more repetitions are planned, because the gates were undecided.
	Extended bool
	// ScheduledTime is the scheduled time that the results belong to.
	ScheduledTime time.Time
	// Foreign is true if a ConfigMap of that name belongs to another owner.
	Foreign bool
}
