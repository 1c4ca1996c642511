package v1alpha1

// Phase is one step of an experiment: exactly one of fill, fragment, measure and operate is set.
//
// +kubebuilder:validation:ExactlyOneOf=fill;fragment;measure;operate
type Phase struct {
	// name of the phase, by which gates and reports call it.
	// +required
	Name PhaseName `json:"name"`
	// fill writes until the volume is as full as asked.
	// +optional
	Fill *FillPhase `json:"fill,omitempty"`
	// fragment overwrites what was filled in random order.
	// +optional
	Fragment *FragmentPhase `json:"fragment,omitempty"`
	// measure runs a workload and keeps its numbers.
	// +optional
	Measure *MeasurePhase `json:"measure,omitempty"`
	// operate does something to the pool; zfs targets only.
	// +optional
	Operate *OperatePhase `json:"operate,omitempty"`
	// volume is the name of the volume the phase works on; data unless the target has several.
	// +optional
	// +default="data"
	Volume PhaseName `json:"volume,omitempty"`
	// deadline for the phase from the start of its pod. Not reached in time, the run is Invalid.
	// +optional
	// +default="6h"
	Deadline *Duration `json:"deadline,omitempty"`
	// startDeadline for the phase's pod to start: volume bound, pod scheduled, image pulled.
	// +optional
	// +default="10m"
	StartDeadline *Duration `json:"startDeadline,omitempty"`
}

// FillPhase writes data until the volume is as full as asked.
//
// +kubebuilder:validation:ExactlyOneOf=to;size
// +kubebuilder:validation:XValidation:rule="!has(self.size) || self.of == 'Volume'",message="remove of, or give the share in to: size is an amount of its own"
type FillPhase struct {
	// to is the share of the volume (or pool) that is to be allocated, such as 80%.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="fill to more than 0%, such as 80%, or leave the fill phase out"
	To Share `json:"to,omitempty"`
	// size is the amount of data to write, such as 10Gi.
	// +optional
	Size *Amount `json:"size,omitempty"`
	// of says what the share counts from: the Volume or the whole Pool.
	// +optional
	// +default="Volume"
	// +kubebuilder:validation:Enum=Volume;Pool
	Of string `json:"of,omitempty"`
	// blockSize of the writes.
	// +optional
	// +default="128Ki"
	BlockSize *BlockSize `json:"blockSize,omitempty"`
	// compressibility of the data: 0% is random data, 50% can be halved.
	// +optional
	// +default="0%"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('100')",message="write at most 99%: data that compresses to nothing never fills a volume"
	Compressibility Share `json:"compressibility,omitempty"`
}

// FragmentUntil says when ageing ends.
//
// +kubebuilder:validation:Enum=Converged;Rounds
type FragmentUntil string

// The values of FragmentUntil.
const (
	// FragmentUntilConverged ends when the rounds have reached steady state.
	FragmentUntilConverged FragmentUntil = "Converged"
	// FragmentUntilRounds ends after a fixed number of rounds.
	FragmentUntilRounds FragmentUntil = "Rounds"
)

// FragmentPhase ages a volume: each round overwrites every block once in random order.
//
// +kubebuilder:validation:XValidation:rule="self.until != 'Rounds' || has(self.rounds)",message="say how many rounds: until: Rounds needs rounds, such as rounds: 2"
// +kubebuilder:validation:XValidation:rule="self.until != 'Converged' || !has(self.rounds)",message="remove rounds, or write until: Rounds; with until: Converged the bound is maxRounds"
// +kubebuilder:validation:XValidation:rule="self.until != 'Rounds' || !has(self.steadyState)",message="remove steadyState, or write until: Converged; with until: Rounds nothing is waited for"
// +kubebuilder:validation:XValidation:rule="!has(self.steadyState) || self.steadyState.windowRounds <= self.maxRounds",message="make maxRounds at least steadyState.windowRounds"
type FragmentPhase struct {
	// blockSize of the overwrites.
	// +optional
	// +default="8Ki"
	BlockSize *BlockSize `json:"blockSize,omitempty"`
	// until says when ageing ends.
	// +optional
	// +default="Converged"
	Until FragmentUntil `json:"until,omitempty"`
	// rounds is the number of passes with until: Rounds.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Rounds *int32 `json:"rounds,omitempty"`
	// maxRounds bounds until: Converged; not converged by then, the run is Invalid.
	// +optional
	// +default=25
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=100
	MaxRounds int32 `json:"maxRounds,omitempty"`
	// steadyState is the rule for converged.
	// +optional
	SteadyState *SteadyState `json:"steadyState,omitempty"`
	// compressibility of the data.
	// +optional
	// +default="0%"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('100')",message="write at most 99%: data that compresses to nothing never fills a volume"
	Compressibility Share `json:"compressibility,omitempty"`
}

// SteadyState is the rule of the SNIA performance test specification: over a window of rounds, the range stays within a
// share of the mean, and so does the rise of the best straight line.
type SteadyState struct {
	// windowRounds is the number of rounds looked at.
	// +optional
	// +default=5
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=25
	WindowRounds int32 `json:"windowRounds,omitempty"`
	// maxRange is the largest (max - min) / mean.
	// +optional
	// +default="20%"
	MaxRange Share `json:"maxRange,omitempty"`
	// maxSlope is the largest rise of the best line over the window / mean.
	// +optional
	// +default="10%"
	MaxSlope Share `json:"maxSlope,omitempty"`
}

// CacheExpectation says from where a read workload is meant to be served.
//
// +kubebuilder:validation:Enum=Cold;Warm;Any
type CacheExpectation string

// The values of CacheExpectation.
const (
	CacheCold CacheExpectation = "Cold"
	CacheWarm CacheExpectation = "Warm"
	CacheAny  CacheExpectation = "Any"
)

// MeasurePhase runs a workload and keeps its numbers.
//
// +kubebuilder:validation:XValidation:rule="!has(self.steadyState) || !has(self.workload.postgres)",message="remove steadyState, and set postgres.duration: each round of postgres would load its data again"
type MeasurePhase struct {
	// workload to run.
	// +required
	Workload Workload `json:"workload"`
	// cache is the declared expectation; evidence against it makes the run Invalid.
	// +optional
	// +default="Any"
	Cache CacheExpectation `json:"cache,omitempty"`
	// steadyState, if set, repeats the workload in rounds until the rule holds.
	// +optional
	SteadyState *SteadyState `json:"steadyState,omitempty"`
	// operate runs a pool operation beside the workload, to measure under a scrub for example; zfs targets only.
	// +optional
	Operate *PoolAction `json:"operate,omitempty"`
}

// OperatePhase does something to the pool.
type OperatePhase struct {
	PoolAction `json:",inline"`
}
