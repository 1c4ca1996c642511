package workload

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// A pod has no token and no network, so nothing tells it that an operation has ended, but for a ConfigMap that it has mounted. It is
// optional: the manager creates it when the operation has ended, and the kubelet then shows it. Whoever else may create it can only end the
// measurement of its own run: whether the operation lies within the measured time is judged by the operation.
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
