//go:build linux

package engine

import (
	"time"

	"github.com/storagebench/storagebench/internal/workload"
)

// operationOver reports whether a workload that lasts as long as the operation beside it has to end now. It uses the clock of the document,
// because that clock also decides later whether enough was measured after the operation.
func (s *session) operationOver() bool {
	if !workload.EndsWithOperation(&s.request.Phase) {
		return false
	}
	at, told := workload.ReadEnd(s.executor.End, s.request.Run.UID)
	began := s.bracket.began
	return told && !began.day.Add(began.spent()).Before(at)
}

// noteEnd says how long a workload lasted that could end with its operation.
func (s *session) noteEnd(lasted time.Duration) {
	if !workload.EndsWithOperation(&s.request.Phase) {
		return
	}
	words := "measured for " + lasted.Round(time.Second).String() + ", "
	if s.endedEarly {
		words += "until the operation had ended and the time after it was over"
	} else {
		words += "the longest time: the operation, and the time after it, had not ended by then, or the runner had not learned of it"
	}
	s.note("%s", words)
}
