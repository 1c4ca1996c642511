package v1alpha1

// Condition types. Ready, Reconciling and Stalled are read by kstatus: Reconciling and Stalled are present only while True.
const (
	// ConditionReady: the object is as its spec wants it; for a benchmark and a run, that it has ended.
	ConditionReady = "Ready"
	// ConditionReconciling: work goes on, or waits for something that is named.
	ConditionReconciling = "Reconciling"
	// ConditionStalled: nothing will happen until somebody changes something.
	ConditionStalled = "Stalled"
	// ConditionComplete: all runs have ended and the verdict is out.
	ConditionComplete = "Complete"
	// ConditionPassed: True and False are verdicts; Unknown is no verdict yet, Inconclusive or Invalid.
	ConditionPassed = "Passed"
	// ConditionValid: whether the numbers of a run can be used.
	ConditionValid = "Valid"
)

// Condition and event reasons.
const (
	// Of a benchmark.
	ReasonProgressing          = "Progressing"
	ReasonQueued               = "Queued"
	ReasonSuspended            = "Suspended"
	ReasonSuperseded           = "Superseded"
	ReasonScheduled            = "Scheduled"
	ReasonScheduleInvalid      = "ScheduleInvalid"
	ReasonTimeSkipped          = "TimeSkipped"
	ReasonCleaningUp           = "CleaningUp"
	ReasonFinished             = "Finished"
	ReasonDeadlineExceeded     = "DeadlineExceeded"
	ReasonExpansionTooLarge    = "ExpansionTooLarge"
	ReasonMatrixInvalid        = "MatrixInvalid"
	ReasonGateInvalid          = "GateInvalid"
	ReasonSpecInvalid          = "SpecInvalid"
	ReasonNotSupported         = "NotSupported"
	ReasonNoNode               = "NoNode"
	ReasonStorageClassNotFound = "StorageClassNotFound"
	ReasonNoDefaultClass       = "NoDefaultStorageClass"
	ReasonDriverNotInstalled   = "DriverNotInstalled"
	ReasonAgentNotInstalled    = "AgentNotInstalled"
	ReasonNameTaken            = "NameTaken"
	ReasonActionFailed         = "ActionFailed"
	ReasonLimitExceeded        = "LimitExceeded"
	ReasonNamespaceLimit       = "NamespaceLimit"

	// Of a run.
	ReasonPreparingVolume       = "PreparingVolume"
	ReasonVolumeNotBound        = "VolumeNotBound"
	ReasonVolumeLost            = "VolumeLost"
	ReasonPropertiesDiffer      = "PropertiesDiffer"
	ReasonPhaseRunning          = "PhaseRunning"
	ReasonPodUnschedulable      = "PodUnschedulable"
	ReasonPodRejected           = "PodRejected"
	ReasonImagePullFailed       = "ImagePullFailed"
	ReasonPodNotStarted         = "PodNotStarted"
	ReasonPodEvicted            = "PodEvicted"
	ReasonPodLost               = "PodLost"
	ReasonPodFailed             = "PodFailed"
	ReasonNodeRebooted          = "NodeRebooted"
	ReasonJobLost               = "JobLost"
	ReasonPhaseDeadlineExceeded = "PhaseDeadlineExceeded"
	ReasonResultMissing         = "ResultMissing"
	ReasonResultCorrupt         = "ResultCorrupt"
	ReasonResultForeign         = "ResultForeign"
	ReasonResultUnreadable      = "ResultUnreadable"
	ReasonPhaseInvalid          = "PhaseInvalid"
	ReasonWorkloadChanged       = "WorkloadChanged"
	ReasonLeaseLost             = "LeaseLost"
	ReasonOperationNotBeside    = "OperationNotBeside"
	ReasonParameterNotSet       = "ParameterNotSet"
	ReasonMeasured              = "Measured"
	ReasonWaitingForPeers       = "WaitingForPeers"
	ReasonPeerInvalid           = "PeerInvalid"
	ReasonOutOfStep             = "OutOfStep"
	ReasonTearingDown           = "TearingDown"
	ReasonTeardownStuck         = "TeardownStuck"

	// Of a pool.
	ReasonPoolReady          = "PoolReady"
	ReasonPoolChanging       = "PoolChanging"
	ReasonPoolNameTaken      = "PoolNameTaken"
	ReasonPoolConflict       = "PoolConflict"
	ReasonPoolDeviceRefused  = "DeviceRefused"
	ReasonPoolDeviceDenied   = "DeviceNotAllowed"
	ReasonPoolLost           = "PoolLost"
	ReasonPoolDrifted        = "Drifted"
	ReasonPoolUnhealthy      = "Unhealthy"
	ReasonPoolRebuilding     = "Rebuilding"
	ReasonPoolInUse          = "PoolInUse"
	ReasonPoolDatasetsRemain = "DatasetsRemain"
	ReasonPoolLeftBehind     = "LeftBehind"
	ReasonPoolNodeGone       = "NodeGone"
	ReasonPoolOlderSpec      = "OlderSpec"

	// Of an operation.
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
	ReasonParameterNotAllowed    = "ParameterNotAllowed"
	ReasonParameterNotFound      = "ParameterNotFound"
	ReasonParameterInterrupted   = "ParameterInterrupted"
)

// Labels, annotations and finalizers.
const (
	// LabelBenchmark carries the benchmark's name (shortened if over 63 characters) on everything made for it.
	LabelBenchmark = "storagebench.dev/benchmark"
	// LabelBenchmarkUID carries its UID.
	LabelBenchmarkUID = "storagebench.dev/benchmark-uid"
	// LabelRun carries the run's name.
	LabelRun = "storagebench.dev/run"
	// LabelRunUID carries the run's UID: a namesake of an earlier life is not it.
	LabelRunUID = "storagebench.dev/run-uid"
	// LabelNamespace is the namespace of the run that an object without a namespace was made for.
	LabelNamespace = "storagebench.dev/namespace"
	// LabelPhase carries the phase's name.
	LabelPhase = "storagebench.dev/phase"
	// LabelExperiment carries the hash of the experiment.
	LabelExperiment = "storagebench.dev/experiment"
	// LabelNodeLease marks the Leases by which benchmarks take nodes.
	LabelNodeLease = "storagebench.dev/node-lease"
	// AnnotationRerun repeats a finished benchmark when its value changes.
	AnnotationRerun = "storagebench.dev/rerun"
	// AnnotationScheduledTime is the time of spec.schedule that a run or results belong to; the first experiment has none.
	AnnotationScheduledTime = "storagebench.dev/scheduled-time"
	// AnnotationHolder names the holder of a node's Lease in words.
	AnnotationHolder = "storagebench.dev/holder"
	// AnnotationHeldFor is the experiment of the holder that a node's Lease was taken for.
	AnnotationHeldFor = "storagebench.dev/held-for"
	// AnnotationNode names the node of a Lease.
	AnnotationNode = "storagebench.dev/node"
	// AnnotationFingerprint identifies what went into results.
	AnnotationFingerprint = "storagebench.dev/fingerprint"
	// AnnotationStartAt is the moment that the runs of a group have agreed on for the beginning of a phase.
	AnnotationStartAt = "storagebench.dev/start-at"
	// AnnotationFolded is on the history of a benchmark and lists the results that went into it, as EXPERIMENT:FINGERPRINT.
	AnnotationFolded = "storagebench.dev/folded"
	// AnnotationQuestion is on results: a hash of what was asked, which is the same for each repetition of an experiment.
	AnnotationQuestion = "storagebench.dev/question"
	// AnnotationVerdict is the verdict that results hold.
	AnnotationVerdict = "storagebench.dev/verdict"
	// AnnotationReleasePool lets a deleted BenchmarkPool or PoolOperation go although something may stay behind. Its value is the node's name.
	AnnotationReleasePool = "storagebench.dev/release-pool"
	// AnnotationAcceptSpec lets the agent follow a spec that is older than its pool. Its value is the generation of the object.
	AnnotationAcceptSpec = "storagebench.dev/accept-spec"
	// AnnotationReport names a dataset on a BenchmarkPool, by its path, that somebody else made: its properties are reported in the
	// status too. Setting it makes the agent look.
	AnnotationReport = "storagebench.dev/report-dataset"
	// AnnotationRescan is set on the ZFSNode of the OpenEBS driver, which looks for new pools when that object changes.
	AnnotationRescan = "storagebench.dev/rescan-for"
	// LabelReset is on a BenchmarkPool that is kept from one run to the next, and says what is recreated on it for each: Dataset or None.
	// Its labels of a run name the one that uses it, or has used it last.
	LabelReset = "storagebench.dev/reset"
	// AnnotationKeptFrom names the run that used a kept BenchmarkPool before, AnnotationKeptFromUID is its UID. A new pool has none.
	AnnotationKeptFrom    = "storagebench.dev/kept-from"
	AnnotationKeptFromUID = "storagebench.dev/kept-from-uid"
	// LabelLabNode marks, with the value "true", the nodes that the agent may run on.
	LabelLabNode = "storagebench.dev/lab"
	// FieldNodeName selects the pools and operations of one node.
	FieldNodeName = "spec.nodeName"
	// FinalizerTeardown keeps an object until what was made for it is gone.
	FinalizerTeardown = "storagebench.dev/teardown"
)
