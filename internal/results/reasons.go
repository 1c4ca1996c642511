package results

// Reasons of an Invalid phase that a run evaluates. With all of them but ReasonForeignLoad, the same spec would fail again.
const (
	// ReasonJobRefused: a job file or script cannot be used.
	ReasonJobRefused = "JobRefused"
	// ReasonForeignLoad: others used the disks during the measurement.
	ReasonForeignLoad = "ForeignLoad"
	// ReasonNotPossible: the requested work does not fit the volume.
	ReasonNotPossible = "NotPossible"
	// ReasonNoData: the phase works on data that no phase has written.
	ReasonNoData = "NoData"
	// ReasonVolumeFull: the volume has no room for the requested work.
	ReasonVolumeFull = "VolumeFull"
	// ReasonQuotaExceeded: the quota of the volume has no room for the requested work.
	ReasonQuotaExceeded = "QuotaExceeded"
)

// Reasons of an Invalid phase that say something about the storage.
const (
	// ReasonIOError: the storage failed a request, or is gone.
	ReasonIOError = "IOError"
	// ReasonReadOnly: the volume takes no writes, as file systems do after errors.
	ReasonReadOnly = "VolumeReadOnly"
	// ReasonPoolUnhealthy: the pool of the volume is not ONLINE.
	ReasonPoolUnhealthy = "PoolUnhealthy"
	// ReasonNotConverged: the numbers did not become steady in time.
	ReasonNotConverged = "NotConverged"
)

// StorageFailures are the reasons of phases whose storage has failed. A later attempt may be Valid, but it repairs nothing.
var StorageFailures = []string{ReasonIOError, ReasonReadOnly, ReasonPoolUnhealthy}

// noSpace are the reasons that say only that the volume has no more space: requests fail then too, but the storage does not.
var noSpace = []string{ReasonVolumeFull, ReasonQuotaExceeded}
