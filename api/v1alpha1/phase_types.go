package v1alpha1

// Phase is one step of an experiment: exactly one of fill, fragment, free, measure and operate is set.
//
// +kubebuilder:validation:ExactlyOneOf=fill;fragment;free;measure;operate
// +kubebuilder:validation:XValidation:rule="!has(self.measure) || !has(self.measure.workload) || !has(self.measure.workload.postgres) || !has(self.measure.workload.postgres.walVolume) || self.measure.workload.postgres.walVolume != self.volume",message="write another volume in walVolume than in volume, or remove walVolume: without it the log is on the volume of the phase"
type Phase struct {
	// name is the name of the phase in gates and reports.
	// +required
	Name PhaseName `json:"name"`
	// fill writes data until the volume has the requested fill level.
	// +optional
	Fill *FillPhase `json:"fill,omitempty"`
	// fragment overwrites the data in random order.
	// +optional
	Fragment *FragmentPhase `json:"fragment,omitempty"`
	// free deletes a part of the data.
	// +optional
	Free *FreePhase `json:"free,omitempty"`
	// measure runs a workload and records its metrics.
	// +optional
	Measure *MeasurePhase `json:"measure,omitempty"`
	// operate runs a pool operation. Only for zfs targets.
	// +optional
	Operate *OperatePhase `json:"operate,omitempty"`
	// onlyFor limits the phase to these variants, by their names in spec.variants. The others skip it. Defaults to all variants.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	OnlyFor []VariantName `json:"onlyFor,omitempty"`
	// volume is the volume that the phase works on. Defaults to data.
	// +optional
	// +default="data"
	Volume VolumeName `json:"volume,omitempty"`
	// deadline is the time limit of the phase, from the start of its pod. A run that exceeds it is Invalid. Defaults to 6h.
	// +optional
	// +default="6h"
	Deadline *Duration `json:"deadline,omitempty"`
	// startDeadline is the time limit for the pod to start: volume bound, pod scheduled, image pulled. Defaults to 10m.
	// +optional
	// +default="10m"
	StartDeadline *Duration `json:"startDeadline,omitempty"`
}

// FillPhase writes data until the volume has the requested fill level.
//
// +kubebuilder:validation:ExactlyOneOf=to;size
// +kubebuilder:validation:XValidation:rule="!has(self.size) || self.of == 'Volume'",message="remove of, or write a share in to instead of size: of applies only to shares"
type FillPhase struct {
	// to is the share of the volume (or pool) to allocate, such as 80%.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="fill to more than 0%, such as 80%, or remove the fill phase"
	To Share `json:"to,omitempty"`
	// size is the amount of data to write, such as 10Gi.
	// +optional
	Size *Amount `json:"size,omitempty"`
	// of says what the share refers to: Volume or the whole Pool. Defaults to Volume.
	// +optional
	// +default="Volume"
	// +kubebuilder:validation:Enum=Volume;Pool
	Of string `json:"of,omitempty"`
	// blockSize is the block size of the writes. Defaults to 128Ki.
	// +optional
	// +default="128Ki"
	BlockSize *BlockSize `json:"blockSize,omitempty"`
	// compressibility is the compressible share of the data: 0% is random data, 50% compresses to half. Defaults to 0%.
	// +optional
	// +default="0%"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('100')",message="write at most 99%: fully compressible data never fills a volume"
	Compressibility Share `json:"compressibility,omitempty"`
}

// FragmentUntil says when fragmenting ends.
//
// +kubebuilder:validation:Enum=Converged;Rounds
type FragmentUntil string

// The values of FragmentUntil.
const (
	// FragmentUntilConverged ends when the rounds reach steady state.
	FragmentUntilConverged FragmentUntil = "Converged"
	// FragmentUntilRounds ends after a fixed number of rounds.
	FragmentUntilRounds FragmentUntil = "Rounds"
)

// FragmentPhase ages a volume. Each round overwrites every block once, in random order.
//
// +kubebuilder:validation:XValidation:rule="self.until != 'Rounds' || has(self.rounds)",message="set rounds, such as rounds: 2: until: Rounds needs it"
// +kubebuilder:validation:XValidation:rule="self.until != 'Converged' || !has(self.rounds)",message="remove rounds, or write until: Rounds; with until: Converged the limit is maxRounds"
// +kubebuilder:validation:XValidation:rule="self.until != 'Rounds' || !has(self.steadyState)",message="remove steadyState, or write until: Converged; until: Rounds does not wait for steady state"
// +kubebuilder:validation:XValidation:rule="!has(self.steadyState) || self.steadyState.windowRounds <= self.maxRounds",message="make maxRounds at least steadyState.windowRounds"
type FragmentPhase struct {
	// blockSize is the block size of the overwrites. Defaults to 8Ki.
	// +optional
	// +default="8Ki"
	BlockSize *BlockSize `json:"blockSize,omitempty"`
	// until says when fragmenting ends: Converged or Rounds. Defaults to Converged.
	// +optional
	// +default="Converged"
	Until FragmentUntil `json:"until,omitempty"`
	// rounds is the number of rounds with until: Rounds.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Rounds *int32 `json:"rounds,omitempty"`
	// maxRounds limits the rounds with until: Converged. A run that has not converged by then is Invalid. Defaults to 25.
	// +optional
	// +default=25
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=100
	MaxRounds int32 `json:"maxRounds,omitempty"`
	// steadyState is the rule for convergence.
	// +optional
	SteadyState *SteadyState `json:"steadyState,omitempty"`
	// compressibility is the compressible share of the data. Defaults to that of the fill.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('100')",message="write at most 99%: fully compressible data never fills a volume"
	Compressibility Share `json:"compressibility,omitempty"`
}

// FreePhase deletes the end of each file of the data. The rest of the data has no holes, and later phases work on it.
type FreePhase struct {
	// share is the share of the data to delete, such as 30%.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="free more than 0%, such as 30%, or remove the free phase"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('100')",message="free at most 99%: later phases work on what is left"
	Share Share `json:"share"`
}

// SteadyState is the rule of the SNIA performance test specification: over a window of rounds, both the range and the slope of the
// best-fit line stay within a share of the mean. In addition, the drift over the later half of all rounds is limited.
type SteadyState struct {
	// windowRounds is the number of rounds in the window. Defaults to 5.
	// +optional
	// +default=5
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=25
	WindowRounds int32 `json:"windowRounds,omitempty"`
	// maxRange is the largest (max - min) / mean. Defaults to 20%.
	// +optional
	// +default="20%"
	MaxRange Share `json:"maxRange,omitempty"`
	// maxSlope is the largest rise of the best-fit line over the window, divided by the mean. Defaults to 10%.
	// +optional
	// +default="10%"
	MaxSlope Share `json:"maxSlope,omitempty"`
	// maxDrift is the largest change of the best-fit line through the later half of all rounds, divided by their mean. Write 100% for the SNIA
	// rule alone. Defaults to 5%.
	// +optional
	// +default="5%"
	MaxDrift Share `json:"maxDrift,omitempty"`
}

// CacheExpectation says where the reads of a workload should come from.
//
// +kubebuilder:validation:Enum=Cold;Warm;Any
type CacheExpectation string

// The values of CacheExpectation.
const (
	CacheCold CacheExpectation = "Cold"
	CacheWarm CacheExpectation = "Warm"
	CacheAny  CacheExpectation = "Any"
)

// MeasurePhase runs a workload, or several together, and records their metrics.
//
// +kubebuilder:validation:ExactlyOneOf=workload;workloads
// +kubebuilder:validation:XValidation:rule="!has(self.steadyState) || !has(self.workload) || !has(self.workload.postgres)",message="remove steadyState, and set postgres.duration: each round of postgres would reload its data"
// +kubebuilder:validation:XValidation:rule="!has(self.steadyState) || !has(self.workloads)",message="remove steadyState, and write longer durations: workloads that run together are measured once"
// +kubebuilder:validation:XValidation:rule="!has(self.steadyState) || !has(self.workload) || !has(self.workload.redo) || !has(self.workload.redo.archive)",message="remove steadyState, and write a longer redo.duration: a log with an archiver is measured once"
// +kubebuilder:validation:XValidation:rule="!has(self.operateAfter) || has(self.operate)",message="add operate, such as operate: {scrub: {}}, or remove operateAfter"
// +kubebuilder:validation:XValidation:rule="!has(self.operateAfter) || !has(self.steadyState)",message="remove steadyState, and write a longer duration: what is measured before, during and after an operation is measured once"
// +kubebuilder:validation:XValidation:rule="!has(self.until) || has(self.operateAfter)",message="add operateAfter, such as 1m, with operate, or remove until: with until: OperationEnds the phase has rates before, during and after the operation"
// +kubebuilder:validation:XValidation:rule="has(self.until) == has(self.afterOperation)",message="write until: OperationEnds and afterOperation together, such as afterOperation: 1m, or remove both"
// +kubebuilder:validation:XValidation:rule="!has(self.workloads) || self.cache == 'Any'",message="write cache: Any, or measure each workload in a phase of its own: the counters of caches do not tell whose reads they served"
type MeasurePhase struct {
	// workload is the workload to run.
	// +optional
	Workload Workload `json:"workload,omitzero"`
	// workloads start together and run for the same time.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:XValidation:rule="self.exists(w, !has(w.scan))",message="add an oltp or redo workload: a scan lasts as long as those beside it"
	Workloads []NamedWorkload `json:"workloads,omitempty"`
	// cache is where the reads come from: Cold empties the caches before the workload, Warm reads the data of oltp and scan once. If the
	// measured reads contradict it, the run is Invalid. Defaults to Any.
	// +optional
	// +default="Any"
	Cache CacheExpectation `json:"cache,omitempty"`
	// steadyState repeats the workload in rounds until the rule holds.
	// +optional
	SteadyState *SteadyState `json:"steadyState,omitempty"`
	// operate runs a pool operation during the workload, such as a scrub. Only for zfs targets.
	// +optional
	// +kubebuilder:validation:XValidation:rule="(!has(self.replicate) || has(self.replicate.toVolume)) && (!has(self.copy) || !has(self.copy.toPool))",message="write toVolume, the name of another volume of the target: a phase replicates and copies only within its target"
	// +kubebuilder:validation:XValidation:rule="(!has(self.clone) || !has(self.clone.as)) && (!has(self.replicate) || !has(self.replicate.as)) && (!has(self.copy) || !has(self.copy.as))",message="use 'to' instead of 'as': a volume is made in a phase with operate"
	Operate *PoolAction `json:"operate,omitempty"`
	// operateAfter starts the operation this long after the start of the pod. The operation has to end before the workload does, and the
	// phase has rates before, during and after the operation. Without operateAfter, it starts with the pod and lasts as long as the workload.
	// +optional
	OperateAfter *Duration `json:"operateAfter,omitempty"`
	// until: OperationEnds ends the workload when afterOperation has passed since the end of the operation. The duration of the workload is
	// then its time limit: a phase whose operation takes longer is Invalid. Without until, the workload lasts for its duration.
	// +optional
	Until MeasureUntil `json:"until,omitempty"`
	// afterOperation is how long to measure, at least, after the end of the operation. A pod learns of that end up to 90 seconds late.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,6}(ms|s|m|h))+$') || duration(self) >= duration('10s')",message="write 10s or longer, such as 1m: a shorter time after the operation has no rate"
	AfterOperation *Duration `json:"afterOperation,omitempty"`
}

// MeasureUntil says when a workload ends, if not after its duration.
//
// +kubebuilder:validation:Enum=OperationEnds
type MeasureUntil string

// UntilOperationEnds ends a workload after the operation beside it.
const UntilOperationEnds MeasureUntil = "OperationEnds"

// OperatePhase runs a pool operation.
//
// +kubebuilder:validation:XValidation:rule="(!has(self.replicate) || has(self.replicate.toVolume)) && (!has(self.copy) || !has(self.copy.toPool))",message="write toVolume, the name of another volume of the target: a phase replicates and copies only within its target"
type OperatePhase struct {
	PoolAction `json:",inline"`
}
