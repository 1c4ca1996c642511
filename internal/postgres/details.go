package postgres

import (
	"errors"
	"strings"
	"time"
)

// Details is the document in Outcome.Details, which explains the metrics.
type Details struct {
	Scale                          int64 `json:"scale"`
	AskedDatabaseBytes             int64 `json:"askedDatabaseBytes"`
	DatabaseBytes                  int64 `json:"databaseBytes"`
	Clients                        int   `json:"clients"`
	Threads                        int   `json:"threads"`
	InitdbNanoseconds              int64 `json:"initdbNanoseconds"`
	LoadNanoseconds                int64 `json:"loadNanoseconds"`
	CheckpointAfterLoadNanoseconds int64 `json:"checkpointAfterLoadNanoseconds"`
	StopNanoseconds                int64 `json:"stopNanoseconds"`
	AutovacuumHasPaused            bool  `json:"autovacuumHadPaused"` // false: it was still at work when the measurement began
	// Began is when the measured part began.
	Began time.Time `json:"began"`
	// TransactionsPerSecondMilli is the rate with three more digits.
	TransactionsPerSecondMilli int64 `json:"transactionsPerSecondMilli"`
	ConnectionNanoseconds      int64 `json:"connectionNanoseconds"`
	// PgbenchLatencyMean and StandardDeviation are what pgbench itself computed, to compare with the metrics from its logs.
	PgbenchLatencyMeanNanoseconds              int64 `json:"pgbenchLatencyMeanNanoseconds"`
	PgbenchLatencyStandardDeviationNanoseconds int64 `json:"pgbenchLatencyStandardDeviationNanoseconds"`
	// Server are the changes of the server's own counters.
	Server map[string]int64 `json:"server"`
	// Latencies are numbers of transactions by latency, each bucket from the end of the one before.
	Latencies []Bucket `json:"latencies"`
	// Series are rates over time, at most 240.
	Series []Point `json:"series"`
}

// Bucket counts transactions.
type Bucket struct {
	BelowNanoseconds int64 `json:"belowNanoseconds"`
	Transactions     int64 `json:"transactions"`
}

// Point is the rate over some seconds.
type Point struct {
	EndMilliseconds            int64 `json:"endMilliseconds"`
	TransactionsPerSecondMilli int64 `json:"transactionsPerSecondMilli"`
	LatencyMeanNanoseconds     int64 `json:"latencyMeanNanoseconds"`
	Failed                     int64 `json:"failed,omitempty"`
}

const maxPoints = 240

// series is samples over time; when it is full, neighbours are joined.
type series struct {
	points []part
	every  int // samples in a full point
}

// part is some samples together, weighed by their length and number.
type part struct {
	samples                      int
	end, seconds, number, waited float64 // waited: latency times number
	failed                       int64
}

func (p *part) join(other part) {
	p.samples += other.samples
	p.end = other.end
	p.seconds += other.seconds
	p.number += other.number
	p.waited += other.waited
	p.failed += other.failed
}

func (s *series) add(sample sample) {
	s.every = max(s.every, 1)
	before := 0.0
	if last := len(s.points) - 1; last >= 0 {
		before = s.points[last].end
	}
	seconds := max(0, sample.seconds-before)
	next := part{samples: 1, end: sample.seconds, seconds: seconds, number: sample.tps * seconds,
		waited: sample.latency * sample.tps * seconds, failed: sample.failed}
	if last := len(s.points) - 1; last >= 0 && s.points[last].samples < s.every {
		s.points[last].join(next)
		return
	}
	if len(s.points) == maxPoints {
		for i := range maxPoints / 2 {
			s.points[i] = s.points[2*i]
			s.points[i].join(s.points[2*i+1])
		}
		s.points = s.points[:maxPoints/2]
		s.every *= 2
	}
	s.points = append(s.points, next)
}

func (s *series) document() []Point {
	points := make([]Point, 0, len(s.points))
	for _, part := range s.points {
		point := Point{EndMilliseconds: int64(part.end * 1000), Failed: part.failed}
		if part.seconds > 0 && part.number > 0 {
			point.TransactionsPerSecondMilli = int64(part.number / part.seconds * 1000)
			point.LatencyMeanNanoseconds = int64(part.waited / part.number * 1e6)
		}
		points = append(points, point)
	}
	return points
}

// describe fills in the details.
func (s *session) describe(loaded load, measured measurement) {
	d := &s.details
	d.Scale, d.AskedDatabaseBytes, d.DatabaseBytes = loaded.scale, s.options.DatabaseBytes, loaded.databaseBytes
	d.LoadNanoseconds, d.CheckpointAfterLoadNanoseconds = loaded.load.Nanoseconds(), loaded.checkpoint.Nanoseconds()
	d.AutovacuumHasPaused = loaded.settled
	d.Clients, d.Threads, d.Began = s.options.Clients, measured.threads, measured.began.UTC()
	d.TransactionsPerSecondMilli = int64(measured.summary.tps * 1000)
	d.ConnectionNanoseconds = int64(measured.summary.connectionTime * 1e6)
	d.PgbenchLatencyMeanNanoseconds = int64(measured.summary.latency * 1e6)
	d.PgbenchLatencyStandardDeviationNanoseconds = int64(measured.summary.deviation * 1e6)
	d.Server = measured.statistic
	d.Latencies = measured.counted.latencies.coarse()
	d.Series = measured.series.document()
}

// withoutScratch removes the scratch folder from the path of the script in pgbench's output: users know it only as the script.
func (s *session) withoutScratch(err error) error {
	var failed *commandError
	if !errors.As(err, &failed) {
		return err
	}
	for i, line := range failed.lines {
		failed.lines[i] = strings.ReplaceAll(line, s.scratch+"/", "")
	}
	return err
}
