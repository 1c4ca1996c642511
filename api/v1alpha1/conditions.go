package v1alpha1

// Condition types. kstatus reads Ready, Reconciling and Stalled: Reconciling and Stalled are present only while True.
const (
	// ConditionReady means that the object matches its spec. A benchmark or run is Ready once it has finished; a benchmark with gatePolicy
	// Enforce, once it has passed.
	ConditionReady = "Ready"
	// ConditionReconciling means that the controller is working or waiting; see its message.
	ConditionReconciling = "Reconciling"
	// ConditionStalled means that no progress is possible until a user changes something; see its message.
	ConditionStalled = "Stalled"
	// ConditionComplete means that all runs have finished and the verdict is set.
	ConditionComplete = "Complete"
	// ConditionPassed is True or False after the verdict Passed or Failed. It is Unknown before the verdict, and if that is Inconclusive or
	// Invalid.
	ConditionPassed = "Passed"
	// ConditionValid is True if the measurements of a run can be used.
	ConditionValid = "Valid"
)

// Condition and event reasons.
const (
	// Reasons of a benchmark.
	ReasonProgressing          = "Progressing"
	ReasonQueued               = "Queued"
	ReasonSuspended            = "Suspended"
	ReasonSuperseded           = "Superseded"
	ReasonScheduled            = "Scheduled"
	ReasonScheduleInvalid      = "ScheduleInvalid"
	ReasonTimeSkipped          = "TimeSkipped"
	ReasonCleaningUp           = "CleaningUp"
	ReasonFinished             = "Finished"
	ReasonNotPassed            = "NotPassed"
	ReasonDeadlineExceeded     = "DeadlineExceeded"
	ReasonExpansionTooLarge    = "ExpansionTooLarge"
	ReasonMatrixInvalid        = "MatrixInvalid"
	ReasonGateInvalid          = "GateInvalid"
	ReasonSpecInvalid          = "SpecInvalid"
	ReasonNotSupported         = "NotSupported"
	ReasonNoNode               = "NoNode"
	ReasonTargetNotFound       = "TargetNotFound"
	ReasonTargetChanged        = "TargetChanged"
	ReasonStorageClassNotFound = "StorageClassNotFound"
	ReasonNoDefaultClass       = "NoDefaultStorageClass"
	ReasonDriverNotInstalled   = "DriverNotInstalled"
	ReasonAgentNotInstalled    = "AgentNotInstalled"
	ReasonNameTaken            = "NameTaken"
	ReasonActionFailed         = "ActionFailed"
	ReasonLimitExceeded        = "LimitExceeded"
	ReasonNamespaceLimit       = "NamespaceLimit"

	// Reasons of a run.
	ReasonPreparingVolume        = "PreparingVolume"
	ReasonVolumeNotBound         = "VolumeNotBound"
	ReasonVolumeLost             = "VolumeLost"
	ReasonPropertiesDiffer       = "PropertiesDiffer"
	ReasonPhaseRunning           = "PhaseRunning"
	ReasonPodUnschedulable       = "PodUnschedulable"
	ReasonPodRejected            = "PodRejected"
	ReasonImagePullFailed        = "ImagePullFailed"
	ReasonPodNotStarted          = "PodNotStarted"
	ReasonPodEvicted             = "PodEvicted"
	ReasonPodLost                = "PodLost"
	ReasonPodFailed              = "PodFailed"
	ReasonNodeRebooted           = "NodeRebooted"
	ReasonExecutorLost           = "ExecutorLost"
	ReasonPhaseDeadlineExceeded  = "PhaseDeadlineExceeded"
	ReasonResultMissing          = "ResultMissing"
	ReasonResultCorrupt          = "ResultCorrupt"
	ReasonResultForeign          = "ResultForeign"
	ReasonResultUnreadable       = "ResultUnreadable"
	ReasonPhaseInvalid           = "PhaseInvalid"
	ReasonWorkloadChanged        = "WorkloadChanged"
	ReasonLeaseLost              = "LeaseLost"
	ReasonOperationDidNotOverlap = "OperationDidNotOverlap"
	ReasonParameterNotSet        = "ParameterNotSet"
	ReasonMeasured               = "Measured"
	ReasonWaitingForPeers        = "WaitingForPeers"
	ReasonPeerInvalid            = "PeerInvalid"
	ReasonOutOfStep              = "OutOfStep"
	ReasonTearingDown            = "TearingDown"
	ReasonPodsNotStopped         = "PodsNotStopped"
	ReasonOperationNotStopped    = "OperationNotStopped"
	ReasonTeardownStuck          = "TeardownStuck"

	// Reasons of a pool.
	ReasonPoolReady          = "PoolReady"
	ReasonPoolChanging       = "PoolChanging"
	ReasonPoolNameTaken      = "PoolNameTaken"
	ReasonPoolConflict       = "PoolConflict"
	ReasonPoolDeviceRefused  = "DeviceRefused"
	ReasonPoolDeviceDenied   = "DeviceNotAllowed"
	ReasonPoolLost           = "PoolLost"
	ReasonPoolDrifted        = "Drifted"
	ReasonPoolDisksDiffer    = "DisksDiffer"
	ReasonPoolUnhealthy      = "Unhealthy"
	ReasonPoolRebuilding     = "Rebuilding"
	ReasonPoolInUse          = "PoolInUse"
	ReasonPoolDatasetsRemain = "DatasetsRemain"
	ReasonPoolLeftBehind     = "LeftBehind"
	ReasonPoolNodeGone       = "NodeGone"
	ReasonPoolOlderSpec      = "OlderSpec"
	ReasonPoolStopsNode      = "StopsNode"

	// Reasons of an operation.
	ReasonOperationRunning       = "Running"
	ReasonSucceeded              = "Succeeded"
	ReasonCancelled              = "Cancelled"
	ReasonPoolNotReady           = "PoolNotReady"
	ReasonPoolNotAllowed         = "PoolNotAllowed"
	ReasonScanRunning            = "ScanRunning"
	ReasonStoppedElsewhere       = "StoppedElsewhere"
	ReasonSnapshotExists         = "SnapshotExists"
	ReasonSnapshotNotFound       = "SnapshotNotFound"
	ReasonDatasetExists          = "DatasetExists"
	ReasonDatasetNotFound        = "DatasetNotFound"
	ReasonDatasetInUse           = "DatasetInUse"
	ReasonTargetNotEmpty         = "TargetNotEmpty"
	ReasonDeviceInPool           = "DeviceInPool"
	ReasonDeviceNotInPool        = "DeviceNotInPool"
	ReasonGUIDMismatch           = "GUIDMismatch"
	ReasonAgentDied              = "AgentDied"
	ReasonObservationInterrupted = "ObservationInterrupted"
	ReasonAgentRestarted         = "AgentRestarted"
	ReasonParameterNotAllowed    = "ParameterNotAllowed"
	ReasonParameterNotFound      = "ParameterNotFound"
	ReasonParameterInterrupted   = "ParameterInterrupted"
)

// Labels, annotations and finalizers.
const (
	// LabelBenchmark is the name of the benchmark, shortened to 63 characters, on every object created for it.
	LabelBenchmark = "storagebench.dev/benchmark"
	// LabelBenchmarkUID is the UID of the benchmark.
	LabelBenchmarkUID = "storagebench.dev/benchmark-uid"
	// LabelRun is the name of the run.
	LabelRun = "storagebench.dev/run"
	// LabelRunUID is the UID of the run. It distinguishes a run from an earlier run of the same name.
	LabelRunUID = "storagebench.dev/run-uid"
	// LabelNamespace is the namespace of the run, on cluster-scoped objects created for it.
	LabelNamespace = "storagebench.dev/namespace"
	// LabelPhase is the name of the phase.
	LabelPhase = "storagebench.dev/phase"
	// LabelExperiment is the hash of the experiment.
	LabelExperiment = "storagebench.dev/experiment"
	// LabelNodeLease marks the Leases that benchmarks use to reserve nodes.
	LabelNodeLease = "storagebench.dev/node-lease"
	// AnnotationRerun reruns a finished benchmark when its value changes.
	AnnotationRerun = "storagebench.dev/rerun"
	// AnnotationScheduledTime is the time of spec.schedule that a run or results belong to. The first experiment has none.
	AnnotationScheduledTime = "storagebench.dev/scheduled-time"
	// AnnotationHolder names the holder of a node's Lease, as NAMESPACE/NAME.
	AnnotationHolder = "storagebench.dev/holder"
	// AnnotationHeldFor is the experiment for which the holder took the node's Lease.
	AnnotationHeldFor = "storagebench.dev/held-for"
	// AnnotationTurn is the holder's turn in the queue of the node. Benchmarks that join the queue get a turn relative to it.
	AnnotationTurn = "storagebench.dev/turn"
	// AnnotationNode is the node of a Lease.
	AnnotationNode = "storagebench.dev/node"
	// AnnotationFingerprint identifies the inputs that results were computed from.
	AnnotationFingerprint = "storagebench.dev/fingerprint"
	// AnnotationStartAt is the time at which the runs of a group agreed to start a phase.
	AnnotationStartAt = "storagebench.dev/start-at"
	// AnnotationFolded is set on the history of a benchmark and lists the results merged into it, as EXPERIMENT:FINGERPRINT.
	AnnotationFolded = "storagebench.dev/folded"
	// AnnotationQuestion is set on results. It is a hash of the measured configuration, the same for each repetition of an
	// experiment.
	AnnotationQuestion = "storagebench.dev/question"
	// AnnotationVerdict is the verdict of the results.
	AnnotationVerdict = "storagebench.dev/verdict"
	// AnnotationReleasePool releases a deleted BenchmarkPool or PoolOperation even though it may leave traces. Its value is the node's name.
	AnnotationReleasePool = "storagebench.dev/release-pool"
	// AnnotationAcceptSpec makes the agent apply a spec that is older than the one last applied to the pool. Its value is the generation of
	// the object.
	AnnotationAcceptSpec = "storagebench.dev/accept-spec"
	// AnnotationReport is set on a BenchmarkPool and names a dataset that another component created, by its path. The status then reports the
	// properties of that dataset too. Setting it triggers a reconciliation.
	AnnotationReport = "storagebench.dev/report-dataset"
	// AnnotationRescan is set on the ZFSNode of the OpenEBS driver. A change of that object makes the driver look for new pools.
	AnnotationRescan = "storagebench.dev/rescan-for"
	// LabelReset is set on a BenchmarkPool that is kept between runs and says what is recreated for each run: Dataset or None. The
	// pool's run labels name the run that uses it, or used it last.
	LabelReset = "storagebench.dev/reset"
	// AnnotationKeptFrom is the run that used a kept BenchmarkPool before, and AnnotationKeptFromUID its UID. A new pool has
	// neither.
	AnnotationKeptFrom    = "storagebench.dev/kept-from"
	AnnotationKeptFromUID = "storagebench.dev/kept-from-uid"
	// LabelLineage is set on the runs of experiments that pass a pool on to each other, and on that pool. It is a hash of what they measure,
	// the same at each scheduled time.
	LabelLineage = "storagebench.dev/lineage"
	// AnnotationPoolAge is set on such a pool. It is the number of experiments and runs that have used the pool, as EXPERIMENTS/RUNS,
	// including the current ones. A pool without it counts as 1/1.
	AnnotationPoolAge = "storagebench.dev/pool-age"
	// LabelLabNode with the value "true" marks the nodes that the agent may run on.
	LabelLabNode = "storagebench.dev/lab"
	// FieldNodeName selects the pools and operations of one node.
	FieldNodeName = "spec.nodeName"
	// FinalizerTeardown keeps an object until everything created for it is gone.
	FinalizerTeardown = "storagebench.dev/teardown"
)
