package v1alpha1

// The outcomes of an operation.
const (
	OutcomeSucceeded = "Succeeded"
	OutcomeFailed    = "Failed"
	OutcomeCancelled = "Cancelled"
)
