package qualify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/report/pictures"
)

// Limits of the rules that combine several metrics.
const (
	// workers of the phases read-16 and mixed-16.
	workers = 16
	// A worker with fewer reads a second waits at least 5 ms, or 20 ms, for each.
	perWorkerWarn, perWorkerBad = 200, 50
	// Sixteen workers should read at least this many times as much as one.
	scalingWarn, scalingBad = 4, 1.5
	// Runs of the same phase should differ by at most this share of their median.
	steadyWarn, steadyBad = 0.25, 1.0
	// memoryWarn is the part of reads that may come from memory, in parts per million.
	memoryWarn = 100_000
	// leastBusy is the part of the time in which workers wait for the storage, below which the CPU is a limit too, in parts per million.
	leastBusy = 800_000
	// leastDatabase is the part of the memory of the node, in parts per million, above which the database does not fit into it.
	leastDatabase = 1_000_000
	// tooFastBelow is a time in nanoseconds in which no disk makes data durable through a file system.
	tooFastBelow = 10_000
)

// usable lists the experiments without usable numbers.
func usable(facts Facts) []Finding {
	var all []Finding
	for _, trouble := range facts.troubles {
		all = append(all, Finding{Level: Unknown, About: "The suite did not end", Measured: trouble,
			Means: "Rules without figures are Unknown, and never good.", Do: "Correct what the message says, and run qualify again."})
	}
	return all
}

// noErrors requires that no read or write has failed, not even in attempts whose numbers are not used.
func noErrors(facts Facts) []Finding {
	failed := slices.Clone(facts.failed)
	for _, phase := range facts.phasesOf() {
		for _, name := range []string{ioErrors, "failedTransactions"} {
			if metric, known := facts.metric(phase, name); known && metric.Max > 0 {
				failed = append(failed, fmt.Sprintf("%s.%s up to %d", phase, name, metric.Max))
			}
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return []Finding{{Level: Bad, About: "Errors", Measured: strings.Join(failed, "; "), beyond: 1e9,
		Means: "The storage, or the database on it, has failed requests or lost a disk.",
		Do:    "Look at the kernel's log of the node before you trust it with data."}}
}

// perWorker judges how many reads each of 16 workers gets.
func perWorker(facts Facts) []Finding {
	const about = "Random reads for each of 16 workers"
	metric, known := facts.metric("read-16", reads)
	if !known {
		return notMeasured(about, "read-16", reads)
	}
	each := float64(metric.Median) / workers
	finding := Finding{Level: Good, About: about, Measured: fmt.Sprintf("%s, %.0f/s for each worker", figure("read-16", metric), each),
		beyond: perWorkerBad / max(each, 1)}
	switch {
	case each < perWorkerBad:
		finding.Level, finding.Measured = Bad, finding.Measured+fmt.Sprintf("; the limit is %d/s", perWorkerBad)
	case each < perWorkerWarn:
		finding.Level, finding.Measured = Warning, finding.Measured+fmt.Sprintf("; good is %d/s", perWorkerWarn)
	}
	return explained(facts.ofDisks(finding, "read-16"), "A session that reads blocks that are not in memory gets no more than this.",
		"Use faster disks or more of them, or more memory for the database.")
}

// scaling judges whether 16 workers read more than one.
func scaling(facts Facts) []Finding {
	const about = "16 workers against one"
	one, known := facts.metric("read-1", reads)
	many, alsoKnown := facts.metric("read-16", reads)
	if !known || !alsoKnown || one.Median <= 0 {
		return notMeasured(about, "read-1 and read-16", reads)
	}
	times := float64(many.Median) / float64(one.Median)
	finding := Finding{Level: Good, About: about, Measured: fmt.Sprintf("%s, of one worker %s: %.1f times as much", figure("read-16", many),
		figure("read-1", one), times), beyond: scalingBad / max(times, 0.01)}
	switch {
	case times < scalingBad:
		finding.Level, finding.Measured = Bad, finding.Measured+fmt.Sprintf("; the limit is %.1f times", float64(scalingBad))
	case times < scalingWarn:
		finding.Level, finding.Measured = Warning, finding.Measured+fmt.Sprintf("; good is %d times", int(scalingWarn))
	}
	finding = facts.ofStorage(facts.ofDisks(facts.ofReference(finding, "read-1"), "read-16"), "read-16")
	return explained(finding, "Requests of several sessions wait for each other.",
		"A single disk with moving heads does this. Otherwise, look for a throttle, a quota, or a queue with room for one request.")
}

// steady requires that runs of the same phase are alike.
func steady(facts Facts) []Finding {
	const about = "Runs are alike"
	metric, known := facts.metric("mixed-16", reads)
	if !known || metric.Median <= 0 {
		return notMeasured(about, "mixed-16", reads)
	}
	if metric.Runs < 2 {
		return []Finding{{Level: Unknown, About: about, Measured: figure("mixed-16", metric), Means: "One run does not show how runs differ.",
			Do: "Use at least 3 repetitions."}}
	}
	spread := float64(metric.Max-metric.Min) / float64(metric.Median)
	finding := Finding{Level: Good, About: about, beyond: spread / steadyBad, Measured: fmt.Sprintf("%s: the runs differ by %.0f%%",
		figure("mixed-16", metric), 100*spread)}
	switch {
	case spread > steadyBad:
		finding.Level, finding.Measured = Bad, finding.Measured+fmt.Sprintf("; the limit is %.0f%%", 100*steadyBad)
	case spread > steadyWarn:
		finding.Level, finding.Measured = Warning, finding.Measured+fmt.Sprintf("; good is at most %.0f%%", 100*steadyWarn)
	}
	finding = facts.ofDisks(finding, "mixed-16")
	return explained(finding, "The same work takes different times: a neighbour, a throttle with credits, or a disk that recovers.",
		"Ask who shares the storage. Repeat it at another time of the day.")
}

// fromMemory warns of reads that came from a cache.
func fromMemory(facts Facts) []Finding {
	var hits []string
	for _, phase := range []string{"read-1", "read-16", "mixed-16", "scan", "aged-mixed-16", "aged-scan"} {
		metric, known := facts.metric(phase, hitRate)
		if known && metric.Median > memoryWarn {
			hits = append(hits, phase+" "+pictures.Write(hitRate, float64(metric.Median)))
		}
	}
	if len(hits) == 0 {
		return nil
	}
	return []Finding{{Level: Warning, About: "Reads came from memory", Measured: strings.Join(hits, ", ") + " of the reads",
		Means: "The storage itself is slower than these figures.", Do: larger}}
}

// tooFast warns of commits that are faster than any disk can make them durable.
func tooFast(facts Facts) []Finding {
	for _, phase := range []string{"redo-empty", "redo-full"} {
		metric, known := facts.metric(phase, "writeLatencyP50Nanoseconds")
		if known && metric.Median < tooFastBelow {
			return []Finding{{Level: Warning, About: "Commits that are too fast", Measured: figure(phase, metric),
				Means: "Something may confirm writes before they are durable: sync=disabled, a write cache without protection, a hypervisor.",
				Do:    "Prove that a commit survives a loss of power before you trust it with data."}}
		}
	}
	return nil
}

// doubts reports the warnings of preflight checks.
func doubts(facts Facts) []Finding {
	var all []Finding
	for _, doubt := range facts.doubts {
		all = append(all, Finding{Level: Warning, About: "The storage was not set up well", Measured: doubt,
			Means: "All figures of this card are from storage with this property.", Do: "See docs/reference/gates.md about preflight checks."})
	}
	return all
}
