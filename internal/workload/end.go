package workload

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// A pod has no token and no network, so only a mounted ConfigMap can tell it that an operation has ended. It is optional: the manager
// creates it after the end of the operation, and the kubelet then shows it. Another user who creates it can only end the measurement of
// that run, because the times of the operation decide whether it lies within the measured time.
const (
	// EndPath is where that ConfigMap is mounted, and EndKey its only key.
	EndPath = "/etc/storagebench-end"
	EndKey  = "end"
	// EndFile is what the runner looks at, each second.
	EndFile = EndPath + "/" + EndKey
	// longestEnd is more than the text in it has.
	longestEnd = 256
)

// EndsWithOperation says whether a phase lasts as long as the operation beside it.
func EndsWithOperation(phase *v1alpha1.Phase) bool {
	return phase.Measure != nil && phase.Measure.Until == v1alpha1.UntilOperationEnds
}

// EndText says that the workload of a run has to end at a time.
func EndText(runUID string, at time.Time) string {
	return fmt.Sprintf("%s %s\n", runUID, at.UTC().Format(time.RFC3339Nano))
}

// ReadEnd is when the workload of a run has to end; false if nothing has said so yet. A text that is of another run says nothing.
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
