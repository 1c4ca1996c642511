//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/results"
)

const (
	defaultScanBlock = 128 << 10
	defaultRegions   = 8
	// maxLoggedReads bounds the log of single reads, which fio keeps in memory; that is 122 GiB in blocks of 128 KiB.
	maxLoggedReads = 1_000_000
)

// scan reads regions one after another, in one stream or several.
type scan struct {
	given   v1alpha1.ScanWorkload
	warm    bool
	extents []extent
	block   int64
	regions int
	streams int
	each    int64 // bytes of a region
	timed   []Region
	apart   string // says that the streams did not read together; empty if they did
}

func (c *scan) prepare(ctx context.Context, s *session) error {
	extents, err := s.volume.data()
	if err != nil {
		return err
	}
	c.extents, c.block, c.regions = extents, size(c.given.BlockSize, defaultScanBlock), defaultRegions
	if c.given.Regions > 0 {
		c.regions = int(c.given.Regions)
	}
	if c.streams = 1; c.given.Streams != nil {
		c.streams = int(*c.given.Streams)
	}
	var all int64
	for i := range c.extents {
		c.extents[i].bytes -= c.extents[i].bytes % c.block // only whole blocks are read
		all += c.extents[i].bytes
	}
	if c.each = all / int64(c.regions) / c.block * c.block; c.each == 0 {
		return invalidf(ReasonNotPossible,
			"the data of %d bytes is too small for %d regions with blocks of %d bytes: fill more, or use fewer regions", all, c.regions, c.block)
	}
	if c.warm {
		return s.warmUp(ctx, extents)
	}
	return nil
}

// choose returns the regions in the order in which they are read.
func (c *scan) choose(seed func() int64) (chosen []int, used int64) {
	if c.given.RandomRegions == nil {
		for i := range c.regions {
			chosen = append(chosen, i)
		}
		return chosen, 0
	}
	used = seed()
	order := rand.New(rand.NewPCG(uint64(used), 0)).Perm(c.regions)
	return order[:min(int(*c.given.RandomRegions), c.regions)], used
}

// pieces returns the extents of a region, which may begin in one file and end in another.
func (c *scan) pieces(region int) (pieces []extent) {
	from, to := int64(region)*c.each, int64(region+1)*c.each
	var start int64
	for _, e := range c.extents {
		first, last := max(from, start), min(to, start+e.bytes)
		if first < last {
			pieces = append(pieces, extent{e.path, e.offset + first - start, last - first})
		}
		start += e.bytes
	}
	return pieces
}

func (c *scan) round(ctx context.Context, s *session, _ int) (figures, error) {
	chosen, seed := c.choose(s.random.next)
	c.timed = nil
	for _, region := range chosen {
		c.timed = append(c.timed, Region{Index: region, Offset: int64(region) * c.each})
	}
	bytes := c.each * int64(len(chosen))
	message := fmt.Sprintf("scanning %d regions", len(chosen))
	var sum fio.Sum
	var err error
	switch {
	case c.streams > 1:
		sum, err = c.inStreams(ctx, s, fmt.Sprintf("%s in %d streams", message, c.streams), bytes)
	case c.given.RandomRegions == nil && bytes/c.block <= maxLoggedReads:
		sum, err = c.inOneStream(ctx, s, message, bytes)
	default:
		sum, err = c.oneByOne(ctx, s, message, bytes)
	}
	if err != nil {
		return figures{}, err
	}
	for _, region := range c.timed {
		if region.Bytes != c.each || region.Nanoseconds <= 0 {
			return figures{}, invalidf(ReasonNotCovered, "%d of %d bytes of region %d were read in %d ns: see the report of fio", region.Bytes,
				c.each, region.Index, region.Nanoseconds)
		}
	}
	if c.streams == 1 {
		sum.Duration = c.spent()
	}
	s.check("coverage", true, "%d bytes in %d regions were read once each", bytes, len(chosen))
	return figures{sum: sum, throughput: float64(bytes) / sum.Duration.Seconds(), seed: seed}, nil
}

// read is the job that reads one piece.
func (c *scan) read(s *session, name string, piece extent, first bool) fio.Job {
	return fio.Job{Name: name, Mode: fio.Read, Paths: []string{piece.path}, Offset: piece.offset, Size: piece.bytes, Workers: 1,
		BlockSize: c.block,
		Direct:    s.direct(piece, c.block, c.warm), KeepCache: c.warm, After: !first}
}

func (c *scan) run(ctx context.Context, s *session, message string, jobs []fio.Job, bytes int64) (fio.Sum, fio.Report, error) {
	sum, report, err := s.measureFIO(ctx, message, fio.NewFile(jobs...), bytes, expectation{})
	if err == nil && (len(report.Jobs) != len(jobs) || sum.Read.Bytes != bytes) {
		err = invalidf(ReasonNotCovered, "fio read %d bytes in %d pieces instead of %d in %d: see its report", sum.Read.Bytes, len(report.Jobs),
			bytes, len(jobs))
	}
	return sum, report, err
}

// inOneStream reads all regions without a pause: pauses between regions would let storage with a burst allowance recover, and look faster
// than it is. The log of all reads shows when one region ended and the next began.
func (c *scan) inOneStream(ctx context.Context, s *session, message string, bytes int64) (fio.Sum, error) {
	var jobs []fio.Job
	left := bytes
	for i, e := range c.extents {
		if e.bytes = min(e.bytes, left); e.bytes > 0 {
			jobs = append(jobs, c.read(s, fmt.Sprintf("scan-%d", i), e, len(jobs) == 0))
		}
		left -= e.bytes
	}
	folder, err := s.logFolder()
	if err != nil {
		return fio.Sum{}, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	for i := range jobs {
		jobs[i].LatencyLog = filepath.Join(folder, "scan")
	}
	sum, _, err := c.run(ctx, s, message, jobs, bytes)
	if err != nil {
		return fio.Sum{}, err
	}
	return sum, c.readTimes(folder, len(jobs))
}

// readTimes assigns each read to its region.
func (c *scan) readTimes(folder string, jobs int) error {
	waited := make([]int64, len(c.timed))
	perRegion, reads := c.each/c.block, int64(0)
	for job := range jobs {
		file, err := os.Open(filepath.Join(folder, fmt.Sprintf("scan_lat.%d.log", job+1)))
		if err != nil {
			return err
		}
		var last int64 // the clock of a job begins with it
		err = fio.EachSample(file, func(sample fio.Sample) {
			if at := int(reads / perRegion); at < len(c.timed) {
				c.timed[at].Bytes += c.block
				c.timed[at].Nanoseconds += (sample.Milliseconds - last) * int64(time.Millisecond)
				waited[at] += sample.Nanoseconds
			}
			last = sample.Milliseconds
			reads++
		})
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	c.share(waited)
	return nil
}

// share divides the time of the scan among its regions. fio truncates the times at which reads ended to whole milliseconds, so the time
// between two of them may be up to one millisecond too long: sure is the time without that millisecond, or the sum of the latencies if that
// is longer. The total is known much better. The rest of it, such as the time that fio takes between reads, is divided among the regions in
// proportion.
func (c *scan) share(waited []int64) {
	var sure, whole int64
	for i := range c.timed {
		told := c.timed[i].Nanoseconds
		c.timed[i].Nanoseconds = max(waited[i], told-time.Millisecond.Nanoseconds())
		sure += c.timed[i].Nanoseconds
		whole += told
	}
	if whole <= sure || sure <= 0 {
		return
	}
	for i := range c.timed {
		c.timed[i].Nanoseconds = int64(float64(c.timed[i].Nanoseconds) * float64(whole) / float64(sure))
	}
}

// spent is how long the regions took, one after another.
func (c *scan) spent() time.Duration {
	var sum time.Duration
	for _, region := range c.timed {
		sum += time.Duration(region.Nanoseconds)
	}
	return sum
}

// oneByOne reads each region as a job of its own: regions that were chosen at random do not follow each other, and very many reads are not
// logged. fio takes about 0.2 s from one job to the next, which does not count.
func (c *scan) oneByOne(ctx context.Context, s *session, message string, bytes int64) (fio.Sum, error) {
	var jobs []fio.Job
	var owners []int // the position of the region that a job belongs to
	for position, region := range c.timed {
		for _, piece := range c.pieces(region.Index) {
			jobs = append(jobs, c.read(s, fmt.Sprintf("region-%d", region.Index), piece, len(jobs) == 0))
			owners = append(owners, position)
		}
	}
	sum, report, err := c.run(ctx, s, message, jobs, bytes)
	if err != nil {
		return fio.Sum{}, err
	}
	for i, job := range report.Jobs {
		c.timed[owners[i]].Bytes += job.Read.Bytes
		c.timed[owners[i]].Nanoseconds += took(job.Read)
	}
	s.note("between %d pieces, fio paused for %s in all, which is not counted: storage with a burst allowance recovers meanwhile and "+
		"looks faster; larger regions reduce this effect", len(jobs), s.idle.Round(time.Millisecond))
	return sum, nil
}

// took is how long one stream worked. fio truncates that to whole milliseconds. The sum of its latencies is exact, but omits the time
// between reads. Neither can be too long, so the longer one is nearer to the truth.
func took(d fio.Direction) int64 {
	return max(d.RuntimeMilliseconds*int64(time.Millisecond), d.Latency.Total())
}

// finish keeps the regions of the last round, in their order.
func (c *scan) finish(s *session, _ fio.Sum) error {
	s.details.Regions = c.timed
	s.metrics["regions"] = int64(len(c.timed))
	var rates, times []int64
	for _, region := range c.timed {
		rates = append(rates, perSecond(region.Bytes, time.Duration(region.Nanoseconds)))
		times = append(times, region.Nanoseconds)
	}
	var distribution results.Distribution
	for _, nanoseconds := range slices.Sorted(slices.Values(times)) {
		distribution.Add(nanoseconds, nanoseconds, 1)
	}
	s.addDistribution("scanRegionTime", results.UnitNanoseconds, distribution)
	s.metrics["slowestRegionReadBytesPerSecond"], s.metrics["fastestRegionReadBytesPerSecond"] = slices.Min(rates), slices.Max(rates)
	if c.apart != "" {
		return invalidf(results.ReasonNotTogether, "%s", c.apart)
	}
	return nil
}
