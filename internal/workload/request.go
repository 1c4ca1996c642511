// Package workload is what the runner executes: the request for one phase, and the workloads themselves.
package workload

import (
	"encoding/json"
	"fmt"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

const (
	// RequestVersion is the version of the Request document.
	RequestVersion = "request.storagebench.dev/v1alpha1"
	// RequestVariable is the environment variable that carries the Request into the workload pod.
	RequestVariable = "STORAGEBENCH_REQUEST"
	// DataPath is where a Filesystem volume is mounted.
	DataPath = "/data"
	// DevicePath is where a Block volume appears.
	DevicePath = "/dev/storagebench"
)

// Request is all that a runner needs to know to execute one phase of one run.
type Request struct {
	Version string              `json:"version"`
	Run     results.RunIdentity `json:"run"`
	Phase   v1alpha1.Phase      `json:"phase"`
	Seed    int64               `json:"seed"`
	// VolumeMode is Filesystem or Block, Path the directory or device.
	VolumeMode      string `json:"volumeMode"`
	Path            string `json:"path"`
	VolumeSizeBytes int64  `json:"volumeSizeBytes"`
}

// Encode writes the request as one line of JSON.
func (r Request) Encode() (string, error) {
	r.Version = RequestVersion
	text, err := json.Marshal(r)
	return string(text), err
}

// DecodeRequest reads what Encode wrote.
func DecodeRequest(text string) (Request, error) {
	var request Request
	if err := json.Unmarshal([]byte(text), &request); err != nil {
		return Request{}, fmt.Errorf("the request in %s is not JSON: %w", RequestVariable, err)
	}
	if request.Version != RequestVersion {
		return Request{}, fmt.Errorf("the request has version %q, this runner speaks %q: use the runner image of the same release as the manager",
			request.Version, RequestVersion)
	}
	return request, nil
}
