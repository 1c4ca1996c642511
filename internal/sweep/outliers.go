package sweep

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/report/pictures"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
)

const (
	// leastPlaces is the smallest number of places that show which values are usual.
	leastPlaces = 5
	// leastLiving is the smallest number of places with more than 0, among leastPlaces or more, that show which values are usual.
	leastLiving = 4
	// farAway is how many median deviations an outlier is away from the median: 5.4 standard deviations of normal values. With forty places
	// and a few metrics, a place is then hardly ever called an outlier by chance.
	farAway = 8
	// leastAway is the difference, as a logarithm, that is worth naming: 5%.
	leastAway = 0.0488
	// leastStep is the difference that is worth naming if values are small, because they are whole numbers.
	leastStep = 2
	// With fewer than leastPlaces places, each needs leastRuns runs to show that one of them is worse. clearlyWorse is how much worse it
	// has to be: the smaller value as a share of the larger one.
	leastRuns    = 3
	clearlyWorse = 0.8
	// Rule says what an outlier is.
	Rule = "An outlier is more than 8 median deviations, and at least 5%, from the median of all. With 2 to 4 places, an outlier is a place " +
		"that is at least 20% worse than every other. Each place needs at least 3 runs, and each run of the outlier has to be worse."
)

// Result is what was measured at a place.
type Result struct {
	Place
	// Experiment is nil without numbers, and Missing says why.
	Experiment *results.Experiment
	Missing    string
}

// Value of a metric at a place.
type Value struct {
	Place
	Variant string `json:"variant"`
	Phase   string `json:"phase"`
	Metric  string `json:"metric"`
	Median  int64  `json:"median"`
	// Min and Max of the runs, and their number.
	Min  int64 `json:"min"`
	Max  int64 `json:"max"`
	Runs int32 `json:"runs"`
	// OfAll is the median of all places that have more than 0, and 0 if none has.
	OfAll int64 `json:"medianOfAll"`
	// AwayPartsPerMillion is how much the value is above that median; negative if it is below.
	AwayPartsPerMillion int64 `json:"awayPartsPerMillion"`
	// Outlier is true for an outlier, and Worse for an outlier on the bad side.
	Outlier bool `json:"outlier,omitempty"`
	Worse   bool `json:"worse,omitempty"`
	// Unclear is true if not all outliers can be named: too few places have this metric, or more than 0 of it, or with too few runs, or they
	// differ so much that none stands out from the others.
	Unclear bool `json:"unclear,omitempty"`
}

// subject is what is compared between places.
type subject struct{ variant, phase, metric string }

// Table is the answer of a sweep.
type Table struct {
	// Failed are the attempts at each place whose storage has failed, or has failed requests. A later attempt may have worked, and its
	// numbers may be like those of the others, but it repairs no disk.
	Failed map[string][]string `json:"failed,omitempty"`
	// Values, the furthest from their median first.
	Values []Value `json:"values"`
	// Missing are places without numbers, or without some of them, with the reason.
	Missing map[string]string `json:"missing,omitempty"`
	// Unclear is true if not all outliers of some metric can be named.
	Unclear bool `json:"unclear,omitempty"`
}

// Judge compares the primary metrics of the places.
func Judge(all []Result) Table {
	table := Table{Missing: map[string]string{}, Failed: map[string][]string{}}
	var subjects []subject
	values := map[subject][]Value{}
	for _, one := range all {
		if failed := one.failed(); len(failed) > 0 {
			table.Failed[one.String()] = failed
		}
		if why := one.unusable(); why != "" {
			table.Missing[one.String()] = why
			continue
		}
		for of, metric := range metricsOf(one.Experiment) {
			if values[of] == nil {
				subjects = append(subjects, of)
			}
			values[of] = append(values[of], Value{Place: one.Place, Variant: of.variant, Phase: of.phase, Metric: of.metric,
				Median: metric.Median, Min: metric.Min, Max: metric.Max, Runs: metric.Runs})
		}
	}
	table.lacking(all, subjects, values)
	table.Unclear = len(subjects) == 0
	for _, of := range subjects {
		marked := mark(of.metric, values[of])
		table.Unclear = table.Unclear || marked[0].Unclear
		table.Values = append(table.Values, marked...)
	}
	slices.SortFunc(table.Values, func(a, b Value) int {
		return cmp.Or(-compareBool(a.Outlier, b.Outlier), -compareBool(a.Worse, b.Worse), cmp.Compare(b.distance(), a.distance()),
			cmp.Compare(a.String(), b.String()), cmp.Compare(a.Phase+a.Metric+a.Variant, b.Phase+b.Metric+b.Variant))
	})
	return table
}

// failed lists the attempts whose storage has failed. Those on another node say nothing about the place.
func (r Result) failed() (all []string) {
	if r.Experiment == nil {
		return nil
	}
	for _, run := range r.Experiment.Runs {
		if run.StorageFailed() && cmp.Or(run.NodeName, r.Node) == r.Node {
			all = append(all, run.Attempted())
		}
	}
	return all
}

// unusable says why nothing of a place can be compared. Empty if it can.
func (r Result) unusable() string {
	e := r.Experiment
	switch {
	case e == nil:
		return r.Missing
	case e.State != results.StateComplete:
		return cmp.Or(e.Message, "its experiment is "+e.State)
	case e.Verdict == string(results.OutcomeInvalid):
		return cmp.Or(e.Message, "its measurements cannot be used")
	case e.NodeName != "" && e.NodeName != r.Node:
		return "it was measured on " + e.NodeName
	case len(metricsOf(e)) == 0:
		return cmp.Or(e.Message, "its phases have no primary metrics")
	}
	return ""
}

// lacking notes the places that lack metrics which others have.
func (t *Table) lacking(all []Result, subjects []subject, values map[subject][]Value) {
	for _, one := range all {
		var without []string
		for _, of := range subjects {
			if !slices.ContainsFunc(values[of], func(v Value) bool { return v.Place == one.Place }) {
				without = append(without, of.String())
			}
		}
		if _, known := t.Missing[one.String()]; !known && len(without) > 0 {
			slices.Sort(without)
			t.Missing[one.String()] = "it has no " + strings.Join(without, ", ")
		}
	}
}

// String is PHASE.METRIC, with the variant if there are several.
func (s subject) String() string {
	return strings.TrimPrefix(s.variant+" ", "default ") + s.phase + "." + s.metric
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// Path says what was measured, as PHASE.METRIC with the variant if there are several.
func (v Value) Path() string { return subject{v.Variant, v.Phase, v.Metric}.String() }

// distance returns how far a value is from the median of all, in either direction.
func (v Value) distance() float64 {
	if v.Median <= 0 || v.OfAll <= 0 {
		return math.Inf(1)
	}
	return math.Abs(math.Log(float64(v.Median) / float64(v.OfAll)))
}

// metricsOf returns the primary metrics of the measure phases.
func metricsOf(e *results.Experiment) map[subject]results.MetricResult {
	measured := map[string]bool{}
	for _, run := range e.Runs {
		for _, phase := range run.Phases {
			measured[phase.Name] = measured[phase.Name] || phase.Kind == results.KindMeasure
		}
	}
	found, repetitions := map[subject]results.MetricResult{}, results.Repetitions(e.Runs)
	for _, variant := range e.Variants {
		for _, phase := range variant.Phases {
			for _, metric := range phase.Metrics {
				if results.IsPrimary(metric.Name) && measured[phase.Name] &&
					!results.Lacks(repetitions, variant.Name, metric) { // the runs that have it may be the good ones
					found[subject{variant.Name, phase.Name, metric.Name}] = metric
				}
			}
		}
	}
	return found
}

// mark finds the outliers among the values of one metric. Among at least leastPlaces places, a place that has 0 is always one, unless no
// place has more. Such places have no part in the median: otherwise, 0 would be usual where most places are dead.
func mark(metric string, values []Value) []Value {
	middle := middleOf(values)
	var logarithms []float64
	var at []int
	known, _ := results.LookupMetric(metric)
	for i := range values {
		value := &values[i]
		value.OfAll = int64(math.Round(middle))
		if middle > 0 {
			value.AwayPartsPerMillion = int64(math.Round(1e6 * (float64(value.Median)/middle - 1)))
		}
		value.Worse = known.Better == results.Higher && value.AwayPartsPerMillion < 0 ||
			known.Better == results.Lower && value.AwayPartsPerMillion > 0
		if value.Median > 0 {
			logarithms, at = append(logarithms, math.Log(float64(value.Median))), append(at, i)
		}
		value.Outlier = value.Median <= 0 && middle >= leastStep && len(values) >= leastPlaces || isWorst(known.Better, values, i)
	}
	if len(values) >= leastPlaces {
		for i, far := range stats.OutliersBeyond(logarithms, farAway) {
			values[at[i]].Outlier = far && math.Abs(logarithms[i]-math.Log(middle)) >= max(leastAway, leastStep/middle)
		}
	}
	dead := middle == 0 && known.Better == results.Higher || len(values) >= leastPlaces && len(logarithms) < leastLiving
	unclear := dead || tooFew(values) || (differ(known.Better, values) || scattered(logarithms, middle)) &&
		!slices.ContainsFunc(values, func(v Value) bool { return v.Outlier })
	for i := range values {
		values[i].Worse, values[i].Unclear = values[i].Worse && values[i].Outlier, unclear
	}
	return values
}

// middleOf returns the median of the values above 0. It returns 0 if there are none.
func middleOf(values []Value) float64 {
	var living []float64
	for _, value := range values {
		if value.Median > 0 {
			living = append(living, float64(value.Median))
		}
	}
	if len(living) == 0 {
		return 0
	}
	return stats.Median(living)
}

// tooFew reports whether there are too few places, or too few runs of few places, to name an outlier.
func tooFew(values []Value) bool {
	return len(values) < leastPlaces &&
		(len(values) < 2 || slices.ContainsFunc(values, func(v Value) bool { return v.Runs < leastRuns }))
}

// isWorst reports whether one of few places is clearly worse than each of the others. A better place is not named, because so few places
// do not show which values are usual.
func isWorst(better results.Direction, values []Value, one int) bool {
	if len(values) >= leastPlaces || tooFew(values) {
		return false
	}
	for i, other := range values {
		if i != one && !clearlyApart(better, values[one], other) {
			return false
		}
	}
	return true
}

// scattered reports whether many places differ so much that one of half the speed would not be named.
func scattered(logarithms []float64, middle float64) bool {
	if len(logarithms) < leastPlaces || middle <= 0 {
		return false
	}
	deviations := make([]float64, len(logarithms))
	for i, logarithm := range logarithms {
		deviations[i] = math.Abs(logarithm - math.Log(middle))
	}
	return farAway*stats.Median(deviations) > math.Ln2
}

// differ reports whether, of few places, one is clearly worse than another.
func differ(better results.Direction, values []Value) bool {
	return len(values) < leastPlaces && slices.ContainsFunc(values, func(one Value) bool {
		return slices.ContainsFunc(values, func(other Value) bool { return clearlyApart(better, one, other) })
	})
}

// clearlyApart reports whether each run of a place is worse than all runs of another, and its median worse by a relevant amount.
func clearlyApart(better results.Direction, worse, other Value) bool {
	small, large := worse, other
	if better == results.Lower {
		small, large = other, worse
	}
	return small.Max < large.Min && float64(small.Median) <= clearlyWorse*float64(large.Median) && large.Median-small.Median >= leastStep
}

// Words says how far a value is from the others.
func (v Value) Words() string {
	if v.OfAll <= 0 {
		return "no place has more"
	}
	way := "above"
	if v.AwayPartsPerMillion < 0 {
		way = "below"
	}
	side := ""
	if v.Outlier && v.Worse {
		side = ", which is worse"
	}
	return fmt.Sprintf("%.1f%% %s the median of %s%s", math.Abs(float64(v.AwayPartsPerMillion))/1e4, way,
		pictures.Write(v.Metric, float64(v.OfAll)), side)
}
