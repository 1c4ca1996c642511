package fio

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Runtime is the time for which the jobs with a limit run: of jobs that run side by side the longest, of stages the sum. Least is how much
// of it they need in any case: a job without time_based may end earlier.
func (f UserFile) Runtime() (limit, least time.Duration) {
	var stageLimit, stageLeast time.Duration
	for i, job := range f.Jobs() {
		if f.follows(i) {
			limit, least = min(limit+stageLimit, longest), min(least+stageLeast, longest)
			stageLimit, stageLeast = 0, 0
		}
		own := job.limit()
		stageLimit = max(stageLimit, own)
		if own > 0 && f.has(f.Sections[i], "time_based") && !job.endsEarly() {
			stageLeast = max(stageLeast, own)
		}
	}
	return min(limit+stageLimit, longest), min(least+stageLeast, longest)
}

// longest is more than any run may take.
const longest = 365 * 24 * time.Hour

// limit is the runtime of a job with its ramp, or 0 if it runs until its work is done.
func (j UserJob) limit() time.Duration {
	runtime := readSeconds(j.Set["runtime"])
	if runtime == 0 {
		return 0
	}
	return min(runtime+readSeconds(j.Set["ramp_time"]), longest)
}

// endsEarly reports whether an option ends the job before its time.
func (j UserJob) endsEarly() bool {
	_, numbered := j.Set["number_ios"]
	_, searched := j.Set["latency_target"]
	return numbered || searched
}

var plainTime = regexp.MustCompile(`^([0-9]{1,15})(us|usec|ms|msec|s|m|h|d)?$`)

// readSeconds reads a time that is in seconds if it has no unit.
func readSeconds(text string) time.Duration {
	match := plainTime.FindStringSubmatch(strings.ToLower(text))
	if match == nil {
		return 0
	}
	unit := map[string]time.Duration{"us": time.Microsecond, "usec": time.Microsecond, "ms": time.Millisecond, "msec": time.Millisecond,
		"": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[match[2]]
	number, _ := strconv.ParseInt(match[1], 10, 64) // at most 15 digits
	return min(time.Duration(number), longest/unit) * unit
}
