package results

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Derived is a metric that is computed from a distribution: DISTRIBUTION.STATISTIC, such as writeLatency.shareOver10ms.
type Derived struct {
	// Metric is the metric with its full name.
	Metric Metric
	// Distribution is the name of the distribution, preceded by the name of its job if it has one.
	Distribution string
	// Share is true if the metric is a share of the operations.
	Share bool
	// Kind of the distribution.
	Kind DistributionKind
	take func(Distribution) (int64, bool)
}

// Statistics of a distribution.
const (
	StatisticOver  = "shareOver"
	StatisticBelow = "shareBelow"
	StatisticMode  = "mode"
	StatisticCount = "count"
)

// OfMean ends a bound that is a percentage of the mean, as in scanRegionTime.shareOver150PercentOfMean.
const OfMean = "PercentOfMean"

var (
	shareBegins = regexp.MustCompile(`\.share(Over|Below)[0-9]`)
	shareName   = regexp.MustCompile(`^(shareOver|shareBelow)(.*)$`)
	meanText    = regexp.MustCompile(`^([1-9][0-9]{0,4})` + OfMean + `$`)
	boundText   = regexp.MustCompile(`^([1-9][0-9]{0,9})(ns|us|ms|s|B|KiB|MiB)$`)
	unitSizes   = map[string]struct {
		unit string
		size int64
	}{
		"ns": {UnitNanoseconds, 1}, "us": {UnitNanoseconds, 1e3}, "ms": {UnitNanoseconds, 1e6}, "s": {UnitNanoseconds, 1e9},
		"B": {UnitBytes, 1}, "KiB": {UnitBytes, 1 << 10}, "MiB": {UnitBytes, 1 << 20},
	}
)

// smallestRow and largestRow are the smallest and the largest size at which ZFS divides its counts of requests.
const smallestRow, largestRow = 512, 16 << 20

// ParseDerived reads the name of a derived metric, or says what to write instead.
func ParseDerived(name string) (Derived, error) {
	at := strings.LastIndexByte(name, '.')
	if bound := shareBegins.FindStringIndex(name); bound != nil { // 1.5ms has a dot, too
		at = bound[0]
	}
	of, statistic := name[:max(at, 0)], name[at+1:]
	kind, known := LookupDistribution(of)
	if !known {
		return Derived{}, fmt.Errorf("there is no distribution %q: use one of %s", of, distributionNames())
	}
	derived := Derived{Metric: Metric{Name: name, Better: Lower}, Distribution: of, Kind: kind}
	lower := strings.ToLower(kind.Description[:1]) + strings.TrimSuffix(kind.Description[1:], ".")
	share := shareName.FindStringSubmatch(statistic)
	switch {
	case statistic == StatisticCount:
		derived.Metric.Unit, derived.Metric.Better = UnitCount, Neither
		derived.Metric.Description = "Number of operations: " + lower + "."
		derived.take = func(d Distribution) (int64, bool) { return d.Count(), true }
	case statistic == StatisticMode && kind.Unit == UnitBytes:
		derived.Metric.Unit, derived.Metric.Better = UnitBytes, Higher
		derived.Metric.Description = "Most frequent " + lower + "."
		derived.take = Distribution.Mode
	case statistic == StatisticMode:
		return Derived{}, fmt.Errorf("%s has no mode, for its bins are narrow: use a percentile, a mean or a share", of)
	case share != nil:
		bound, err := parseBound(kind, share[1], share[2])
		if err != nil {
			return Derived{}, fmt.Errorf("%s of %s: %w", statistic, of, err)
		}
		words := strings.Replace(share[2], OfMean, "% of the mean", 1)
		derived.Metric.Unit, derived.Share = UnitPartsPerMillion, true
		derived.Metric.Description = "Part above " + words + ": " + lower + "."
		derived.take = func(d Distribution) (int64, bool) { return d.Over(bound(d)) }
		if share[1] == StatisticBelow {
			derived.Metric.Description = "Part below " + words + ": " + lower + "."
			derived.take = func(d Distribution) (int64, bool) { return d.Below(bound(d)) }
			if kind.Unit == UnitNanoseconds && !strings.HasSuffix(share[2], OfMean) { // far from the mean is worse on both sides
				derived.Metric.Better = Higher
			}
		}
	default:
		return Derived{}, fmt.Errorf("%q is not a statistic of the distribution %s: write %s", statistic, of, exampleOf(kind))
	}
	return derived, nil
}

// parseBound reads the bound of a share, such as 10ms or 150PercentOfMean. Its value may depend on the distribution.
func parseBound(kind DistributionKind, statistic, text string) (func(Distribution) int64, error) {
	if parts := meanText.FindStringSubmatch(text); parts != nil {
		if !kind.Whole {
			return nil, fmt.Errorf("only shares of scanRegionTime have a bound that is a part of the mean: write %s", exampleOf(kind))
		}
		percent, err := strconv.ParseInt(parts[1], 10, 64)
		return func(d Distribution) int64 { return int64(math.Round(d.mean() * float64(percent) / 100)) }, err
	}
	bound, err := parseFixed(kind, statistic, text)
	return func(Distribution) int64 { return bound }, err
}

// parseFixed reads a bound that is a number with its unit.
func parseFixed(kind DistributionKind, statistic, text string) (int64, error) {
	parts := boundText.FindStringSubmatch(text)
	if parts == nil || unitSizes[parts[2]].unit != kind.Unit {
		return 0, fmt.Errorf("%q is no whole number with its unit, in %s: write %s", text, kind.Unit, exampleOf(kind))
	}
	number, err := strconv.ParseInt(parts[1], 10, 64)
	bound := number * unitSizes[parts[2]].size // ten digits of seconds may overflow: the check below refuses them
	switch {
	case err != nil || number > 1e6 && unitSizes[parts[2]].size > 1e6:
		return 0, fmt.Errorf("%q is too large: write less than a million seconds or MiB", text)
	case kind.Unit == UnitBytes && statistic == StatisticOver:
		return 0, fmt.Errorf("sizes are counted in rows that begin at a bound, so a share over a bound is unknown: write %s; the share of "+
			"the others is 1 minus that",
			exampleOf(kind))
	case kind.Unit == UnitBytes && (bound&(bound-1) != 0 || bound < smallestRow || bound > largestRow):
		return 0, fmt.Errorf("sizes are counted between powers of two, from 512B to 16MiB, and %q is none of them: write %s", text,
			exampleOf(kind))
	}
	return bound, nil
}

func exampleOf(kind DistributionKind) string {
	switch {
	case kind.Unit == UnitBytes:
		return "shareBelow8KiB, mode or count"
	case kind.Whole:
		return "shareOver10ms, shareOver150PercentOfMean, shareBelow500us or count"
	}
	return "shareOver10ms, shareBelow500us or count"
}

func distributionNames() string {
	var names []string
	for _, kind := range distributionKinds {
		names = append(names, kind.Name)
	}
	return strings.Join(names, ", ")
}

// Reduce replaces the distributions by the requested derived metrics, as far as the phase has the distributions for them.
func (d PhaseDocument) Reduce(wanted []string) PhaseDocument {
	metrics := make(map[string]int64, len(d.Metrics)+len(wanted))
	maps.Copy(metrics, d.Metrics)
	for _, name := range wanted {
		derived, err := ParseDerived(name)
		if err != nil {
			continue
		}
		if one, counted := d.Distributions[derived.Distribution]; counted && one.validate() == nil {
			if value, known := derived.take(one); known {
				metrics[name] = value
			}
		}
	}
	d.Metrics, d.Distributions = metrics, nil
	return d
}
