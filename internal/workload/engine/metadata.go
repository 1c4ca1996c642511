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
)

const (
	defaultFileWorkers    = 4
	defaultFilesPerWorker = 1000
	defaultFileSize       = 4 << 10
	filesPerFolder        = 100
	syncFile              = "File"
)

// metadata creates many small files, looks them up, lists the folders and removes them, again and again.
type metadata struct {
	given   v1alpha1.MetadataWorkload
	workers int
	files   int
	size    int64
	folder  string
	// delay is called within each operation, in tests.
	delay func(kind string)
	// took has the latencies of the last round, by kind of operation.
	took map[string]*fio.Latency
	// done are the operations of all workers in this round.
	done atomic.Int64
	// slowest of them since the series was asked for it last.
	slowest atomic.Int64
	// over ends the workers before their time.
	over atomic.Bool
}

func (m *metadata) prepare(_ context.Context, s *session) error {
	m.workers, m.files, m.delay = defaultFileWorkers, defaultFilesPerWorker, s.executor.delay
	if m.given.Workers > 0 {
		m.workers = int(m.given.Workers)
	}
	if m.given.FilesPerWorker > 0 {
		m.files = int(m.given.FilesPerWorker)
	}
	m.size = size(m.given.FileSize, defaultFileSize)
	m.folder = filepath.Join(s.volume.path, namePrefix+"metadata")
	room, err := s.volume.room()
	if err != nil {
		return err
	}
	if needed := int64(m.workers) * int64(m.files) * m.size; needed > room/2 {
		return invalidf(ReasonVolumeFull,
			"%d workers with %d files of %d bytes each need %d bytes, and half of the %d bytes that are free is less: "+
				"use fewer or smaller files, or make the volume larger", m.workers, m.files, m.size, needed, room)
	}
	return os.RemoveAll(m.folder)
}

func (m *metadata) round(ctx context.Context, s *session, _ int) (figures, error) {
	lasting := length(m.given.Duration, defaultDuration)
	seed := s.random.next()
	crew := make([]*clerk, m.workers)
	for i := range crew {
		crew[i] = m.newClerk(i, seed)
	}
	s.progress.stretch("metadata", s.progress.from, s.progress.to, 0, lasting)
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
	if err := crewed(ctx, len(crew), func(ctx context.Context, number int) error {
		return crew[number].work(ctx, began.Add(lasting))
	}); err != nil {
		return figures{}, err
	}
	took := time.Since(began)
	s.endedEarly = m.over.Load()
	flush, err := s.end(ctx, true)
	if err != nil {
		return figures{}, err
	}
	all := m.figures(crew, took, flush)
	all.seed = seed
	return all, os.RemoveAll(m.folder)
}

// figures adds up what the workers did. The rate of a kind of operation is that of the time which was spent with it.
func (m *metadata) figures(crew []*clerk, took, flush time.Duration) figures {
	m.took = map[string]*fio.Latency{}
	for _, one := range crew {
		for kind, latency := range one.took {
			if m.took[kind] == nil {
				m.took[kind] = &fio.Latency{}
			}
			m.took[kind].Add(*latency)
		}
	}
	all := figures{sum: fio.Sum{Duration: took}, metrics: map[string]int64{}}
	all.sum.Flushed(flush)
	for kind, latency := range m.took {
		all.operations += latency.Count
		all.waited += time.Duration(latency.Total())
		all.metrics[kind+"OperationsPerSecond"] = perSecond(latency.Count, time.Duration(latency.Total()/int64(len(crew))))
	}
	all.metrics["metadataOperations"] = all.operations
	all.metrics["metadataOperationsPerSecond"] = perSecond(all.operations, all.sum.Duration)
	all.throughput = float64(all.operations) / all.sum.Duration.Seconds()
	return all
}

func (m *metadata) finish(s *session, _ fio.Sum) error {
	kinds := slices.Sorted(maps.Keys(m.took))
	for _, kind := range kinds {
		s.addLatency(kind, *m.took[kind])
	}
	if len(kinds) < 4 {
		return invalidf(ReasonNoNumbers, "in %s the workers came only to these operations: %v: measure longer, or use fewer filesPerWorker",
			length(m.given.Duration, defaultDuration), kinds)
	}
	return nil
}

// clerk is one worker.
type clerk struct {
	*metadata
	folder string
	took   map[string]*fio.Latency
	// content of the next file: random, and unlike that of any other file of the round.
	content []byte
	created uint64
}

func (m *metadata) newClerk(number int, seed int64) *clerk {
	c := &clerk{metadata: m, folder: filepath.Join(m.folder, fmt.Sprint(number)), took: map[string]*fio.Latency{},
		content: make([]byte, m.size), created: uint64(number) << 48}
	random := rand.New(rand.NewPCG(uint64(seed), uint64(number)))
	for at := 0; at+8 <= len(c.content); at += 8 {
		binary.LittleEndian.PutUint64(c.content[at:], random.Uint64())
	}
	return c
}

// refresh turns the content into that of the next file. All of each 4 KiB is random, so that it does not compress, and a part of it is
// new, so that no block is stored once for several files with deduplication.
func (c *clerk) refresh() {
	c.created++
	for at := 0; at+8 <= len(c.content); at += 4 << 10 {
		binary.LittleEndian.PutUint64(c.content[at:], c.created)
	}
}

// work repeats the life of the files until the time is over.
func (c *clerk) work(ctx context.Context, until time.Time) error {
	paths := make([]string, c.files)
	var folders []string
	for i := range paths {
		folder := filepath.Join(c.folder, fmt.Sprint(i/filesPerFolder))
		if i%filesPerFolder == 0 {
			folders = append(folders, folder)
			if err := os.MkdirAll(folder, 0o700); err != nil {
				return err
			}
		}
		paths[i] = filepath.Join(folder, fmt.Sprintf("file.%06d", i))
	}
	steps := []struct {
		kind  string
		paths []string
		do    func(path string) error
	}{
		{"create", paths, c.create},
		{"stat", paths, func(path string) error { _, err := os.Lstat(path); return err }},
		{"list", folders, func(path string) error { _, err := os.ReadDir(path); return err }},
		{"unlink", paths, os.Remove},
	}
	for {
		for _, step := range steps {
			if over, err := c.each(ctx, step.kind, step.paths, c.slowed(step.kind, step.do), until); over || err != nil {
				return err
			}
		}
	}
}

// slowed is an operation on a storage that takes longer, in tests.
func (c *clerk) slowed(kind string, do func(path string) error) func(path string) error {
	if c.delay == nil {
		return do
	}
	return func(path string) error {
		c.delay(kind)
		return do(path)
	}
}

// each does one kind of operation to all paths, until the time is over.
func (c *clerk) each(ctx context.Context, kind string, paths []string, do func(path string) error, until time.Time) (over bool, err error) {
	latency := c.took[kind]
	if latency == nil {
		latency = &fio.Latency{}
		c.took[kind] = latency
	}
	for _, path := range paths {
		began := time.Now()
		if err := do(path); err != nil {
			return false, err
		}
		ended := time.Now()
		latency.Observe(ended.Sub(began).Nanoseconds())
		raise(&c.slowest, ended.Sub(began).Nanoseconds())
		c.done.Add(1)
		if ctx.Err() != nil || c.over.Load() || !ended.Before(until) {
			return true, ctx.Err()
		}
	}
	return false, nil
}

// create makes a file that was not there.
func (c *clerk) create(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	c.refresh()
	_, err = file.Write(c.content)
	if err == nil && c.given.Sync == syncFile {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
