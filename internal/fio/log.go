package fio

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Sample is the latency of one operation and when it ended, counted from the start of the job.
type Sample struct {
	Milliseconds int64
	Nanoseconds  int64
}

// Samples keeps a bounded number of samples: the largest ones, and a random choice of the others in which each has the same chance.
type Samples struct {
	// Seen is the total number of samples.
	Seen    int64
	limit   int
	others  int64
	largest []Sample // a heap with the smallest at its top
	chosen  []Sample
	random  *rand.Rand
}

// NewSamples returns Samples that keep at most limit samples, a quarter of them the largest ones.
func NewSamples(limit int, seed int64) *Samples {
	return &Samples{limit: max(limit, 4), random: rand.New(rand.NewPCG(uint64(seed), 0x5a))}
}

// EachSample reads a latency log of fio: lines of "milliseconds, nanoseconds, direction, block size, ...".
func EachSample(log io.Reader, visit func(Sample)) error {
	lines := bufio.NewScanner(log)
	lines.Buffer(make([]byte, 4096), 4096)
	number := 0
	for lines.Scan() {
		number++
		sample, err := parseSample(lines.Text())
		if err != nil {
			return fmt.Errorf("line %d of fio's latency log: %w", number, err)
		}
		visit(sample)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("fio's latency log behind line %d: %w", number, err)
	}
	return nil
}

func parseSample(line string) (Sample, error) {
	first, rest, _ := strings.Cut(line, ",")
	second, _, found := strings.Cut(rest, ",")
	at, atErr := strconv.ParseInt(strings.TrimSpace(first), 10, 64)
	took, tookErr := strconv.ParseInt(strings.TrimSpace(second), 10, 64)
	if !found || atErr != nil || tookErr != nil || at < 0 || took < 0 {
		return Sample{}, fmt.Errorf("%.60q is not \"milliseconds, nanoseconds, ...\"", line)
	}
	return Sample{at, took}, nil
}

// Add adds one sample.
func (s *Samples) Add(sample Sample) {
	s.Seen++
	if len(s.largest) < s.limit/4 {
		s.largest = append(s.largest, sample)
		s.up(len(s.largest) - 1)
		return
	}
	if sample.Nanoseconds > s.largest[0].Nanoseconds {
		sample, s.largest[0] = s.largest[0], sample
		s.down()
	}
	s.others++
	if room := s.limit - s.limit/4; len(s.chosen) < room {
		s.chosen = append(s.chosen, sample)
	} else if at := s.random.Int64N(s.others); at < int64(room) {
		s.chosen[at] = sample
	}
}

func (s *Samples) up(i int) {
	for parent := (i - 1) / 2; i > 0 && s.largest[i].Nanoseconds < s.largest[parent].Nanoseconds; parent = (i - 1) / 2 {
		s.largest[i], s.largest[parent] = s.largest[parent], s.largest[i]
		i = parent
	}
}

func (s *Samples) down() {
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(s.largest); child++ {
			if s.largest[child].Nanoseconds < s.largest[least].Nanoseconds {
				least = child
			}
		}
		if least == i {
			return
		}
		s.largest[i], s.largest[least] = s.largest[least], s.largest[i]
		i = least
	}
}

// Kept returns the samples that were kept, in the order of time.
func (s *Samples) Kept() []Sample {
	kept := slices.Concat(s.largest, s.chosen)
	slices.SortFunc(kept, func(a, b Sample) int {
		return cmp.Or(cmp.Compare(a.Milliseconds, b.Milliseconds), cmp.Compare(a.Nanoseconds, b.Nanoseconds))
	})
	return kept
}
