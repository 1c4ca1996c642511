//go:build linux

package engine

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/stats"
)

const (
	defaultFragmentBlock = 8 << 10
	fragmentWorkers      = 8
)

// fragment overwrites every block of the data once in random order, again and again.
func (s *session) fragment(ctx context.Context, phase v1alpha1.FragmentPhase) error {
	extents, err := s.volume.data()
	if err != nil {
		return err
	}
	filled := *s.volume.marker.Data
	if phase.Compressibility != "" { // otherwise it stays as it was filled
		share, err := parseShare(phase.Compressibility)
		if err != nil {
			return err
		}
		filled.CompressPercent = int(math.Round(share * 100))
		if err := s.volume.describeData(&filled); err != nil {
			return err
		}
	}
	blockSize := size(phase.BlockSize, defaultFragmentBlock)
	pass := fio.Job{Name: "pass", Mode: fio.RandomWrite, BlockSize: blockSize, RandomMap: true, EndSync: true,
		CompressPercent: filled.CompressPercent, Direct: s.direct(extents[0], blockSize, false)}
	jobs, blocks := overwrites(pass, extents)
	if blocks == 0 {
		return invalidf(ReasonNotPossible, "the data is smaller than a block of %d bytes: fill more, or reduce blockSize", blockSize)
	}
	var tail int64
	for _, e := range extents {
		tail += e.bytes % blockSize
	}
	if tail > 0 {
		s.note("%d bytes at the ends of the data are less than a block and stay as they were", tail)
	}
	rounds, rule := plannedRounds(phase)
	if err := s.awaitStart(ctx, 0); err != nil {
		return err
	}
	s.began = s.clock.start()
	steady, err := s.passes(ctx, jobs, blocks, rounds, rule)
	s.ended = s.clock.start()
	if err != nil || rule == nil {
		return err
	}
	s.check("steadyState", steady.Reached, "after %d rounds: %s", len(s.details.Rounds), steady)
	if !steady.Reached {
		return invalidf(ReasonNotConverged, "not converged after %d rounds: %s; allow more rounds, or a larger range, slope or drift",
			len(s.details.Rounds), steady)
	}
	return nil
}

// plannedRounds returns a fixed number of rounds, or the maximum number of rounds and the rule that can end them earlier.
func plannedRounds(phase v1alpha1.FragmentPhase) (int, *stats.SteadyRule) {
	if phase.Until == v1alpha1.FragmentUntilRounds && phase.Rounds != nil {
		return int(*phase.Rounds), nil
	}
	rounds := stats.MaxRounds
	if phase.MaxRounds > 0 {
		rounds = int(phase.MaxRounds)
	}
	return rounds, new(steadyRule(phase.SteadyState))
}

func steadyRule(given *v1alpha1.SteadyState) stats.SteadyRule {
	rule := stats.DefaultSteady()
	if given == nil {
		return rule
	}
	if given.WindowRounds > 0 {
		rule.Window = int(given.WindowRounds)
	}
	for _, limit := range []struct {
		share v1alpha1.Share
		into  *float64
	}{{given.MaxRange, &rule.MaxRange}, {given.MaxSlope, &rule.MaxSlope}, {given.MaxDrift, &rule.MaxDrift}} {
		if value, err := parseShare(limit.share); err == nil && limit.share != "" {
			*limit.into = value
		}
	}
	return rule
}

// overwrites makes the jobs of a pass: several workers, each with blocks of its own.
func overwrites(pass fio.Job, extents []extent) (jobs []fio.Job, blocks int64) {
	add := func(e extent, workers int, each int64) {
		job := pass
		job.Name, job.Paths, job.Offset = fmt.Sprintf("pass-%d", len(jobs)), []string{e.path}, e.offset
		job.Size, job.Stride, job.Workers = each*pass.BlockSize, each*pass.BlockSize, workers
		jobs = append(jobs, job)
		blocks += each * int64(workers)
	}
	for _, e := range extents {
		all := e.bytes / pass.BlockSize
		workers := int64(fragmentWorkers / min(len(extents), fragmentWorkers))
		if all < 64*workers {
			workers = 1
		}
		if each := all / workers; each > 0 && workers > 1 {
			add(e, int(workers-1), each)
			e.offset += (workers - 1) * each * pass.BlockSize
			all -= (workers - 1) * each
		}
		if all > 0 {
			add(e, 1, all) // the last one takes what cannot be divided
		}
	}
	return jobs, blocks
}

// passes runs the rounds. A pass that did not overwrite everything makes the phase Invalid. Each pass lasts until all of its data is in its
// final place, so that all rates are comparable, and the counters of the pool can be compared with the number of written bytes.
func (s *session) passes(ctx context.Context, jobs []fio.Job, blocks int64, rounds int, rule *stats.SteadyRule) (stats.Steady, error) {
	var all fio.Sum
	var rates []float64
	var steady stats.Steady
	blockSize := jobs[0].BlockSize
	for round := range rounds {
		seed := s.random.next()
		for i := range jobs {
			jobs[i].Seed = seed
		}
		s.progress.stretch(fmt.Sprintf("round %d of at most %d", round+1, rounds), float64(round)/float64(rounds),
			float64(round+1)/float64(rounds), blocks*blockSize, 0)
		sum, err := s.runToDisk(ctx, fio.NewFile(jobs...))
		if err != nil {
			return steady, err
		}
		s.metrics["coveragePartsPerMillion"] = int64(float64(sum.Write.Operations) / float64(blocks) * 1e6)
		covered := sum.Write.Operations == blocks && sum.Write.Bytes == blocks*blockSize && sum.Read.Operations == 0
		words := fmt.Sprintf("round %d: %d of %d blocks of %d bytes were overwritten", round+1, sum.Write.Operations, blocks,
			blockSize)
		s.check("coverage", covered, "%s", words)
		if !covered {
			return steady, invalidf(ReasonNotCovered, "%s: see the report of fio", words)
		}
		all.Add(sum)
		rates = append(rates, float64(sum.Write.Bytes)/sum.Duration.Seconds())
		if rule != nil {
			steady = rule.Judge(rates)
		}
		s.addRound(seed, sum.Write.Operations, sum.Write.Bytes, sum, rates[round], steady)
		if steady.Reached {
			break
		}
	}
	s.addFigures(all)
	s.metrics["rounds"] = int64(len(rates))
	s.addSteady(steady)
	s.environment["steadyState"] = strings.TrimSpace(steady.String())
	return steady, nil
}

func (s *session) addRound(seed, operations, bytes int64, sum fio.Sum, rate float64, steady stats.Steady) {
	s.details.Rounds = append(s.details.Rounds, Round{
		Seed: seed, Operations: operations, Bytes: bytes, DurationNanoseconds: sum.Duration.Nanoseconds(), ThroughputMilli: int64(rate * 1000),
		RangePartsPerMillion: int64(steady.Range * 1e6), SlopePartsPerMillion: int64(steady.Slope * 1e6),
		DriftPartsPerMillion: int64(steady.Drift * 1e6),
	})
}

func (s *session) addSteady(steady stats.Steady) {
	if steady.Known {
		s.metrics["steadyStateRangePartsPerMillion"] = int64(steady.Range * 1e6)
		s.metrics["steadyStateSlopePartsPerMillion"] = int64(steady.Slope * 1e6)
		s.metrics["steadyStateDriftPartsPerMillion"] = int64(math.Abs(steady.Drift) * 1e6)
	}
}
