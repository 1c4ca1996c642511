//go:build !race

package pictures

const raceDetector = false
