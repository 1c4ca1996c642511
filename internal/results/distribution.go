package results

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

const (
	// MaxBins is the largest number of bins of a distribution. The bins of fio need fewer if latencies differ by a factor of up to 256.
	MaxBins = 512
	// MaxDistributions is the largest number of distributions of a phase: those of reads, writes and syncs of about twenty jobs.
	MaxDistributions = 64
)

// Distribution counts operations by their duration or by their size. Its lists have an entry for each bin, in order.
type Distribution struct {
	// Unit of the bins: ns or bytes.
	Unit string `json:"unit" jsonschema:"enum=ns,enum=bytes"`
	// From is the smallest value of each bin.
	From []int64 `json:"from"`
	// To is where each bin ends. It is From if the bin has a single value.
	To []int64 `json:"to"`
	// Counts of operations in each bin.
	Counts []int64 `json:"counts"`
}

// DistributionKind describes a distribution that a phase can have.
type DistributionKind struct {
	// Name in lowerCamel.
	Name string
	// Unit of its values.
	Unit string
	// Description for a person.
	Description string
	// Whole is true if everything was counted, such as each region: then a share of few is as exact as a share of many.
	Whole bool
}

var distributionKinds = []DistributionKind{
	{"readLatency", UnitNanoseconds, "Latency of reads.", false},
	{"writeLatency", UnitNanoseconds, "Latency of writes; of appends with `sync: dsync`, until they are durable.", false},
	{"syncLatency", UnitNanoseconds, "Latency of syncs; of appends with `sync: fdatasync`, that of their sync.", false},
	{"createLatency", UnitNanoseconds, "Latency of files that were created, written and closed.", false},
	{"statLatency", UnitNanoseconds, "Latency of lookups of a file.", false},
	{"listLatency", UnitNanoseconds, "Latency of listings of a folder.", false},
	{"unlinkLatency", UnitNanoseconds, "Latency of removals of a file.", false},
	{"scanRegionTime", UnitNanoseconds, "Time of each region of a scan.", true},
	{"diskReadRequestSize", UnitBytes, "Size of reads of the pool's disks, from the start of the pod.", false},
	{"diskWriteRequestSize", UnitBytes, "Size of writes to the pool's disks, from the start of the pod.", false},
}

// Distributions returns all kinds.
func Distributions() []DistributionKind { return slices.Clone(distributionKinds) }

// LookupDistribution returns the kind with that name. JOB.NAME is the distribution of one of several jobs in a fio job file.
func LookupDistribution(name string) (DistributionKind, bool) {
	of := func(name string) int {
		return slices.IndexFunc(distributionKinds, func(kind DistributionKind) bool { return kind.Name == name })
	}
	at, job := of(name), strings.LastIndexByte(name, '.')
	if at < 0 && jobName.MatchString(name[:max(job, 0)]) {
		at = of(name[job+1:])
	}
	if at < 0 {
		return DistributionKind{}, false
	}
	return distributionKinds[at], true
}

// Add appends a bin after the others.
func (d *Distribution) Add(from, to, count int64) {
	d.From, d.To, d.Counts = append(d.From, from), append(d.To, to), append(d.Counts, count)
}

// Bounded returns the distribution with at most MaxBins bins. If there are more, neighbouring bins are joined until each is at most 1/32 of
// its value wide, or 1/16, and so on.
func (d Distribution) Bounded() Distribution {
	for digits := 6; len(d.From) > MaxBins; digits-- {
		joined := Distribution{Unit: d.Unit}
		for i := range d.From {
			last := len(joined.From) - 1
			if last >= 0 && leading(joined.From[last], digits) == leading(d.From[i], digits) {
				joined.To[last] = d.To[i]
				joined.Counts[last] += d.Counts[i]
				continue
			}
			joined.Add(d.From[i], d.To[i], d.Counts[i])
		}
		d = joined
	}
	return d
}

// leading keeps the leading binary digits of a value.
func leading(value int64, digits int) int64 {
	shift := max(0, bits.Len64(uint64(value))-digits)
	return value >> shift << shift
}

// Count returns the number of all operations.
func (d Distribution) Count() int64 {
	sum := int64(0)
	for _, count := range d.Counts {
		sum += count
	}
	return sum
}

// Over is the share of the operations above a value, in parts per million. The operations of the bin that contains the value are divided in
// proportion. known is false if there are no operations.
func (d Distribution) Over(value int64) (partsPerMillion int64, known bool) {
	return d.share(func(from, to int64) float64 {
		if from == to {
			return indicator(from > value)
		}
		return float64(to-value) / float64(to-from)
	})
}

// Below is the share of the operations below a value, like Over.
func (d Distribution) Below(value int64) (partsPerMillion int64, known bool) {
	return d.share(func(from, to int64) float64 {
		if from == to {
			return indicator(from < value)
		}
		return float64(value-from) / float64(to-from)
	})
}

// share adds up the parts of the bins, as a share of all operations.
func (d Distribution) share(part func(from, to int64) float64) (partsPerMillion int64, known bool) {
	all, within := 0.0, 0.0
	for i, count := range d.Counts {
		all += float64(count)
		within += float64(count) * min(max(part(d.From[i], d.To[i]), 0), 1)
	}
	if all == 0 {
		return 0, false
	}
	return int64(math.Round(within / all * 1e6)), true
}

// mean returns the mean of the operations, each counted with the middle of its bin.
func (d Distribution) mean() float64 {
	all, sum := 0.0, 0.0
	for i, count := range d.Counts {
		all += float64(count)
		sum += float64(count) * (float64(d.From[i]) + float64(d.To[i])) / 2
	}
	return sum / max(all, 1)
}

func indicator(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Mode is the beginning of the bin with the most operations, or of the first of such bins. known is false if there are no operations.
func (d Distribution) Mode() (value int64, known bool) {
	most := int64(0)
	for i, count := range d.Counts {
		if count > most {
			most, value = count, d.From[i]
		}
	}
	return value, most > 0
}

// Requests returns the distribution of requests by size, counted in rows that begin at these sizes.
func Requests(bounds []int64, columns ...[]int64) Distribution {
	d := Distribution{Unit: UnitBytes}
	for i, from := range bounds {
		count, to := int64(0), 2*from
		if i+1 < len(bounds) {
			to = bounds[i+1]
		}
		for _, column := range columns {
			if i < len(column) {
				count += column[i]
			}
		}
		if count > 0 {
			d.Add(from, to, count)
		}
	}
	return d
}

// validateDistributions reports distributions that cannot be used in computations.
func (d PhaseDocument) validateDistributions() error {
	if len(d.Distributions) > MaxDistributions {
		return fmt.Errorf("there are %d distributions: at most %d fit, drop some", len(d.Distributions), MaxDistributions)
	}
	for _, name := range sortedKeys(d.Distributions) {
		kind, known := LookupDistribution(name)
		one := d.Distributions[name]
		switch {
		case !known:
			return fmt.Errorf("distribution %.80q is not in the vocabulary: use a name from results.Distributions or add it there", name)
		case one.Unit != kind.Unit:
			return fmt.Errorf("distribution %s is in %.80q: it has to be in %s", name, one.Unit, kind.Unit)
		}
		if err := one.validate(); err != nil {
			return fmt.Errorf("distribution %s: %w", name, err)
		}
	}
	return nil
}

func (d Distribution) validate() error {
	if len(d.From) > MaxBins || len(d.To) != len(d.From) || len(d.Counts) != len(d.From) {
		return fmt.Errorf("from, to and counts have %d, %d and %d entries: give them as many, at most %d", len(d.From), len(d.To),
			len(d.Counts), MaxBins)
	}
	const most = int64(1) << 53 // the sum of all bins does not overflow
	last, sum := int64(0), int64(0)
	for i, from := range d.From {
		if from < last || d.To[i] < from || d.Counts[i] < 0 || d.Counts[i] > most-sum {
			return fmt.Errorf("bin %d from %d to %d with %d operations: give bins in order that do not overlap, with counts of at least 0", i, from,
				d.To[i], d.Counts[i])
		}
		last, sum = d.To[i], sum+d.Counts[i]
	}
	return nil
}
