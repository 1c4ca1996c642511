// Package results holds the documents in which numbers travel and are kept: one per phase of a run, one per experiment.
package results

// RunIdentity names the run that a document belongs to.
type RunIdentity struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}
