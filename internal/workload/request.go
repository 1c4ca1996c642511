// Package workload describes what the runner executes: the request for one phase, and the traits of each workload. Package engine executes
// them.
package workload

import (
	"encoding/json"
	"fmt"
	"time"

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
	// FilesPath is where the ConfigMap that a phase refers to is mounted, read-only. Only the referenced key is mounted.
	FilesPath = "/etc/storagebench"
	// PhaseFile is that key: the job file of a fio workload (jobFileFrom), or the pgbench script of a postgres workload (script).
	PhaseFile = FilesPath + "/file"
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
	// Source is the dataset that has to be mounted at Path; empty if it is not known.
	Source string `json:"source,omitempty"`
	// Promised is what Path has to be: a volume of its own (Volume, or empty) or a plain directory (Directory).
	Promised string `json:"promised,omitempty"`
	// Disks of the pool that holds the volume; empty if they are not known.
	Disks []Disk `json:"disks,omitempty"`
	// DisksChange says that an operation adds, removes or replaces disks before the phase ends, so the pool also has disks that are not in
	// Disks.
	DisksChange bool `json:"disksChange,omitempty"`
	// KeepsDataOf is the earlier run whose data on the volume this run continues to use; nil for a new volume.
	KeepsDataOf *results.RunIdentity `json:"keepsDataOf,omitempty"`
	// StartAt is when the workload has to begin, if others begin on other nodes at the same moment.
	StartAt *time.Time `json:"startAt,omitempty"`
	// DataFiles is how many files a fill writes, see DataFilesFor; 0 means one.
	DataFiles int32 `json:"dataFiles,omitempty"`
	// Parts are the workloads of a phase that runs several together. Each has a volume of its own or shares one with others.
	Parts []PartRequest `json:"parts,omitempty"`
	// WAL is the volume of PostgreSQL's write-ahead log, if that is a separate one.
	WAL *Request `json:"wal,omitempty"`
}

// PartRequest is one of several workloads that run together, as a request with one workload.
type PartRequest struct {
	Name string `json:"name"`
	// Archives names the redo workload whose segments this one copies.
	Archives string `json:"archives,omitempty"`
	Request  `json:"request"`
}

// PathOf is where a volume appears in the pod of a phase. If the pod has several volumes, the path ends with the name of the volume.
func PathOf(block bool, name string, several bool) string {
	path := DataPath
	if block {
		path = DevicePath
	}
	if several {
		path += "-" + name
	}
	return path
}

// Disk is a disk of a pool, as the agent of its node saw it last.
type Disk struct {
	// Path is the one that the BenchmarkPool names.
	Path string `json:"path"`
	// Number is major:minor on the node.
	Number string `json:"number"`
	Serial string `json:"serial,omitempty"`
}

// SetStart sets the time at which the workload, or each of several, has to begin.
func (r *Request) SetStart(at time.Time) {
	r.StartAt = &at
	for i := range r.Parts {
		r.Parts[i].SetStart(at)
	}
}

// MaxStartWait is longer than any phase has to wait for its start: a start time beyond it means that clocks differ.
const MaxStartWait = 2 * time.Hour

// StartWait is how long a runner that begins now may have to wait for StartAt.
func (r Request) StartWait(now time.Time) time.Duration {
	if r.StartAt == nil {
		return 0
	}
	return min(max(0, r.StartAt.Sub(now)), MaxStartWait)
}

// The values of Request.Promised.
const (
	PromisedVolume    = "Volume"
	PromisedDirectory = "Directory"
)

// DataFilesFor returns how many files the fills of a run have to write, so that each workload finds the files that it needs.
func DataFilesFor(phases []v1alpha1.Phase) int32 {
	files := int32(1)
	for i := range phases {
		if traits, measures := PhaseTraits(&phases[i]); measures {
			files = max(files, traits.DataFiles)
		}
	}
	return files
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
		return Request{}, fmt.Errorf("the request has version %q, this runner has %q: use the runner image of the same release as the manager",
			request.Version, RequestVersion)
	}
	return request, nil
}
