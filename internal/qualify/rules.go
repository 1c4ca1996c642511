package qualify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/report/pictures"
	"github.com/storagebench/storagebench/internal/results"
)

// rule judges facts. It also reports what is good and what was not measured.
type rule func(Facts) []Finding

// Metrics that several rules use.
const (
	appendP99 = "writeLatencyP99Nanoseconds"
	reads     = "readOperationsPerSecond"
	appends   = "writeOperationsPerSecond"
	rate      = "readBytesPerSecond"
	tps       = "transactionsPerSecond"
	hitRate   = "cacheHitPartsPerMillion"
	ioErrors  = "ioErrors"

	databaseShareOfMemory = "databaseMemoryPartsPerMillion"
)

// larger says how to measure disks, and not memory.
const larger = "Repeat it with a --size of at least twice the memory of the node."

// largerDatabase says the same for the database, which is a quarter of the size.
const largerDatabase = "Repeat it with a --size of more than 4 times the memory of the node: the database is a quarter of it."

const (
	millisecond = 1e6
	mebibyte    = 1 << 20
)

// rules in the order in which equally bad findings are shown.
var rules = []rule{
	usable,
	noErrors,
	repeated,
	severalNodes,
	limit{about: "Commits on the empty volume", phase: "redo-empty", metric: appendP99, warn: 5 * millisecond, bad: 10 * millisecond,
		means: "One of 100 commits waits longer than this before anything else slows it down.",
		do:    "Use disks with power-loss protection, or a separate log device."}.judge,
	limit{about: "Commits on the full, aged volume", phase: "redo-full", metric: appendP99, warn: 5 * millisecond, bad: 10 * millisecond,
		means: "One of 100 commits waits longer than this once the storage is as a database leaves it.",
		do:    "Give the log a volume or device of its own, and keep more space free."}.judge,
	limit{about: "The longest commit", phase: "redo-full", metric: "writeLatencyMaxNanoseconds",
		warn: 100 * millisecond, bad: 1000 * millisecond,
		means: "All sessions that commit stand still for this long.",
		do:    "Check what else the storage did at that time: flushes, scrubs, neighbours, a disk that recovers sectors."}.judge,
	ratioOfOne(keeps{about: "Commits, full against empty", before: "redo-empty", after: "redo-full", metric: appends, warn: 20, bad: 50,
		means: "The log gets slower as the volume fills and ages.",
		do:    "Plan with the figures of the full volume. Keep more space free, or move the log to a volume of its own."}.judge),
	ratioOfOne(keeps{about: "Reads and updates after ageing", before: "mixed-16", after: "aged-mixed-16", metric: reads, warn: 10, bad: 20,
		means: "The database will be this much slower than in its first weeks.",
		do:    "Plan with the figures after ageing. On ZFS compare record sizes: docs/tasks/find-the-right-recordsize.md."}.judge),
	ratioOfOne(keeps{about: "Scans after ageing", before: "scan", after: "aged-scan", metric: rate, warn: 20, bad: 50,
		means: "Backups, restores and full scans take longer once the data was overwritten.",
		do:    "Plan the time of a restore with the aged rate. On ZFS larger records scan faster, and update slower."}.judge),
	limitOfOne(limit{about: "Random reads of 16 workers", phase: "read-16", metric: "readLatencyP99Nanoseconds", warn: 5 * millisecond,
		bad: 20 * millisecond, means: "A query that reads 100 blocks that are not in memory meets this wait once.",
		do: "Use faster disks or more of them, or more memory for the database."}.judge),
	limitOfOne(perWorker),
	ratioOfOne(scaling),
	limitOfOne(limit{about: "Full scan", phase: "scan", metric: rate, warn: 200 * mebibyte, bad: 50 * mebibyte,
		means: "Reading 1 TiB, as a backup does, takes 1.5 hours at 200 MiB/s and 6 hours at 50 MiB/s.",
		do:    "Use faster disks or more of them, or back up from snapshots."}.judge),
	limitOfOne(limit{about: "PostgreSQL transactions of 8 clients", phase: "postgres", metric: tps, warn: 800, bad: 100,
		means: "Each transaction waits for a durable commit; 8 clients with a commit of 10 ms make at most 800 a second.",
		do:    "Improve the commits first: see the findings about them."}.judge),
	limitOfOne(limit{about: "PostgreSQL latency", phase: "postgres", metric: "transactionLatencyP99Nanoseconds", warn: 50 * millisecond,
		bad: 200 * millisecond, means: "One of 100 small transactions takes longer than this: users notice.",
		do: "Look at the series over time in the report: waits at checkpoints are cured by max_wal_size, others by faster storage."}.judge),
	ratioOfOne(steady),
	fromMemory,
	tooFast,
	doubts,
}

// limit requires that a metric does not exceed a limit or, if more is better, does not fall below it.
type limit struct {
	about, phase, metric string
	warn, bad            float64
	means, do            string
}

func (l limit) judge(facts Facts) []Finding {
	metric, known := facts.metric(l.phase, l.metric)
	if !known {
		return notMeasured(l.about, l.phase, l.metric)
	}
	worst, over := float64(metric.Max), func(value, limit float64) float64 { return value / limit }
	if direction(l.metric) == results.Higher {
		worst, over = float64(metric.Min), func(value, limit float64) float64 { return limit / max(value, 1) }
	}
	median := float64(metric.Median)
	if strings.Contains(l.metric, "LatencyMax") { // the longest of all runs counts, and not the median of the longest ones
		median = worst
	}
	finding := Finding{Level: Good, About: l.about, Measured: figure(l.phase, metric), beyond: over(median, l.bad)}
	switch {
	case over(median, l.bad) > 1:
		finding.Level, finding.Measured = Bad, finding.Measured+"; the limit is "+pictures.Write(l.metric, l.bad)
	case over(worst, l.bad) > 1:
		finding.Level, finding.Measured = Warning, finding.Measured+"; the worst run is beyond the limit of "+pictures.Write(l.metric, l.bad)
	case over(median, l.warn) > 1:
		finding.Level, finding.Measured = Warning, finding.Measured+"; good is "+pictures.Write(l.metric, l.warn)
	case over(worst, l.warn) > 1:
		finding.Level, finding.Measured = Warning, finding.Measured+"; the worst run is beyond what is good, "+pictures.Write(l.metric, l.warn)
	}
	if strings.HasPrefix(l.metric, "read") {
		finding = facts.ofDisks(finding, l.phase)
	}
	if l.metric == appendP99 {
		finding = facts.unlessTooFast(finding, l.phase)
	}
	if l.phase == "postgres" {
		finding = facts.ofDatabase(finding, l.phase)
	}
	return explained(finding, l.means, l.do)
}

// keeps requires that a metric for which more is better loses at most some percent from one phase to a later one.
type keeps struct {
	about, before, after, metric string
	warn, bad                    float64
	means, do                    string
}

func (k keeps) judge(facts Facts) []Finding {
	before, known := facts.metric(k.before, k.metric)
	after, alsoKnown := facts.metric(k.after, k.metric)
	if !known || !alsoKnown || before.Median <= 0 {
		return notMeasured(k.about, k.before+" and "+k.after, k.metric)
	}
	lost := 100 * (1 - float64(after.Median)/float64(before.Median))
	finding := Finding{Level: Good, About: k.about, beyond: lost / k.bad, Measured: fmt.Sprintf("%s, before %s: %s", figure(k.after, after),
		figure(k.before, before), change(lost))}
	switch {
	case lost > k.bad && after.Max >= before.Min:
		finding.Level = Warning
		finding.Measured += fmt.Sprintf("; the limit is %.0f%% less, but the runs overlap: repeat it with more repetitions", k.bad)
	case lost > k.bad:
		finding.Level, finding.Measured = Bad, finding.Measured+fmt.Sprintf("; the limit is %.0f%% less", k.bad)
	case lost > k.warn:
		finding.Level, finding.Measured = Warning, finding.Measured+fmt.Sprintf("; good is at most %.0f%% less", k.warn)
	}
	if strings.HasPrefix(k.metric, "read") {
		finding = facts.ofDisks(facts.ofReference(finding, k.before), k.after)
	}
	return explained(finding, k.means, k.do)
}

// ofDisks downgrades a finding that is good or a warning if reads may have come from memory: then it says nothing about the disks. Storage
// that is too slow even so is bad.
func (f Facts) ofDisks(finding Finding, phases ...string) Finding {
	for _, phase := range phases {
		if finding.Level != Good && finding.Level != Warning {
			return finding
		}
		finding = f.ofReference(finding, phase)
	}
	return finding
}

// ofReference makes a finding Unknown, also a bad one, if reads of a phase may have come from memory. Figures of disks look bad beside
// figures of memory, so nothing may be compared with such a phase.
func (f Facts) ofReference(finding Finding, phase string) Finding {
	hits, known := f.metric(phase, hitRate)
	switch {
	case !known:
		finding.Level, finding.Means = Unknown, "These may be figures of memory: the source of the reads is not known."
		finding.Do = "Read the checks of the phase in the report: they say which counters are missing. " + larger
		finding.Measured += "; but " + phase + " has no " + hitRate
	case hits.Median > memoryWarn:
		finding.Level, finding.Means, finding.Do = Unknown, "These are figures of memory: they do not show what the disks can do.", larger
		finding.Measured += fmt.Sprintf("; but %s of the reads of %s came from memory", pictures.Write(hitRate, float64(hits.Median)), phase)
	}
	return finding
}

// ofDatabase downgrades a finding that is good or a warning if the database may fit into memory.
func (f Facts) ofDatabase(finding Finding, phase string) Finding {
	share, known := f.metric(phase, databaseShareOfMemory)
	switch {
	case finding.Level != Good && finding.Level != Warning:
	case !known:
		finding.Level, finding.Means, finding.Do = Unknown, "Whether the database fits into memory is not known.", largerDatabase
		finding.Measured += "; but " + phase + " has no " + databaseShareOfMemory
	case share.Min < leastDatabase:
		finding.Level, finding.Do = Unknown, largerDatabase
		finding.Means = "The database fits into memory: this measures commits only, and no reads."
		finding.Measured += "; but the database is " + pictures.Write(hitRate, float64(share.Min)) + " of the memory of the node"
	}
	return finding
}

// unlessTooFast downgrades a finding that is good or a warning if the commits are too fast for any disk.
func (f Facts) unlessTooFast(finding Finding, phase string) Finding {
	if metric, known := f.metric(phase, "writeLatencyP50Nanoseconds"); known && metric.Median < tooFastBelow &&
		(finding.Level == Good || finding.Level == Warning) {
		finding.Level, finding.Means = Unknown, "What confirms commits so quickly may lose them."
		finding.Do = "See the finding about commits that are too fast."
		finding.Measured += "; but half of them take less than " + pictures.Write(appendP99, tooFastBelow) + ", which no disk does"
	}
	return finding
}

// ofStorage makes a finding Unknown, unless it is good, if the CPU of the node was a limit.
func (f Facts) ofStorage(finding Finding, phase string) Finding {
	busy, known := f.metric(phase, "workersBusyPartsPerMillion")
	if known && busy.Median < leastBusy && finding.Level != Good {
		finding.Level, finding.Means = Unknown, "The CPU was a limit: the figures do not show what the storage can do."
		finding.Do = "Repeat it on a node with more CPUs, or with less to do."
		finding.Measured += fmt.Sprintf("; but the node's CPU was a limit: workers of %s waited for the storage for %s of the time", phase,
			pictures.Write(hitRate, float64(busy.Median)))
	}
	return finding
}

func change(lost float64) string {
	if lost < 0 {
		return fmt.Sprintf("%.0f%% more", -lost)
	}
	return fmt.Sprintf("%.0f%% less", lost)
}

// explained adds an explanation to a finding, unless it is good or already has one.
func explained(finding Finding, means, do string) []Finding {
	if finding.Level != Good && finding.Means == "" {
		finding.Means, finding.Do = means, do
	}
	return []Finding{finding}
}

func notMeasured(about, phase, metric string) []Finding {
	return []Finding{{Level: Unknown, About: about, Measured: fmt.Sprintf("nothing: %s has no %s", phase, metric),
		Means: "Without it the card is not complete.", Do: "See the notes in the report for the reason, and repeat it."}}
}

func direction(metric string) results.Direction {
	known, _ := results.LookupMetric(metric)
	return known.Better
}

// figure is "redo-full.writeLatencyP99Nanoseconds 12 ms (11 ms to 14 ms, 3 runs)".
func figure(phase string, metric results.MetricResult) string {
	text := fmt.Sprintf("%s.%s %s", phase, metric.Name, pictures.Write(metric.Name, float64(metric.Median)))
	if metric.Runs == 1 {
		return text + " (1 run)"
	}
	return text + fmt.Sprintf(" (%s to %s, %d runs)", pictures.Write(metric.Name, float64(metric.Min)),
		pictures.Write(metric.Name, float64(metric.Max)), metric.Runs)
}

// phasesOf returns the phases that were measured, in the order of their names.
func (f Facts) phasesOf() []string { return slices.Sorted(maps.Keys(f.metrics)) }
