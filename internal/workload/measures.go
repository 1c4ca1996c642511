package workload

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/storagebench/storagebench/api/v1alpha1"
	fiofile "github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/results"
)

// Prefixes of the names of metrics that only some phases have, as regular expressions.
const (
	reads        = `readBytes|readOperations|readLatency`
	writes       = `writeBytes|writtenBytes|writeOperations|writeLatency`
	syncs        = `syncOperations|syncLatency`
	regions      = `regions|slowestRegion|fastestRegion|scanRegion`
	appends      = `shareOver`
	commits      = `longestCommitGap|archiverWait`
	archived     = `archived`
	files        = `metadataOperations|(create|stat|list|unlink)(Operations|Latency)`
	transactions = `transaction|failedTransactions|walBytes|commitLatency|checkpoint|database|initialise`
	filling      = `filledBytes|volumeBytes|allocatedBytes|compressionRatio`
	freeing      = `freedBytes|allocatedBytes|compressionRatio`
	coverage     = `coverage`
	rounds       = `rounds|steadyState`
	operations   = `referencedBytes|freedBytes|sentBytes|resentBytes|received|copied|overwritten|scannedBytes|repairedBytes|errorsFound|` +
		`commandNanoseconds|dataErrors|trimmedBytes|offlineNanoseconds|resilver|freeSegments|largestFreeSegment|layoutScore`
	beside = `besidePartsPerMillion`
	pools  = `disk|smallDiskReads|poolAllocatedBytes|longestTransactionGroup|freeSpaceFragmentation|` + gangs
	// gangs are counted for all pools of the node together, so only a phase as a whole has them, and not one of its workloads.
	gangs = `gangBlocks`
	// perRequest are the metrics of the work of the disks for each read, write and transaction of a workload, and for each copied byte.
	perRequest = `disk[A-Za-z]*Per(Read|Write|Transaction|Copied)`
	// perTransaction are the metrics of the work of the disks for each transaction.
	perTransaction = `disk[A-Za-z]*PerTransaction`
	// perByte are the metrics of the work of the disks for each byte that a phase reads or writes.
	perByte = `(read|written)BytesPerApplicationByte`
	devices = `device`
	pods    = devices + `|` + disks + `|` + hosts + `|workersBusy`
	// disks are the metrics of disks that a plain volume has, too. Only the agent of the node counts distributions of request sizes.
	disks = `disk(Read|Write)(OperationsPerSecond|BytesPerSecond|RequestBytes|LatencyMean|sPer(Read|Write)Milli)|diskWrittenBytesPerSecond|` +
		`disk(Read|Written)BytesPerTransaction|` +
		`diskQueue|diskBusy`
	hosts = `cpuNanoseconds|node(User|System|CPU|Memory|ARC)|cacheHit|flushNanoseconds`
	// times are the metrics of the disks of a pool that only the pod of a measure phase sees.
	times = `disk(Read|Write)Latency|diskQueue|diskBusy`
	// plain are the metrics that only a volume without a pool has: the pod does not know the disks of a pool for sure.
	plain = devices
	// copies are the metrics of the work of the disks for each copied byte. Only a phase that is a copy has them.
	copies = `disk[A-Za-z]*PerCopied`
	// matchesNothing is a pattern that matches no name.
	matchesNothing = `$`
	// totals are the metrics that a phase has for all of its workloads together. All others belong to a single workload.
	totals = `(read|write|written)(Bytes|Operations)(PerSecond)?$`
)

// The names of the times before, during and after an operation beside a workload. They are prefixes of the rates.
const (
	Before = "before"
	During = "during"
	After  = "after"
)

// dated are the metrics that each of these times has.
const dated = `(readBytesPerSecond|writeBytesPerSecond|metadataOperationsPerSecond|durationNanoseconds)$`

// IntervalsOf returns the times for which a phase has rates.
func IntervalsOf(phase *v1alpha1.Phase) []string {
	if phase.Measure == nil || phase.Measure.OperateAfter == nil {
		return nil
	}
	return []string{Before, During, After}
}

// unmixed are the metrics of a whole phase that do not depend on how long its operation took, or that report this time.
const unmixed = `(durationNanoseconds|ioErrors)$`

// Mixes reports whether a metric mixes the times before, during and after an operation, although their lengths differ from run to run. It
// also returns the name of the rate that the phase has for each of these times; empty if the metric is not a rate.
func Mixes(phase *v1alpha1.Phase, metric string) (dates string, mixes bool) {
	interval, _, _ := strings.Cut(metric, ".")
	if !EndsWithOperation(phase) || slices.Contains(IntervalsOf(phase), interval) || begins(metric, unmixed+"|"+reported(phase)) {
		return "", false
	}
	if begins(metric, `(read|write)OperationsPerSecond$`) {
		metric = strings.Replace(metric, "Operations", "Bytes", 1)
	}
	if begins(metric, dated) {
		return metric, true
	}
	return "", true
}

// CanMeasure reports whether a phase can have a metric, on a target with or without pools. In doubt it can.
func CanMeasure(phase *v1alpha1.Phase, onPool bool, metric string) bool {
	return canMeasure(phase, nil, onPool, metric)
}

// canMeasure is CanMeasure for a phase, or for one of several workloads if part is not nil.
func canMeasure(phase *v1alpha1.Phase, part *Part, onPool bool, metric string) bool {
	kind := KindOf(phase)
	if kind == "" {
		return true
	}
	if strings.Contains(metric, ".") {
		if derived, err := results.ParseDerived(metric); err == nil {
			metric = derived.Distribution
		}
	}
	if besideOperation(phase) && begins(metric, `([^.]+\.)?(`+perByte+`|`+perRequest+`)`) {
		return false // the disks' work is also that of the operation
	}
	if parts := PartsOf(phase); len(parts) > 0 {
		return togetherCanMeasure(parts, onPool, metric) || begins(metric, reported(phase)) && !begins(metric, copies)
	}
	if at := strings.LastIndexByte(metric, '.'); at >= 0 && slices.Contains(IntervalsOf(phase), metric[:at]) {
		return begins(metric[at+1:], dated) && canMeasure(phase, part, onPool, metric[at+1:])
	}
	if at := strings.LastIndexByte(metric, '.'); at >= 0 {
		return namedCanMeasure(phase, onPool, metric[:at], metric[at+1:])
	}
	if kind == results.KindOperate {
		return begins(metric, "durationNanoseconds|"+reported(phase))
	}
	if impossible(phase, part, onPool, metric) {
		return false
	}
	possible := []string{map[string]string{
		results.KindFill:     strings.Join([]string{filling, writes}, "|"),
		results.KindFragment: strings.Join([]string{coverage, rounds, writes}, "|"),
		results.KindFree:     freeing,
		results.KindMeasure:  pods,
	}[kind], reported(phase)}
	if traits, measures := PhaseTraits(phase); measures {
		if part != nil {
			traits = part.Traits()
		}
		if traits.Yields == "" { // an unknown workload
			return true
		}
		possible = append(possible, traits.Yields)
		if phase.Measure.SteadyState != nil {
			possible = append(possible, rounds)
		}
	}
	if onPool {
		possible = append(possible, pools)
	}
	return begins(metric, strings.Join(possible, "|")) || !begins(metric, owned)
}

// impossible reports whether a phase, or one of several workloads, cannot have a metric. Some metrics are impossible on any target, others
// only on targets with pools, or only on targets without.
func impossible(phase *v1alpha1.Phase, part *Part, onPool bool, metric string) bool {
	measures := KindOf(phase) == results.KindMeasure
	return lacking(phase, "", metric) != "" ||
		begins(metric, copies) || begins(metric, perTransaction) && !transacts(phase) || part != nil && begins(metric, gangs) ||
		!onPool && !measures && begins(metric, perByte) ||
		onPool && (begins(metric, plain) || !measures && begins(metric, times))
}

// transacts reports whether a phase can have transactions.
func transacts(phase *v1alpha1.Phase) bool {
	traits, measures := PhaseTraits(phase)
	return measures && (traits.Yields == "" || begins("transactions", traits.Yields))
}

// namedCanMeasure is CanMeasure for a write-ahead log on another volume, or for a job of a fio job file.
func namedCanMeasure(phase *v1alpha1.Phase, onPool bool, name, metric string) bool {
	if name == WAL && hasWAL(phase) {
		if begins(metric, perRequest+"|"+gangs) {
			return false
		}
		return onPool && begins(metric, pools) || !onPool && begins(metric, devices+"|"+disks)
	}
	return hasJob(phase, name) && !begins(metric, perByte) && lacking(phase, name, metric) == "" &&
		begins(metric, reads+"|"+writes+"|"+syncs+"|durationNanoseconds|flushNanoseconds|ioErrors")
}

func besideOperation(phase *v1alpha1.Phase) bool {
	return phase.Measure != nil && phase.Measure.Operate != nil
}

func hasWAL(phase *v1alpha1.Phase) bool {
	_, apart := WALOf(phase)
	return apart
}

// reported returns the metrics that a phase has of its own operation or of the one beside it. For an unknown operation, it returns all
// metrics that any operation can report.
func reported(phase *v1alpha1.Phase) string {
	all := []string{matchesNothing}
	if besideOperation(phase) {
		all = append(all, beside)
	}
	for _, action := range operate.Of(phase) {
		if names, known := operate.Metrics(action); !known {
			all = append(all, operations, copies)
		} else if len(names) > 0 {
			all = append(all, "("+strings.Join(names, "|")+")$")
		}
	}
	return strings.Join(all, "|")
}

// togetherCanMeasure is CanMeasure for a phase with several workloads: each has its metrics under its name.
func togetherCanMeasure(parts []Part, onPool bool, metric string) bool {
	name, own, named := strings.Cut(metric, ".")
	for i := range parts {
		switch {
		case named && parts[i].Name == name && !onPool && begins(own, devices+"|"+disks+"|"+perByte):
			return false // a storageClass target has one volume, whose disks work for all workloads
		case named && parts[i].Name == name:
			return canMeasure(&parts[i].Phase, &parts[i], onPool, own)
		case !named && begins(metric, totals) && canMeasure(&parts[i].Phase, &parts[i], onPool, metric):
			return true
		}
	}
	return !named && (begins(metric, hosts) || onPool && begins(metric, gangs) || !begins(metric, owned))
}

// owned are the prefixes of all metrics that not every phase has.
var owned = strings.Join([]string{reads, writes, syncs, regions, appends, commits, archived, files, transactions, filling, coverage, rounds,
	operations, beside, pools, pods}, "|")

// Metrics returns the names of the metrics that a phase can have: the primary ones, others of its workload, and the rest.
func Metrics(phase *v1alpha1.Phase, onPool bool) []string {
	var primary []string
	for _, part := range PartsOf(phase) {
		for _, name := range metricsOf(&part.Phase, &part, onPool) {
			primary = append(primary, part.Name+"."+name)
		}
	}
	for _, interval := range IntervalsOf(phase) {
		for _, name := range metricsOf(phase, nil, onPool) {
			if begins(name, dated) {
				primary = append(primary, interval+"."+name)
			}
		}
	}
	names := append(primary, metricsOf(phase, nil, onPool)...)
	if hasWAL(phase) {
		for _, metric := range results.Metrics() {
			if name := WAL + "." + metric.Name; canMeasure(phase, nil, onPool, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func metricsOf(phase *v1alpha1.Phase, part *Part, onPool bool) []string {
	var primary, own, rest []string
	traits, measures := PhaseTraits(phase)
	if part != nil {
		traits = part.Traits()
	}
	for _, metric := range results.Metrics() {
		switch {
		case !canMeasure(phase, part, onPool, metric.Name):
		case metric.Primary:
			primary = append(primary, metric.Name)
		case measures && begins(metric.Name, traits.Yields):
			own = append(own, metric.Name)
		default:
			rest = append(rest, metric.Name)
		}
	}
	return slices.Concat(primary, own, rest)
}

// compiled caches the regular expressions by their text: there are few, and each run of a benchmark asks for each of its metrics.
var compiled sync.Map

func begins(name, patterns string) bool {
	pattern, known := compiled.Load(patterns)
	if !known {
		pattern, _ = compiled.LoadOrStore(patterns, regexp.MustCompile(`^(`+patterns+`)`))
	}
	return pattern.(*regexp.Regexp).MatchString(name) //nolint:forcetypeassert // nothing else is stored
}

// hasJob reports whether a phase can have metrics of a single job with this name. Only a fio job file with several jobs has such metrics.
// If its text is unknown, any name is possible.
func hasJob(phase *v1alpha1.Phase, job string) bool {
	traits, measures := PhaseTraits(phase)
	if !measures || traits.Name == "" || traits.Name == "fio" && phase.Measure.Workload.FIO.JobFile == "" {
		return measures
	}
	if traits.Name != "fio" {
		return false
	}
	file, err := fiofile.ParseUserFile(phase.Measure.Workload.FIO.JobFile)
	if err != nil {
		return true // Refused reports that mistake
	}
	for _, section := range file.Sections {
		if section.Name == job {
			return len(file.Sections) > 1
		}
	}
	return false
}

// Lacking says why a phase has no such metric, if that is not obvious from its workload: because a setting is missing, or because of what
// the jobs of fio do, as far as their file is in the spec. Empty if the phase may have the metric.
func Lacking(phase *v1alpha1.Phase, metric string) string {
	at := strings.LastIndexByte(metric, '.')
	if derived, err := results.ParseDerived(metric); err == nil {
		metric = derived.Distribution
		at = strings.LastIndexByte(metric, '.')
	}
	if name := metric[:max(at, 0)]; name != "" && isOnlyJob(phase, name) {
		return "its job file has one job, whose metrics are those of the phase: leave out " + name
	}
	if traits, _ := PhaseTraits(phase); phase.Measure != nil && traits.Name != "" && traits.Once == "" && phase.Measure.SteadyState == nil &&
		phase.Measure.OperateAfter == nil && begins(metric[at+1:], rounds) {
		return "a phase measures in rounds only with steadyState: add it"
	}
	return lacking(phase, metric[:max(at, 0)], metric[at+1:])
}

// jobFileOf returns the job file of a fio phase. known is false for other phases, and for a file with mistakes, which Refused reports.
func jobFileOf(phase *v1alpha1.Phase) (file fiofile.UserFile, known bool) {
	if traits, measures := PhaseTraits(phase); !measures || traits.Name != "fio" {
		return fiofile.UserFile{}, false
	}
	file, err := fiofile.ParseUserFile(phase.Measure.Workload.FIO.JobFile)
	return file, err == nil
}

// isOnlyJob reports whether a job file has one job, with this name.
func isOnlyJob(phase *v1alpha1.Phase, job string) bool {
	file, known := jobFileOf(phase)
	return known && len(file.Sections) == 1 && file.Sections[0].Name == job
}

// lacking says why the jobs of fio have no such metric: a single job, or all jobs together if job is empty.
func lacking(phase *v1alpha1.Phase, job, metric string) string {
	file, known := jobFileOf(phase)
	if !known {
		return ""
	}
	of := func(jobs []string) bool { return slices.Contains(jobs, job) || job == "" && len(jobs) > 0 }
	switch paced, syncs := file.Paced(), file.UntimedSyncs(); {
	case begins(metric, reads) && !of(file.Readers()):
		return "its jobs only write (rw): use a metric of writes"
	case begins(metric, writes) && !of(file.Writers()):
		return "its jobs only read, which is what fio does without rw: use a metric of reads, or write rw=randwrite or rw=randrw"
	case begins(metric, "syncLatency") && !of(file.Syncers()):
		return "its jobs call neither fsync nor fdatasync: add fsync=1 or fdatasync=1, or with sync=dsync use a metric of writes"
	case !begins(metric, `(read|write|sync)Latency`):
	case of(paced):
		return fiofile.WhyPaced(paced)
	case of(syncs) && begins(metric, "syncLatency"):
		return fiofile.WhyUntimedSyncs(syncs)
	}
	return ""
}
