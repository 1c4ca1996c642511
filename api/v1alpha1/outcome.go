package v1alpha1

// The outcomes.
const (
	OutcomeSucceeded = "Succeeded"
	OutcomeFailed    = "Failed"
	OutcomeCancelled = "Cancelled"
)
