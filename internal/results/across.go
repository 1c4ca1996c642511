package results

// Across says how a metric of several nodes at once becomes one.
type Across string

// The values of Across.
const (
	// AcrossSum: what all nodes did together.
	AcrossSum Across = "Sum"
	// AcrossMax and AcrossMin: the one node with the largest or smallest value. For what is measured, that is the worst: percentiles
	// of nodes cannot be averaged, and a mean would hide the slow one.
	AcrossMax Across = "Max"
	AcrossMin Across = "Min"
	// AcrossMean: the mean of the nodes, rounded to nearest, where neither a sum nor a worst one makes sense.
	AcrossMean Across = "Mean"
)

// acrossByName are the metrics that do not follow their unit.
var acrossByName = map[string]Across{
	"slowestRegionReadBytesPerSecond":     AcrossMin,
	"fastestRegionReadBytesPerSecond":     AcrossMax,
	"walBytesPerTransaction":              AcrossMax,
	"largestFreeSegmentBytes":             AcrossMin,
	"diskReadRequestBytes":                AcrossMin,
	"diskWriteRequestBytes":               AcrossMin,
	"rounds":                              AcrossMax,
	"cpuNanoseconds":                      AcrossSum,
	"cpuNanosecondsPerThousandOperations": AcrossMean,
}

// Across is how the values of several nodes become one: rates, amounts and counts are added, of times the longest is taken, and of
// shares and ratios the worst, or the mean if there is no worse.
func (m Metric) Across() Across {
	if across, special := acrossByName[m.Name]; special {
		return across
	}
	switch m.Unit {
	case UnitBytes, UnitBytesPerSecond, UnitCount, UnitPerSecond:
		return AcrossSum
	case UnitNanoseconds:
		return AcrossMax
	}
	switch m.Better {
	case Lower:
		return AcrossMax
	case Higher:
		return AcrossMin
	default:
		return AcrossMean
	}
}

// join makes one value of those of several nodes.
func (a Across) join(values []int64) int64 {
	joined, sum := values[0], int64(0)
	for _, value := range values {
		sum += value
		if a == AcrossMax && value > joined || a == AcrossMin && value < joined {
			joined = value
		}
	}
	switch a {
	case AcrossSum:
		return sum
	case AcrossMean:
		count := int64(len(values))
		return (sum + count/2) / count
	default:
		return joined
	}
}

// groupMetrics are those of phases that several nodes begin together.
func groupMetrics() []Metric {
	return []Metric{{Name: MetricStartLag, Unit: UnitNanoseconds, Better: Lower,
		Description: "How much later than agreed the workload began, of several nodes that begin together."}}
}

// MetricStartLag is the name of the metric that tells a late start.
const MetricStartLag = "startLagNanoseconds"
