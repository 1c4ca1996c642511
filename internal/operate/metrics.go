package operate

import "github.com/storagebench/storagebench/api/v1alpha1"

// metrics are the metrics, besides the duration, that a phase can get from each operation, by the field of PoolAction that requests the
// operation. A test of the agent compares them with what the agent reports.
var metrics = map[string][]string{
	"addVdev": nil,
	"clone":   {"referencedBytes"},
	"copy": {"copiedBytes", "copiedFiles", "overwrittenFiles", "copiedBytesPerSecond", "diskWrittenBytesPerCopiedBytePartsPerMillion",
		"diskReadBytesPerCopiedBytePartsPerMillion", "diskWritesPerCopiedMebibyteMilli"},
	"destroyDataset":  {"freedBytes", MetricCommand},
	"destroySnapshot": {"freedBytes", MetricCommand},
	"exportImport":    nil,
	"layoutScore":     {"layoutScorePartsPerMillion"},
	"metaslabMap":     {"freeSegments", "largestFreeSegmentBytes"},
	"moduleParameter": nil,
	"observe":         nil,
	"offlineDevice":   {"offlineNanoseconds", "resilverNanoseconds", "resilveredBytes", "errorsFound"},
	"removeVdev":      {"copiedBytes"},
	"replaceDevice":   {"resilveredBytes", "errorsFound"},
	"replicate":       {"receivedReferencedBytes", "sentBytes", "resentBytes"},
	"scrub":           {"scannedBytes", "repairedBytes", "errorsFound", "dataErrors"},
	"setProperty":     nil,
	"snapshot":        {"referencedBytes"},
	"trim":            {"trimmedBytes", "errorsFound"},
}

// Metrics returns the metrics, besides the duration, that a phase can get from an operation. known is false for an operation that this
// release does not know.
func Metrics(action *v1alpha1.PoolAction) (names []string, known bool) {
	names, known = metrics[Name(*action)]
	return names, known
}
