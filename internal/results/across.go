package results

import "strings"

// Across says how the values of a metric on several nodes are combined.
type Across string

// The values of Across.
const (
	// AcrossSum: the sum over all nodes.
	AcrossSum Across = "Sum"
	// AcrossMax and AcrossMin: the node with the largest or smallest value. For measurements, that is the worst: percentiles of
	// nodes cannot be averaged, and a mean would hide the slow one.
	AcrossMax Across = "Max"
	AcrossMin Across = "Min"
	// AcrossMean: the mean of the nodes, rounded to nearest, where neither a sum nor a worst value is meaningful.
	AcrossMean Across = "Mean"
)

// acrossByName are the metrics that do not follow the rule of their unit.
var acrossByName = map[string]Across{
	"slowestRegionReadBytesPerSecond":            AcrossMin,
	"fastestRegionReadBytesPerSecond":            AcrossMax,
	"walBytesPerTransaction":                     AcrossMax,
	"diskReadBytesPerTransaction":                AcrossMax,
	"diskWrittenBytesPerTransaction":             AcrossMax,
	"largestFreeSegmentBytes":                    AcrossMin,
	"diskReadRequestBytes":                       AcrossMin,
	"diskWriteRequestBytes":                      AcrossMin,
	"rounds":                                     AcrossMax,
	"cpuNanoseconds":                             AcrossSum,
	"cpuNanosecondsPerThousandOperations":        AcrossMean,
	"nodeUserNanoseconds":                        AcrossSum,
	"nodeSystemNanoseconds":                      AcrossSum,
	"nodeCPUNanoseconds":                         AcrossSum,
	"nodeCPUNanosecondsPerThousandOperations":    AcrossMean,
	"nodeCPUNanosecondsPerMebibyte":              AcrossMean,
	"nodeMemoryAvailableBytes":                   AcrossMin,
	"nodeMemoryAvailableLeastBytes":              AcrossMin,
	"nodeARCBytes":                               AcrossMax,
	"nodeARCMostBytes":                           AcrossMax,
	"nodeUserNanosecondsPerThousandOperations":   AcrossMean,
	"nodeSystemNanosecondsPerThousandOperations": AcrossMean,
	"nodeUserNanosecondsPerMebibyte":             AcrossMean,
	"nodeSystemNanosecondsPerMebibyte":           AcrossMean,
}

// Across returns how the values of several nodes are combined: rates, amounts and counts are added. For times the longest counts, and for
// shares and ratios the worst one, or their mean if neither direction is worse.
func (m Metric) Across() Across {
	alone := m.Name[strings.LastIndexByte(m.Name, '.')+1:] // without the name of a job or workload
	if across, special := acrossByName[alone]; special {
		return across
	}
	if strings.HasSuffix(m.Name, "."+StatisticMode) || strings.HasSuffix(m.Name, "."+StatisticCount) {
		return AcrossMin
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

// join combines the values of several nodes.
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

// groupMetrics returns the metrics of phases that several nodes start together.
func groupMetrics() []Metric {
	return []Metric{{Name: MetricStartLag, Unit: UnitNanoseconds, Better: Lower,
		Description: "How much later than agreed the workload began, of several nodes that begin together."}}
}

// MetricStartLag is the name of the metric that says how late a workload started.
const MetricStartLag = "startLagNanoseconds"
