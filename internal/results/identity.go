// Package results defines the documents that carry and store the measurements: one for each phase of a run, and one for each experiment.
package results

// RunIdentity names the run that a document belongs to.
type RunIdentity struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}
