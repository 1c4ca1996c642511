package runs

import (
	"slices"
	"time"

	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/results"
)

// ofWorkload maps the byte metrics of a workload to the metric for the disks' bytes per byte of the workload, and to the disk counter for
// it.
var ofWorkload = map[string]struct {
	name string
	of   func(poolseries.Vdev) []int64
}{
	"readBytes":    {"readBytesPerApplicationByteMilli", func(v poolseries.Vdev) []int64 { return v.ReadBytes }},
	"writtenBytes": {"writtenBytesPerApplicationByteMilli", func(v poolseries.Vdev) []int64 { return v.WriteBytes }},
}

// bytesPerByte adds the number of bytes that the disks read and wrote for each byte of a workload, or returns why that is unknown.
func bytesPerByte(metrics map[string]int64, d poolseries.Document, phase results.PhaseDocument) (missing string) {
	stretches, known := stretchesOf(d, phase.Times())
	for bytes, ratio := range ofWorkload {
		var disks float64
		counted := false
		for _, vdev := range d.Vdevs {
			if counts := ratio.of(vdev); vdev.Disk && phase.Metrics[bytes] > 0 && len(counts) == len(d.Series.OffsetMilliseconds) {
				one, covered := countedFor(d, counts, stretches, phase.Kind == results.KindFill)
				if !known || !covered {
					return "disk bytes for each byte of the workload: too few samples around the measured time"
				}
				disks, counted = disks+one, true
			}
		}
		if counted {
			inflation(metrics, ratio.name, disks, float64(phase.Metrics[bytes]))
		}
	}
	return ""
}

// stretch is a measured time between the last sample before it and the first sample after it. inner is the first sample within it.
type stretch struct {
	from, to             time.Time
	before, inner, after int
}

// countedFor returns how much a disk did for the workload in some stretches. All writes of a workload are on the disk when its interval
// ends, and many of them are written at the last moment. So the count extends to the first sample after the end, when the disk is idle
// again. At the beginning, the disk may still be busy with a ramp: the time until the first inner sample counts at the rate of the rest,
// but with no more than the disk did since the sample before. Before a fill, nothing of the run uses the disk, so all counts.
func countedFor(d poolseries.Document, counts []int64, stretches []stretch, fill bool) (sum float64, known bool) {
	for _, s := range stretches {
		all, covered, whole := float64(counts[s.after]-counts[s.before]), s.to.Sub(sampledAt(d, s.inner)), s.to.Sub(s.from)
		if fill {
			sum += all
			continue
		}
		if covered*100 < whole*minCoveredPercent || covered <= 0 {
			return 0, false
		}
		sum += min(all, float64(counts[s.after]-counts[s.inner])*whole.Seconds()/covered.Seconds())
	}
	return sum, true
}

// stretchesOf returns the stretches of the intervals and joins those with a common sample. known is false if a sample is missing, or was
// too late to belong to its interval.
func stretchesOf(d poolseries.Document, times []results.Interval) (stretches []stretch, known bool) {
	for _, interval := range times {
		s := stretch{from: interval.From, to: interval.To, before: -1, inner: -1, after: -1}
		for i := range d.Series.OffsetMilliseconds {
			at := sampledAt(d, i)
			if !at.After(s.from) {
				s.before = i
			}
			if s.inner < 0 && !at.Before(s.from) {
				s.inner = i
			}
			if s.after < 0 && !at.Before(s.to) {
				s.after = i
			}
		}
		if s.before < 0 || s.after < 0 || sampledAt(d, s.after).Sub(s.to) > max(latestSample, interval.Long()/latestShare) {
			return nil, false
		}
		if last := len(stretches) - 1; last >= 0 && s.before < stretches[last].after {
			stretches[last].to, stretches[last].after = s.to, s.after
			continue
		}
		stretches = append(stretches, s)
	}
	return stretches, len(stretches) > 0
}

// A sample counts for the end of an interval if it comes at most latestSample later. For a long interval, whose samples are thinned out,
// the limit is 1/latestShare of the interval.
const (
	latestSample = 10 * time.Second
	latestShare  = 20
)

func sampledAt(d poolseries.Document, i int) time.Time {
	return d.StartedAt.Add(time.Duration(d.Series.OffsetMilliseconds[i]) * time.Millisecond)
}

// bytesTogether is bytesPerByte for workloads that run together. They do not end at the same time, so only rates can be compared.
func bytesTogether(metrics map[string]int64, d poolseries.Document, phase results.PhaseDocument) {
	disks, elapsed, whole := disksWithin(d, phase.Times())
	for bytes, count := range map[string]int64{"readBytes": disks.ReadBytes, "writtenBytes": disks.WriteBytes} {
		if elapsed > 0 {
			inflation(metrics, ofWorkload[bytes].name, perSecond(count, elapsed), perSecond(phase.Metrics[bytes], whole))
		}
	}
}

// joinBytes adds the byte ratios for the workloads on a pool. It adds none beside an operation, because the operation's bytes cannot be
// told apart from the workload's.
func joinBytes(metrics map[string]int64, d poolseries.Document, document *results.PhaseDocument, workloads []string, beside bool) {
	switch phase := caused(*document, workloads); {
	case beside: // validation rejects gates on them
	case !slices.Contains(workloads, ""):
		bytesTogether(metrics, d, phase)
	default:
		if missing := bytesPerByte(metrics, d, phase); missing != "" {
			document.Omit(missing)
		}
	}
}
