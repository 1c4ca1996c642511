package operate

import "github.com/storagebench/storagebench/api/v1alpha1"

// kind is what both the manager and the agent have to know about an operation.
type kind struct {
	// metrics are the metrics, besides the duration, that a phase can get from it. A test of the agent compares them with what the agent
	// reports.
	metrics []string
	// continuous, see Continuous. changesDisks, see ChangesDisks. leavesNothing is the opposite of LeavesTraces.
	continuous, changesDisks, leavesNothing bool
}

// kinds are the operations, by the field of PoolAction that requests them.
var kinds = map[string]kind{
	"addVdev": {changesDisks: true},
	"clone":   {metrics: []string{"referencedBytes"}},
	"copy": {metrics: []string{"copiedBytes", "copiedFiles", "overwrittenFiles", "copiedBytesPerSecond",
		"diskWrittenBytesPerCopiedBytePartsPerMillion", "diskReadBytesPerCopiedBytePartsPerMillion", "diskWritesPerCopiedMebibyteMilli"},
		continuous: true},
	"destroyDataset":  {metrics: []string{"freedBytes", MetricCommand}, continuous: true},
	"destroySnapshot": {metrics: []string{"freedBytes", MetricCommand}, continuous: true},
	"exportImport":    {leavesNothing: true},
	"layoutScore":     {metrics: []string{"layoutScorePartsPerMillion"}, continuous: true, leavesNothing: true},
	"metaslabMap":     {metrics: []string{"freeSegments", "largestFreeSegmentBytes"}, continuous: true, leavesNothing: true},
	"moduleParameter": {continuous: true, leavesNothing: true},
	"observe":         {leavesNothing: true},
	// The disk is online again before the operation ends.
	"offlineDevice": {metrics: []string{"offlineNanoseconds", "resilverNanoseconds", "resilveredBytes", "errorsFound"}, continuous: true,
		leavesNothing: true},
	"removeVdev":    {metrics: []string{"copiedBytes"}, continuous: true, changesDisks: true},
	"replaceDevice": {metrics: []string{"resilveredBytes", "errorsFound"}, continuous: true, changesDisks: true},
	"replicate":     {metrics: []string{"receivedReferencedBytes", "sentBytes", "resentBytes"}, continuous: true},
	"scrub":         {metrics: []string{"scannedBytes", "repairedBytes", "errorsFound", "dataErrors"}, continuous: true, leavesNothing: true},
	// Changed properties are reset before the next run.
	"setProperty": {leavesNothing: true},
	"snapshot":    {metrics: []string{"referencedBytes"}},
	"trim":        {metrics: []string{"trimmedBytes", "errorsFound"}, continuous: true, leavesNothing: true},
}

// kindOf returns the kind of an action. A test checks that every field of PoolAction has one.
func kindOf(action *v1alpha1.PoolAction) kind { return kinds[Name(*action)] }

// Metrics returns the metrics, besides the duration, that a phase can get from an operation. known is false for an operation that this
// release does not know.
func Metrics(action *v1alpha1.PoolAction) (names []string, known bool) {
	found, known := kinds[Name(*action)]
	return found.metrics, known
}

// Continuous reports whether an operation lasts: a workload beside it is measured only while it runs. Other operations are over at once.
func Continuous(action *v1alpha1.PoolAction) bool { return kindOf(action).continuous }

// ChangesDisks reports whether an operation gives its pool disks other than those in its spec.
func ChangesDisks(action *v1alpha1.PoolAction) bool { return kindOf(action).changesDisks }

// LeavesTraces reports whether an operation creates or removes something besides the workload's data: a dataset, a snapshot or a disk.
func LeavesTraces(action *v1alpha1.PoolAction) bool { return !kindOf(action).leavesNothing }
