//go:build linux

package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/workload"
)

const (
	defaultFileWorkers    = 4
	defaultFilesPerWorker = 1000
	defaultFileSize       = 4 << 10
	filesPerFolder        = 100
	syncFile              = "File"
	// The rate of new files is judged after 1/lateShare of the time until the measurement has to begin.
	lateShare = 20
)

// metadata keeps many small files. Its workers replace them one after another, look each up and list the folders, so that each part of the
// measured time has the same mix of operations.
type metadata struct {
	given   v1alpha1.MetadataWorkload
	workers int
	files   int
	size    int64
	lasting time.Duration
	folder  string
	// delay is called within each operation, in tests.
	delay func(kind string)
	// crew are the workers. They create their files in the first round, and keep them.
	crew []*clerk
	// rounds have the latencies of each round, by kind of operation.
	rounds []latencies
	// done counts the operations of all workers in this round; before the first one, it counts the files that they have created.
	done atomic.Int64
	// slowest is the latency of the slowest operation since the last point of the series.
	slowest atomic.Int64
	// over ends the workers early.
	over atomic.Bool
}

// latencies by kind of operation.
type latencies map[string]*fio.Latency

// of returns the latencies of a kind, which are empty at first.
func (l latencies) of(kind string) *fio.Latency {
	if l[kind] == nil {
		l[kind] = &fio.Latency{}
	}
	return l[kind]
}

func (l latencies) add(other latencies) {
	for kind, latency := range other {
		l.of(kind).Add(*latency)
	}
}

// total is how many operations there were, and how long all of them took.
func (l latencies) total() (operations int64, took time.Duration) {
	for _, latency := range l {
		operations += latency.Count
		took += time.Duration(latency.Total())
	}
	return operations, took
}

func (m *metadata) prepare(_ context.Context, s *session) error {
	m.workers, m.files, m.delay = defaultFileWorkers, defaultFilesPerWorker, s.executor.delay
	if m.given.Workers > 0 {
		m.workers = int(m.given.Workers)
	}
	if m.given.FilesPerWorker > 0 {
		m.files = int(m.given.FilesPerWorker)
	}
	m.size, m.lasting = size(m.given.FileSize, defaultFileSize), length(m.given.Duration, defaultDuration)
	m.folder = filepath.Join(s.volume.path, namePrefix+"metadata")
	room, err := s.volume.room()
	if err != nil {
		return err
	}
	if needed := int64(m.workers) * int64(m.files) * m.size; needed > room/2 {
		return invalidf(ReasonVolumeFull,
			"%d workers with %d files of %d bytes each need %d bytes, but at most half of the %d free bytes may be used: "+
				"use fewer or smaller files, or make the volume larger", m.workers, m.files, m.size, needed, room)
	}
	return os.RemoveAll(m.folder)
}

func (m *metadata) round(ctx context.Context, s *session, _ int) (figures, error) {
	seed, from, to := s.random.next(), s.progress.from, s.progress.to
	if err := m.populate(ctx, s, seed); err != nil {
		return figures{}, err
	}
	s.progress.stretch("metadata", from, to, 0, m.lasting)
	if err := s.begin(ctx); err != nil {
		return figures{}, err
	}
	s.bracket.workers, s.bracket.loop = m.workers, loop{workers: m.workers}
	began := time.Now()
	m.done.Store(0)
	m.slowest.Store(0)
	defer s.recordEach(func() fio.Usage {
		m.over.Store(s.operationOver())
		s.recorder.took(m.slowest.Swap(0))
		return fio.Usage{Operations: m.done.Load()}
	})()
	if err := crewed(ctx, len(m.crew), func(ctx context.Context, number int) error {
		return m.crew[number].work(ctx, began.Add(m.lasting))
	}); err != nil {
		return figures{}, err
	}
	took := time.Since(began)
	s.endedEarly = m.over.Load()
	flush, err := s.end(ctx, true)
	if err != nil {
		return figures{}, err
	}
	all := m.figures(took, flush)
	all.seed = seed
	return all, nil
}

// populate creates the files, unless they exist from an earlier round. It syncs none of them, because begin syncs the volume.
func (m *metadata) populate(ctx context.Context, s *session, seed int64) error {
	if m.crew != nil {
		for _, one := range m.crew {
			one.randomise(seed)
		}
		return nil
	}
	for number := range m.workers {
		m.crew = append(m.crew, m.newClerk(number, seed))
	}
	s.progress.stretch("creating the files", s.progress.from, s.progress.from, int64(m.workers)*int64(m.files)*m.size, 0)
	defer s.recordEach(func() fio.Usage { return fio.Usage{WrittenBytes: m.done.Load() * m.size} })() // for progress, not for the series
	inTime := m.inTime(ctx, leastTime(s.request.Phase, m.lasting))
	return crewed(ctx, len(m.crew), func(ctx context.Context, number int) error { return m.crew[number].populate(ctx, inTime) })
}

// inTime returns a check that fails if the files cannot be created before the measurement has to begin to meet the deadline of the phase.
func (m *metadata) inTime(ctx context.Context, measuring time.Duration) func() error {
	due, limited := ctx.Deadline()
	began, all := time.Now(), int64(m.workers)*int64(m.files)
	return func() error {
		made, spent, left := m.done.Load(), time.Since(began), time.Until(due)-measuring
		if !limited || !late(made, all, spent, left) {
			return nil
		}
		return invalidf(ReasonNotPossible, "%d of %d files were created in %s, and the deadline of the phase leaves %s for the others: use "+
			"fewer workers or filesPerWorker, or write a longer deadline", made, all, spent.Round(time.Millisecond),
			max(left, 0).Round(time.Second))
	}
}

// late reports whether the time that is left is too short to create the other files, even twice as fast.
func late(made, all int64, spent, left time.Duration) bool {
	rest := float64(spent) / float64(made) * float64(all-made) / 2
	return spent > (spent+left)/lateShare && rest > float64(left)
}

// leastTime returns the minimum time that a phase measures.
func leastTime(phase v1alpha1.Phase, round time.Duration) time.Duration {
	switch {
	case workload.EndsWithOperation(&phase):
		return 0
	case phase.Measure.SteadyState == nil:
		return round
	}
	return round * time.Duration(steadyRule(phase.Measure.SteadyState).Window)
}

// figures adds up what the workers did in a round.
func (m *metadata) figures(took, flush time.Duration) figures {
	round := latencies{}
	for _, one := range m.crew {
		round.add(one.took)
		one.took = latencies{}
	}
	m.rounds = append(m.rounds, round)
	all := figures{sum: fio.Sum{Duration: took}}
	all.sum.Flushed(flush)
	all.operations, all.waited = round.total()
	all.throughput = float64(all.operations) / all.sum.Duration.Seconds()
	return all
}

// finish adds up the rounds that count, and removes the files. The rate of each kind of operation is based on the time that was spent on
// that kind.
func (m *metadata) finish(s *session, sum fio.Sum) error {
	took := latencies{}
	for _, round := range m.rounds[len(m.rounds)-len(s.measured):] {
		took.add(round)
	}
	for kind, latency := range took {
		s.metrics[kind+"OperationsPerSecond"] = perSecond(latency.Count, time.Duration(latency.Total()/int64(m.workers)))
	}
	operations, _ := took.total()
	s.metrics["metadataOperations"], s.metrics["metadataOperationsPerSecond"] = operations, perSecond(operations, sum.Duration)
	names := slices.Sorted(maps.Keys(took))
	for _, kind := range names {
		s.addLatency(kind, *took[kind])
	}
	if err := os.RemoveAll(m.folder); err != nil {
		return err
	}
	if len(names) < len(turn) {
		return invalidf(ReasonNoNumbers, "in %s the workers reached only these operations: %v: measure longer, or use fewer filesPerWorker: a "+
			"folder has up to %d files, and is listed after them", m.lasting, names, filesPerFolder)
	}
	return nil
}

// clerk is one worker.
type clerk struct {
	*metadata
	folder string
	took   latencies
	// content of the next file: random, and unlike that of any other file.
	content []byte
	number  int
	created uint64
	// slot is the current file, and step the next operation on it. The next round continues from there.
	slot, step int
}

func (m *metadata) newClerk(number int, seed int64) *clerk {
	c := &clerk{metadata: m, folder: filepath.Join(m.folder, fmt.Sprint(number)), took: latencies{}, content: make([]byte, m.size),
		number: number, created: uint64(number) << 48}
	c.randomise(seed)
	return c
}

// randomise makes the content of the round.
func (c *clerk) randomise(seed int64) {
	random := rand.New(rand.NewPCG(uint64(seed), uint64(c.number)))
	for at := 0; at+8 <= len(c.content); at += 8 {
		binary.LittleEndian.PutUint64(c.content[at:], random.Uint64())
	}
}

// refresh turns the content into that of the next file. Each block of 4 KiB is random, so that it does not compress, and begins with a new
// number, so that deduplication finds no equal blocks in several files.
func (c *clerk) refresh() {
	c.created++
	for at := 0; at+8 <= len(c.content); at += 4 << 10 {
		binary.LittleEndian.PutUint64(c.content[at:], c.created)
	}
}

// path of the file in a slot.
func (c *clerk) path(slot int) string {
	return fmt.Sprintf("%s/%d/file.%06d", c.folder, slot/filesPerFolder, slot)
}

// populate creates all files of the worker.
func (c *clerk) populate(ctx context.Context, inTime func() error) error {
	for slot := range c.files {
		path, first := c.path(slot), slot%filesPerFolder == 0
		if first {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
		}
		if err := c.create(path, false); err != nil {
			return err
		}
		c.done.Add(1)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !first {
			continue
		}
		if err := inTime(); err != nil {
			return err
		}
	}
	return nil
}

// turn has the operations on each file: it is removed, created again and looked up. A folder is listed after its last file.
var turn = []struct {
	kind string
	do   func(c *clerk, path string) error
}{
	{"unlink", func(_ *clerk, path string) error { return os.Remove(path) }},
	{"create", func(c *clerk, path string) error { return c.create(path, c.given.Sync == syncFile) }},
	{"stat", func(_ *clerk, path string) error { _, err := os.Lstat(path); return err }},
	{"list", func(_ *clerk, path string) error { _, err := os.ReadDir(filepath.Dir(path)); return err }},
}

// work cycles through the files until the time is over.
func (c *clerk) work(ctx context.Context, until time.Time) error {
	for {
		path, steps := c.path(c.slot), len(turn)
		if next := c.slot + 1; next < c.files && next%filesPerFolder != 0 {
			steps--
		}
		for c.step < steps {
			step := turn[c.step]
			ended, err := c.timed(step.kind, path, step.do)
			if err != nil {
				return err
			}
			c.step++
			if ctx.Err() != nil || c.over.Load() || !ended.Before(until) {
				return ctx.Err()
			}
		}
		c.slot, c.step = (c.slot+1)%c.files, 0
	}
}

// timed does one operation and returns when it ended.
func (c *clerk) timed(kind, path string, do func(c *clerk, path string) error) (ended time.Time, err error) {
	began := time.Now()
	if c.delay != nil {
		c.delay(kind)
	}
	if err := do(c, path); err != nil {
		return ended, err
	}
	ended = time.Now()
	c.took.of(kind).Observe(ended.Sub(began).Nanoseconds())
	raise(&c.slowest, ended.Sub(began).Nanoseconds())
	c.done.Add(1)
	return ended, nil
}

// create creates a file, which must not exist.
func (c *clerk) create(path string, durable bool) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	c.refresh()
	_, err = file.Write(c.content)
	if err == nil && durable {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
