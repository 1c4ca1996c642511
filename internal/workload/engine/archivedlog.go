//go:build linux

package engine

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/internal/fio"
)

// segmentsPerLog is how many segments a log with an archiver has: while one is written, the archiver has time for the others.
const segmentsPerLog = 4

// segment is a part of a log. Its writer needs the token to write to it, and the archiver puts the token back once the segment is archived.
type segment struct {
	extent

	token chan struct{}
}

// switching is the state that a log and its archiver share.
type switching struct {
	// ready is closed when the logs exist. bytes is then the size of a segment.
	ready chan struct{}
	bytes int64
	// full are the segments that wait for the archiver.
	full chan *segment
}

func newSwitching() *switching {
	return &switching{ready: make(chan struct{}), full: make(chan *segment, 64*segmentsPerLog)}
}

// archivedLog is a redo workload whose full segments are archived. fio cannot tell when a segment is full, or when an append became
// durable, so the runner writes the appends itself.
type archivedLog struct {
	redo
	switching *switching
	crew      []*logWriter
	delay     func(kind string)

	bytes, operations atomic.Int64
	commits           commits
}

// commits records when the appends of all writers became durable.
type commits struct {
	mutex sync.Mutex
	// No append begins after until. Appends that are under way then end later, and the time that they still take is no gap: the runner itself
	// keeps the others from committing.
	began, last, until time.Time
	longest            time.Duration
	samples            *fio.Samples
}

func (c *commits) start(now, until time.Time, samples *fio.Samples) {
	c.began, c.last, c.until, c.longest, c.samples = now, now, until, 0, samples
}

// add counts an append that has become durable.
func (c *commits) add(at time.Time, took time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.samples.Add(fio.Sample{Milliseconds: at.Sub(c.began).Milliseconds(), Nanoseconds: took.Nanoseconds()})
	if at = firstOf(at, c.until); at.After(c.last) {
		c.longest, c.last = max(c.longest, at.Sub(c.last)), at
	}
}

// gap is the longest time without a commit, until now or until no append began anymore.
func (c *commits) gap(now time.Time) time.Duration {
	return max(c.longest, firstOf(now, c.until).Sub(c.last))
}

func firstOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (l *archivedLog) prepare(ctx context.Context, s *session) error {
	l.delay = s.executor.delay
	if err := l.redo.prepare(ctx, s); err != nil {
		return err
	}
	each := l.logs[0].bytes / segmentsPerLog / diskBlock * diskBlock
	shares := l.job.BlockSizes
	if len(shares) == 0 {
		shares = []fio.BlockShare{{Bytes: l.job.BlockSize, Percent: 100}}
	}
	largest := slices.MaxFunc(shares, func(a, b fio.BlockShare) int { return int(a.Bytes - b.Bytes) }).Bytes
	if each < largest {
		return invalidf(ReasonNotPossible, "a segment of the logs has %d bytes, and appends have up to %d: enlarge the volume, or use smaller "+
			"blockSizes or fewer writers", each, largest)
	}
	for i, log := range l.logs {
		one, err := l.newWriter(log, each, shares, largest, s.random.next()+int64(i))
		if err != nil {
			return err
		}
		l.crew = append(l.crew, one)
	}
	l.switching.bytes = each
	close(l.switching.ready)
	return nil
}

// diskBlock is the alignment of segments.
const diskBlock = 4096

func (l *archivedLog) round(ctx context.Context, s *session, _ int) (figures, error) {
	lasting, seed := length(l.given.Duration, defaultDuration), s.random.next()
	s.progress.stretch("redo with an archiver", s.progress.from, s.progress.to, 0, lasting)
	if err := s.begin(ctx); err != nil {
		return figures{}, err
	}
	if err := s.startAsFIO(ctx); err != nil {
		return figures{}, err
	}
	s.bracket.workers, s.bracket.loop = len(l.crew), loop{workers: len(l.crew), idles: true} // they wait for the archiver, too
	l.samples = fio.NewSamples(keptSamples, seed)
	l.bytes.Store(0)
	l.operations.Store(0)
	stop := s.recordEach(func() fio.Usage { return fio.Usage{WrittenBytes: l.bytes.Load(), Operations: l.operations.Load()} })
	took, err := l.work(ctx, lasting)
	stop()
	if err != nil {
		return figures{}, err
	}
	longest := l.commits.gap(time.Now())
	flush, err := s.end(ctx, true)
	if err != nil {
		return figures{}, err
	}
	all := figures{sum: fio.Sum{Duration: took}, seed: seed}
	var waited time.Duration
	for _, one := range l.crew {
		all.sum.Write.Latency.Add(one.writes)
		all.sum.Sync.Add(one.syncs)
		waited += one.waited
	}
	all.sum.Write.Bytes, all.sum.Write.Operations = l.bytes.Load(), l.operations.Load()
	all.sum.Flushed(flush)
	all.metrics = map[string]int64{"longestCommitGapNanoseconds": longest.Nanoseconds(), "archiverWaitNanoseconds": waited.Nanoseconds()}
	all.throughput = float64(all.sum.Write.Operations) / all.sum.Duration.Seconds()
	return all, nil
}

// ramp runs the workload without counting it.
func (l *archivedLog) ramp(ctx context.Context, _ *session, lasting time.Duration) error {
	l.samples = fio.NewSamples(1, 0)
	_, err := l.work(ctx, lasting)
	return err
}

// work lets all writers append for some time, and returns how long it took.
func (l *archivedLog) work(ctx context.Context, lasting time.Duration) (time.Duration, error) {
	began := time.Now()
	until := began.Add(lasting)
	l.commits.start(began, until, l.samples)
	err := crewed(ctx, len(l.crew), func(ctx context.Context, number int) error { return l.crew[number].work(ctx, until) })
	return time.Since(began), err
}

func (l *archivedLog) finish(s *session, sum fio.Sum) error {
	durable := sum.Write.Latency
	if l.job.Sync != syncWithWrite {
		durable = sum.Sync
	}
	s.addShares(durable)
	s.details.Samples, s.details.SamplesSeen = l.samples.Kept(), l.samples.Seen
	if durable.Count == 0 {
		return invalidf(ReasonNoNumbers, "no append became durable: measure longer")
	}
	return nil
}

// close closes the logs. A writer that still waits for the storage keeps its log open until the storage answers.
func (l *archivedLog) close() {
	for _, one := range l.crew {
		_ = one.file.Close() // each append was durable before it counted
	}
}

// logWriter appends to a log of its own.
type logWriter struct {
	*archivedLog
	file     *os.File
	fd       int
	segments []*segment
	number   int
	holds    bool  // whether it has the token of that segment
	at       int64 // the offset in that segment
	buffer   []byte
	shares   []fio.BlockShare
	random   *rand.ChaCha8
	choice   *rand.Rand

	writes, syncs fio.Latency
	waited        time.Duration
}

func (l *archivedLog) newWriter(log extent, each int64, shares []fio.BlockShare, largest, seed int64) (*logWriter, error) {
	flags := os.O_WRONLY | unix.O_NOFOLLOW
	if l.job.Sync == syncWithWrite {
		flags |= unix.O_DSYNC
	}
	if l.job.Direct {
		flags |= unix.O_DIRECT
	}
	file, err := os.OpenFile(log.path, flags, 0)
	if err != nil {
		return nil, err
	}
	one := &logWriter{archivedLog: l, file: file, fd: int(file.Fd()), buffer: pages(largest), shares: shares,
		random: rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)}),
		choice: rand.New(rand.NewPCG(uint64(seed), 0))}
	for i := range int64(segmentsPerLog) {
		one.segments = append(one.segments, &segment{extent{log.path, log.offset + i*each, each}, make(chan struct{}, 1)})
		one.segments[i].token <- struct{}{}
	}
	return one, nil
}

// work appends until the time is over.
func (w *logWriter) work(ctx context.Context, until time.Time) error {
	w.writes, w.syncs, w.waited = fio.Latency{}, fio.Latency{}, 0
	for ctx.Err() == nil && time.Now().Before(until) {
		bytes := w.next()
		if !w.holds || w.at+bytes > w.segments[w.number].bytes {
			if there, err := w.change(ctx, until); !there || err != nil {
				return err
			}
		}
		if err := w.append(bytes); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// next is the size of the next append.
func (w *logWriter) next() int64 {
	dice := w.choice.IntN(100)
	for _, share := range w.shares {
		if dice -= share.Percent; dice < 0 {
			return share.Bytes
		}
	}
	return w.shares[0].Bytes
}

// change hands the segment to the archiver, and waits until the next one may be written; false if the time is over before that.
func (w *logWriter) change(ctx context.Context, until time.Time) (there bool, err error) {
	if w.holds {
		w.switching.full <- w.segments[w.number]
		w.number, w.holds = (w.number+1)%segmentsPerLog, false
	}
	w.at = 0
	next := w.segments[w.number]
	select {
	case <-next.token:
		w.holds = true
		return true, nil
	default:
	}
	began, timer := time.Now(), time.NewTimer(time.Until(until))
	defer func() { w.waited += time.Since(began) }()
	defer timer.Stop()
	select {
	case <-next.token:
		w.holds = true
		return true, nil
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// append writes one append and makes it durable.
func (w *logWriter) append(bytes int64) error {
	block := w.buffer[:bytes]
	_, _ = w.random.Read(block)
	offset := w.segments[w.number].offset + w.at
	began := time.Now()
	if w.delay != nil {
		w.delay("append")
	}
	if _, err := w.file.WriteAt(block, offset); err != nil {
		return err
	}
	ended := time.Now()
	took := ended.Sub(began)
	w.writes.Observe(took.Nanoseconds())
	if w.job.Sync != syncWithWrite {
		if err := unix.Fdatasync(w.fd); err != nil {
			return err
		}
		synced := time.Now()
		took = synced.Sub(ended)
		ended = synced
		w.syncs.Observe(took.Nanoseconds())
	}
	w.at += bytes
	w.bytes.Add(bytes)
	w.operations.Add(1)
	w.commits.add(ended, took)
	return nil
}
