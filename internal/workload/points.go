package workload

import "time"

// A series has a point for each second. When it has MaxPoints, neighbouring points are joined. The rates before and after an operation come
// from points that lie completely in that time: a time as long as two points contains at least one. The time before the operation needs one
// point more, because it counts from the start of the pod, which is before the measurement.
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
