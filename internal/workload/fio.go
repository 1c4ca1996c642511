package workload

import (
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	fiofile "github.com/storagebench/storagebench/internal/fio"
)

func fio(w *v1alpha1.Workload) (Traits, bool) {
	if w.FIO == nil {
		return Traits{}, false
	}
	file, _ := fiofile.ParseUserFile(w.FIO.JobFile) // Refused says what is wrong with it
	limit, least := file.Runtime()
	if limit == 0 && file.Moves(1) == 0 { // neither a runtime nor a size is known
		limit = time.Minute
	}
	return Traits{
		Name: "fio", Spec: w.FIO, ReadsFill: file.UsesData, Yields: reads + "|" + writes + "|" + syncs, File: w.FIO.JobFileFrom,
		Guess: limit, Least: least, Moves: file.Moves, OnFiles: file.Unsized(),
		Inline:  func(text string) { w.FIO.JobFile, w.FIO.JobFileFrom = text, nil },
		Refused: func() string { return refusedJobs(w.FIO) },
	}, true
}

// refusedJobs says why the runner would refuse the job file in the spec. Empty if it would not, or if the file is in a ConfigMap.
func refusedJobs(given *v1alpha1.FIOWorkload) string {
	if given.JobFileFrom != nil {
		return ""
	}
	if _, err := fiofile.ParseUserFile(given.JobFile); err != nil {
		return err.Error()
	}
	return ""
}
