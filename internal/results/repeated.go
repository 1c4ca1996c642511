package results

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// AcceptOptions controls how results become a baseline or a calibration.
type AcceptOptions struct {
	// AcceptedAt is the time at which they were accepted.
	AcceptedAt time.Time
	// Note says who accepted them and why; optional.
	Note string
	// EvenIfFailed also accepts results whose verdict is Failed or Invalid.
	EvenIfFailed bool
	// SameVariants declares that all variants are the same thing: the noise is that between neighbouring runs of any of them.
	SameVariants bool
	// AddTo is the baseline that the results are added to. Nil starts a new one.
	AddTo *Baseline
}

// maxNoteBytes keeps a note short.
const maxNoteBytes = 1024

// acceptable returns an error if results cannot be a standard for others, and warnings if they would be a poor one.
func (e Experiment) acceptable(options AcceptOptions) (warnings []string, err error) {
	name := fmt.Sprintf("experiment %s of %s/%s", e.Experiment, e.Benchmark.Namespace, e.Benchmark.Name)
	switch {
	case e.Version != PhaseVersion:
		return nil,
			fmt.Errorf("%w: %s has version %.80q, this program speaks %q: use the kubectl-storagebench of the same release as the operator",
				ErrVersion, name, e.Version, PhaseVersion)
	case options.AcceptedAt.IsZero():
		return nil, errors.New("acceptedAt is not known: give the time")
	case len(options.Note) > maxNoteBytes:
		return nil, fmt.Errorf("the note has %d bytes: use at most %d", len(options.Note), maxNoteBytes)
	case e.State == StateSuperseded:
		return nil,
			fmt.Errorf("%s is Superseded: the benchmark was changed before all runs had ended; accept the results of an experiment that is Complete",
				name)
	case e.State == StateIncomplete:
		return nil, fmt.Errorf("%s is Incomplete: %s; repeat it, and accept it when it is Complete", name, cmp.Or(e.Message, "runs are missing"))
	case e.State != StateComplete:
		return nil, fmt.Errorf("%s has the state %.80q: only results that are Complete can be accepted", name, e.State)
	case e.Verdict == "Passed":
	case e.Verdict == "Inconclusive":
		// Gates that compare with a baseline are Inconclusive until there is one.
		warnings = append(warnings, fmt.Sprintf("the verdict is Inconclusive: %s", cmp.Or(e.Message, e.Reason)))
	case e.Verdict != "Failed" && e.Verdict != "Invalid":
		return nil, fmt.Errorf("%s has the verdict %.80q: only Passed and Inconclusive are accepted, and Failed and Invalid if asked for", name,
			e.Verdict)
	case !options.EvenIfFailed:
		return nil,
			fmt.Errorf("the verdict on %s is %s: %s; results worse than allowed would become the standard for later ones. To accept them, use "+
				"--even-if-failed",
				name, e.Verdict, cmp.Or(e.Message, e.Reason))
	default:
		warnings = append(warnings, fmt.Sprintf("the verdict is %s, accepted as asked: %s", e.Verdict, cmp.Or(e.Message, e.Reason)))
	}
	if aged := AgeOf(e.Runs); aged != nil {
		warnings = append(warnings, aged.Words()+": what is compared with these results is compared with a pool of that age")
	}
	for _, words := range e.Omitted {
		warnings = append(warnings, "results.json already lacks "+words)
	}
	return slices.Concat(warnings, e.unlike(), e.UnlikeCheckpoints()), nil
}

// UnlikeCheckpoints names the phases in which valid runs had different numbers of checkpoints. One more or less is chance: it depends on
// when the measurement began.
func (e Experiment) UnlikeCheckpoints() []string {
	fewest, most := map[string]int64{}, map[string]int64{}
	for _, run := range e.Runs {
		for _, phase := range run.Phases {
			count, counted := phase.Metrics[MetricCheckpoints]
			if !run.Valid || !phase.usable() || !counted {
				continue
			}
			if least, seen := fewest[phase.Name]; !seen || count < least {
				fewest[phase.Name] = count
			}
			most[phase.Name] = max(most[phase.Name], count)
		}
	}
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(fewest)) {
		if most[name]-fewest[name] > 1 {
			warnings = append(warnings, fmt.Sprintf("the runs were not alike: phase %s had from %d to %d checkpoints", name, fewest[name],
				most[name]))
		}
	}
	return warnings
}

// unlike says which parts of the environment differed between the runs.
func (e Experiment) unlike() []string {
	var warnings []string
	for _, key := range e.UnlikeKeys() {
		warnings = append(warnings, fmt.Sprintf("the runs were not alike: %s was %s", key, inWords(e.Environment[key])))
	}
	return warnings
}

// repeatedVariant holds the valid repetitions of a variant, in their order.
type repeatedVariant struct {
	name string
	// phases are the names of the phases, in the order in which they first appear in runs.
	phases []string
	runs   []RunResult
}

// repeatedVariants gathers the valid repetitions by variant. A group of runs counts as one. It refuses a repetition with two valid runs,
// which would weigh double in every test: the operator writes no such document.
func repeatedVariants(runs []RunResult) ([]repeatedVariant, error) {
	runs = slices.DeleteFunc(Repetitions(runs), func(run RunResult) bool { return !run.Valid })
	slices.SortStableFunc(runs, byExecution)
	var variants []repeatedVariant
	for _, run := range runs {
		at := slices.IndexFunc(variants, func(v repeatedVariant) bool { return v.name == run.Variant })
		if at < 0 {
			at, variants = len(variants), append(variants, repeatedVariant{name: run.Variant})
		}
		variant := &variants[at]
		for _, phase := range run.Phases {
			if phase.usable() && !slices.Contains(variant.phases, phase.Name) {
				variant.phases = append(variant.phases, phase.Name)
			}
		}
		if slices.ContainsFunc(variant.runs, func(other RunResult) bool { return other.Repetition == run.Repetition }) {
			return nil, fmt.Errorf("repetition %d of variant %s has two valid runs: take results.json as the operator wrote it", run.Repetition,
				run.Variant)
		}
		variant.runs = append(variant.runs, run)
	}
	for _, variant := range variants {
		slices.SortStableFunc(variant.runs, func(a, b RunResult) int { return cmp.Compare(a.Repetition, b.Repetition) })
	}
	return variants, nil
}

func byExecution(a, b RunResult) int {
	return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Name, b.Name))
}

// usable reports whether the numbers of a phase count.
func (p RunPhase) usable() bool { return p.Outcome == OutcomeValid && len(p.Metrics) > 0 }

// phase returns a phase of the run, or false if its numbers do not count.
func (r RunResult) phase(name string) (RunPhase, bool) {
	at := slices.IndexFunc(r.Phases, func(phase RunPhase) bool { return phase.Name == name && phase.usable() })
	if at < 0 {
		return RunPhase{}, false
	}
	return r.Phases[at], true
}

// metricsOf returns the metrics that any of the runs has in a phase, primary ones first. A name from another release has no unit.
func metricsOf(runs []RunResult, phase string) []Metric {
	seen := map[string]bool{}
	var metrics []Metric
	for _, run := range runs {
		found, _ := run.phase(phase)
		for name := range found.Metrics {
			if metric, known := LookupMetric(name); !seen[name] {
				if !known {
					metric = Metric{Name: name, Better: Neither}
				}
				seen[name], metrics = true, append(metrics, metric)
			}
		}
	}
	slices.SortFunc(metrics, compareMetrics)
	return metrics
}

// valuesOf returns the values of a metric in a phase, for those runs that have it, in the order of the runs.
func valuesOf(runs []RunResult, phase, metric string) []int64 {
	var values []int64
	for _, run := range runs {
		found, _ := run.phase(phase)
		if value, measured := found.Metrics[metric]; measured {
			values = append(values, value)
		}
	}
	return values
}
