package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/storagebench/storagebench/internal/spelling"
)

const (
	keptEnvironmentValues = 2
	shortMessageBytes     = 120
	// keptEnvironmentBytes is more than any honest environment takes.
	keptEnvironmentBytes = 64 << 10
	// keptRuns is the number of runs of an experiment that fit without their phases, however long their names are.
	keptRuns = 512
)

// omission is a kind of part that can be omitted. apply returns the number of parts that it omitted.
type omission struct {
	words string
	apply func(*Experiment) int
}

// omissions are applied in this order. Variants with their primary metrics, gates and the verdict are never omitted.
var omissions = []omission{
	{"values of the environment beyond two per key", omitEnvironmentValues},
	{"volumes and preflight checks of runs beyond the first of a variant", omitVolumes},
	{"seeds of single runs", omitSeeds},
	{"metrics of single runs that are not primary", omitSecondaryMetrics},
	{"metrics of invalid runs", omitInvalidMetrics},
	{"parts of the messages of runs", shortenMessages},
	{"phases of single runs", omitPhases},
	{"metrics of groups that are not primary", omitGroupMetrics},
	{fmt.Sprintf("runs beyond %d, Invalid ones first", keptRuns), omitRuns},
	{"notes", func(e *Experiment) int { count := len(e.Notes); e.Notes = nil; return count }},
	{fmt.Sprintf("keys of the environment beyond %d KiB", keptEnvironmentBytes>>10), omitEnvironmentKeys},
	{"metrics of variants that are not primary", omitVariantMetrics},
}

// Encode writes the experiment as indented JSON of at most limitBytes. It omits the parts that do not fit, and returns a list of them. The
// same experiment always gives the same bytes.
func (e Experiment) Encode(limitBytes int) ([]byte, []string, error) {
	e = e.cloneForOmission()
	e.Version = PhaseVersion
	text, size, err := e.indented(limitBytes)
	for _, omission := range omissions {
		if err != nil || size <= limitBytes {
			break
		}
		count := omission.apply(&e)
		if count == 0 {
			continue
		}
		e.Omitted = append(e.Omitted, fmt.Sprintf("%s (%d)", omission.words, count))
		text, size, err = e.indented(limitBytes)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("results of experiment %s of %s/%s: %w", e.Experiment, e.Benchmark.Namespace, e.Benchmark.Name, err)
	}
	if size > limitBytes {
		return nil, e.Omitted,
			fmt.Errorf("%w: the results of experiment %s of %s/%s take %d bytes even without the details of runs, but the limit is %d: use fewer "+
				"variants, phases or repetitions",
				ErrTooLarge, e.Experiment, e.Benchmark.Namespace, e.Benchmark.Name, size, limitBytes)
	}
	return text, e.Omitted, nil
}

// indented does not escape < and >, which are frequent in gate expressions: the document is not HTML. It does not indent a document that is
// over the limit already, and returns only its size so far.
func (e Experiment) indented(limitBytes int) (text []byte, size int, err error) {
	if least := e.leastBytes(); least > limitBytes {
		return nil, least, nil
	}
	var compact, out bytes.Buffer
	encoder := json.NewEncoder(&compact)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil || compact.Len() > limitBytes {
		return nil, compact.Len(), err
	}
	err = json.Indent(&out, compact.Bytes(), "", "  ")
	return out.Bytes(), out.Len(), err
}

// leastBytes is less than the size as JSON. Without it, results that tenants have filled with a hundred times what fits would be encoded in
// memory, only to be found too large.
func (e Experiment) leastBytes() int {
	least := len(e.Message)
	for key, values := range e.Environment {
		least += len(key)
		for _, value := range values {
			least += len(value)
		}
	}
	for _, key := range e.Unlike {
		least += len(key)
	}
	for _, run := range e.Runs {
		least += len(run.Message)
		for _, phase := range run.Phases {
			least += len(phase.Message) + 2*len(phase.Seeds)
			for name := range phase.Metrics {
				least += len(name)
			}
		}
	}
	for _, variant := range e.Variants {
		for _, phase := range variant.Phases {
			for _, metric := range phase.Metrics {
				least += len(metric.Name)
			}
		}
	}
	return least
}

// cloneForOmission copies everything that omissions modify, so that the caller's experiment stays unchanged.
func (e Experiment) cloneForOmission() Experiment {
	e.Omitted = slices.Clone(e.Omitted)
	e.Runs = slices.Clone(e.Runs)
	for i := range e.Runs {
		e.Runs[i].Phases = slices.Clone(e.Runs[i].Phases)
	}
	e.Variants = slices.Clone(e.Variants)
	for i := range e.Variants {
		e.Variants[i].Phases = slices.Clone(e.Variants[i].Phases)
	}
	e.Groups = slices.Clone(e.Groups)
	for i := range e.Groups {
		e.Groups[i].Phases = slices.Clone(e.Groups[i].Phases)
	}
	environment := make(map[string][]string, len(e.Environment))
	maps.Copy(environment, e.Environment)
	e.Environment = environment
	return e
}

func omitEnvironmentValues(e *Experiment) int {
	count := 0
	for key, values := range e.Environment {
		if len(values) > keptEnvironmentValues && key != KeyWorkloadVersion { // there are few, and a history needs all
			count += len(values) - keptEnvironmentValues
			e.Environment[key] = values[:keptEnvironmentValues:keptEnvironmentValues]
		}
	}
	return count
}

// omitEnvironmentKeys keeps the main keys, and as many others as fit: the runs of tenants can bring any number of keys.
func omitEnvironmentKeys(e *Experiment) int {
	kept, left := map[string][]string{}, keptEnvironmentBytes
	for _, key := range slices.Concat([]string{KeyWorkloadVersion}, MainKeys, sortedKeys(e.Environment)) {
		values, found := e.Environment[key]
		if _, twice := kept[key]; !found || twice {
			continue
		}
		text, err := json.Marshal(map[string][]string{key: values})
		if err != nil || len(text) > left {
			continue
		}
		kept[key] = values
		left -= len(text)
	}
	count := len(e.Environment) - len(kept)
	if count > 0 {
		e.Environment = kept
		e.Unlike = slices.DeleteFunc(slices.Clone(e.Unlike), func(key string) bool { return kept[key] == nil })
	}
	return count
}

// eachPhase adds up the results of change over the phases of all runs.
func eachPhase(e *Experiment, change func(*RunResult, *RunPhase) int) int {
	count := 0
	for i := range e.Runs {
		for j := range e.Runs[i].Phases {
			count += change(&e.Runs[i], &e.Runs[i].Phases[j])
		}
	}
	return count
}

// omitVolumes keeps those of the first run of each variant that has any: the others were requested in the same way.
func omitVolumes(e *Experiment) int {
	count, kept := 0, map[string]bool{}
	for i := range e.Runs {
		run := &e.Runs[i]
		if !kept[run.Variant] {
			kept[run.Variant] = len(run.Volumes)+len(run.Preflight) > 0
			continue
		}
		count += len(run.Volumes) + len(run.Preflight)
		run.Volumes, run.Preflight = nil, nil
	}
	return count
}

func omitSeeds(e *Experiment) int {
	return eachPhase(e, func(_ *RunResult, phase *RunPhase) int {
		count := len(phase.Seeds)
		phase.Seeds = nil
		return count
	})
}

func omitSecondaryMetrics(e *Experiment) int {
	return eachPhase(e, func(_ *RunResult, phase *RunPhase) int {
		kept := primaryOnly(phase.Metrics)
		count := len(phase.Metrics) - len(kept)
		phase.Metrics = kept
		return count
	})
}

func omitInvalidMetrics(e *Experiment) int {
	return eachPhase(e, func(run *RunResult, phase *RunPhase) int {
		if run.Valid {
			return 0
		}
		count := len(phase.Metrics)
		phase.Metrics = nil
		return count
	})
}

func shortenMessages(e *Experiment) int {
	count := 0
	cut := func(message *string) int {
		if len(*message) <= shortMessageBytes {
			return 0
		}
		*message = spelling.Shorten(*message, shortMessageBytes)
		return 1
	}
	for i := range e.Runs {
		count += cut(&e.Runs[i].Message)
	}
	return count + eachPhase(e, func(_ *RunResult, phase *RunPhase) int { return cut(&phase.Message) })
}

// omitGroupMetrics keeps the metrics that summaries show. The medians over the groups stay complete.
func omitGroupMetrics(e *Experiment) int {
	count := 0
	for i := range e.Groups {
		for j := range e.Groups[i].Phases {
			phase := &e.Groups[i].Phases[j]
			before := len(phase.Metrics)
			phase.Metrics = primaryOnly(phase.Metrics)
			count += before - len(phase.Metrics)
		}
	}
	return count
}

// primaryOnly copies the metrics that people gate on.
func primaryOnly(metrics map[string]int64) map[string]int64 {
	kept := map[string]int64{}
	for name, value := range metrics {
		if IsPrimary(name) {
			kept[name] = value
		}
	}
	return kept
}

func omitPhases(e *Experiment) int {
	count := 0
	for i := range e.Runs {
		count += len(e.Runs[i].Phases)
		e.Runs[i].Phases = nil
	}
	return count
}

// omitRuns keeps the first runs, but leaves out Invalid ones before any valid one: without a valid run that lacks a metric, the metric
// would look complete. The medians over all runs stay.
func omitRuns(e *Experiment) int {
	count := max(0, len(e.Runs)-keptRuns)
	if count == 0 {
		return 0
	}
	kept := slices.Clone(e.Runs)
	for at := len(kept) - 1; at >= 0 && len(kept) > keptRuns; at-- {
		if !kept[at].Valid {
			kept = slices.Delete(kept, at, at+1)
		}
	}
	e.Runs = kept[:keptRuns]
	return count
}

func omitVariantMetrics(e *Experiment) int {
	count := 0
	for i := range e.Variants {
		for j := range e.Variants[i].Phases {
			phase := &e.Variants[i].Phases[j]
			before := len(phase.Metrics)
			phase.Metrics = slices.DeleteFunc(slices.Clone(phase.Metrics), func(metric MetricResult) bool {
				return !IsPrimary(metric.Name)
			})
			count += before - len(phase.Metrics)
		}
	}
	return count
}
