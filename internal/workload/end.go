package workload

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// A pod has no token and no network, so only a mounted ConfigMap can tell it that an operation has ended. The mount is optional: the
// manager creates the ConfigMap after the operation has ended, and the kubelet then adds it to the pod. If another user creates it, that
// only ends the measurement of that run early: the recorded times of the operation decide whether it lies within the measured time.
const (
	// EndPath is where that ConfigMap is mounted, and EndKey its only key.
	EndPath = "/etc/storagebench-end"
	EndKey  = "end"
	// EndFile is the file that the runner checks each second.
	EndFile = EndPath + "/" + EndKey
	// longestEnd limits how many bytes of the file are read; its text is shorter.
	longestEnd = 256
)

// EndsWithOperation reports whether a phase lasts as long as the operation beside it.
func EndsWithOperation(phase *v1alpha1.Phase) bool {
	return phase.Measure != nil && phase.Measure.Until == v1alpha1.UntilOperationEnds
}

// EndText is the text that tells the workload of a run to end at a time.
func EndText(runUID string, at time.Time) string {
	return fmt.Sprintf("%s %s\n", runUID, at.UTC().Format(time.RFC3339Nano))
}

// ReadEnd returns when the workload of a run has to end, or false if the file does not say so yet. A text for another run is ignored.
func ReadEnd(path, runUID string) (at time.Time, told bool) {
	file, err := os.Open(path)
	if err != nil {
		return time.Time{}, false
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, longestEnd))
	if err != nil {
		return time.Time{}, false
	}
	uid, moment, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	at, err = time.Parse(time.RFC3339, moment)
	return at, err == nil && runUID != "" && uid == runUID
}
