//go:build linux

package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/workload"
)

// checkStreams refuses what several streams cannot read without pauses, or without a log of all reads.
func (c *scan) checkStreams() error {
	reads := c.each / c.block * int64(c.regions)
	switch {
	case c.regions%c.streams != 0 || c.given.RandomRegions != nil:
		return invalidf(ReasonNotPossible, "%d regions cannot be divided among %d streams: make regions a multiple of streams, and remove "+
			"randomRegions", c.regions, c.streams)
	case len(c.extents) > 1:
		return invalidf(ReasonNotPossible, "%s", workload.OneFile)
	case reads > maxLoggedReads:
		return invalidf(ReasonNotPossible, "%d reads are more than the %d whose times can be kept: use a larger blockSize, fill less, or write "+
			"streams: 1", reads, maxLoggedReads)
	}
	return nil
}

// inStreams reads every streams-th region in a stream of its own: parts of the data that are slower than others are then shared by all
// streams, so that these end together.
func (c *scan) inStreams(ctx context.Context, s *session, message string, bytes int64) (fio.Sum, error) {
	var jobs []fio.Job
	for stream := range c.streams {
		piece := extent{c.extents[0].path, c.extents[0].offset + int64(stream)*c.each, bytes / int64(c.streams)}
		job := c.read(s, fmt.Sprintf("stream-%d", stream), piece, true)
		job.Part, job.Gap = c.each, int64(c.streams-1)*c.each
		jobs = append(jobs, job)
	}
	for at := range c.timed {
		c.timed[at].Stream = at % c.streams
	}
	return c.logged(ctx, s, message, jobs, bytes)
}

// position of the region that a job reads as its so many-th. One stream may have several jobs, and goes through all regions.
func (c *scan) position(job int, count int64) int {
	if c.streams > 1 {
		return job + int(count)*c.streams
	}
	return int(count)
}

// A stream may be at work for so much longer than another one; fio starts them some milliseconds apart.
const (
	streamsPercent = 10
	streamsSlack   = 100 * time.Millisecond
)

// spent is how long the scan took: the time of its regions one after another, in the stream that took longest. A stream that ends before
// the others leaves them the storage for the rest of the time, and their rates are not those of so many streams any more.
func (c *scan) spent(s *session) time.Duration {
	streams := make([]time.Duration, max(c.streams, 1))
	for at, region := range c.timed {
		streams[at%len(streams)] += time.Duration(region.Nanoseconds)
	}
	common, longest := slices.Min(streams), slices.Max(streams)
	if len(streams) == 1 {
		return longest
	}
	words := fmt.Sprintf("all %d streams read together for %s, and the longest took %s", len(streams), common.Round(time.Millisecond),
		longest.Round(time.Millisecond))
	together := longest-common <= longest*streamsPercent/100+streamsSlack
	if s.check("streams", together, "%s", words); !together {
		c.apart = words + ": write more regions, or fill more"
	}
	return longest
}
