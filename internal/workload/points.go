package workload

import "time"

// A series over time has a point for each second. When it has MaxPoints, neighbours are joined. The rates before and after an operation are
// of points that lie wholly in that time: of two points' time at least one does. The pod starts before its measurement does.
const (
	MaxPoints    = 480
	pointsBefore = 3
	pointsAfter  = 2
)

// longestPoint is how long a point is at the end of a measurement.
func longestPoint(measured time.Duration) time.Duration {
	point := time.Second
	for point*MaxPoints < measured {
		point *= 2
	}
	return point
}
