package workload

import (
	"regexp"
	"strconv"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	fiofile "github.com/storagebench/storagebench/internal/fio"
)

func fio(w *v1alpha1.Workload) (Traits, bool) {
	if w.FIO == nil {
		return Traits{}, false
	}
	file, _ := fiofile.ParseUserFile(w.FIO.JobFile) // Refused says what is wrong with it
	return Traits{
		Name: "fio", Spec: w.FIO, ReadsFill: file.UsesData, Yields: reads + "|" + writes + "|" + syncs, File: w.FIO.JobFileFrom,
		Guess: fioRuntime(w.FIO.JobFile, file.Moves(1) > 0), Moves: file.Moves, OnFiles: file.Unsized(),
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

// fioRuntimePattern finds runtime and timeout, two names of the option that limits how long a job runs. A number without a unit is in
// seconds.
var fioRuntimePattern = regexp.MustCompile(`(?m)^\s*(?:runtime|timeout)\s*=\s*(\d{1,9})\s*(us|ms|s|m|h|d)?\s*$`)

var fioUnits = map[string]time.Duration{"us": time.Microsecond, "ms": time.Millisecond, "": time.Second, "s": time.Second, "m": time.Minute,
	"h": time.Hour, "d": 24 * time.Hour}

// fioRuntime adds up the runtimes of a job file. A file without any counts as a minute, unless its size is known.
func fioRuntime(jobFile string, sized bool) time.Duration {
	const most = 365 * 24 * time.Hour
	var total time.Duration
	for _, match := range fioRuntimePattern.FindAllStringSubmatch(jobFile, -1) {
		if number, err := strconv.Atoi(match[1]); err == nil {
			unit := fioUnits[match[2]]
			total = min(total+min(time.Duration(number), most/unit)*unit, most)
		}
	}
	if total == 0 && !sized {
		return time.Minute
	}
	return total
}
