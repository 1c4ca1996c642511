package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/stats"
	"github.com/storagebench/storagebench/internal/workload"
)

// Assumptions of the estimate, because the storage is unknown. Only the requested durations are certain.
const (
	assumedSpeed        speed = 100 << 20
	leastSpeed                = 1 << 10
	assumedRounds             = 8
	phaseOverhead             = 10 * time.Second
	observationOverhead       = 5 * time.Second  // of a phase on a pool, because the pool is observed
	poolsOverhead             = 30 * time.Second // of a run, to create and destroy its pools
)

// speed is the speed of storage in bytes per second, as a flag.
type speed int64

func addSpeed(flags *pflag.FlagSet, of *speed) {
	*of = assumedSpeed
	flags.Var(of, "speed", "`SIZE` that the storage moves in a second, such as 30Mi, for the estimate of the time. For experiments with "+
		"fragment phases, give the throughput with small (8 KiB) requests")
}

// Set implements pflag.Value.
func (s *speed) Set(value string) error {
	size, err := resource.ParseQuantity(value)
	switch {
	case err != nil || size.Value() <= 0:
		return errors.New("write a size that is moved in a second, such as 30Mi")
	case size.Value() < leastSpeed: // 30 bytes a second is no storage
		return errors.New("that is in bytes a second: write a unit, such as 30Mi")
	}
	*s = speed(size.Value())
	return nil
}

func (s *speed) String() string { return resource.NewQuantity(int64(*s), resource.BinarySI).String() }

// Type implements pflag.Value.
func (s *speed) Type() string { return "size" }

// spent is the cost of a run: the time that it requests, and the bytes that it reads and writes.
type spent struct {
	requested time.Duration
	bytes     int64
}

func (s *spent) add(other spent) {
	s.requested = stats.Plus(s.requested, other.requested)
	s.bytes = stats.Plus(s.bytes, other.bytes)
}

func (s *spent) on(storage speed) time.Duration {
	moving := float64(s.bytes) / float64(storage) * float64(time.Second)
	if moving >= math.MaxInt64 {
		return math.MaxInt64
	}
	return stats.Plus(s.requested, time.Duration(moving))
}

// estimate describes the duration of the runs.
func estimate(slots []design.Slot, storage speed) string {
	all := estimateRuns(slots)
	text := ""
	if slices.ContainsFunc(slots, fillsPool) {
		text = ", plus the phases that depend on the size of the pool"
	}
	if all.bytes > 0 {
		text = " on storage that moves " + report.Bytes(int64(storage)) + "/s" + text
	}
	if slices.ContainsFunc(slots, endsEarlier) {
		text += ", less if operations end before the longest time of their phases"
	}
	return "about " + roughly(all.on(storage)) + text
}

// overdue warns if the runs take longer than spec.deadline or a cluster's default maxHold allows. It returns an empty string if they do
// not. Repetitions that spec.adaptive adds do not count, because it adds only as many as fit.
func overdue(spec *v1alpha1.StorageBenchmarkSpec, slots []design.Slot, storage speed) string {
	limit, what := experiment.DefaultLimits().MaxHold, "a cluster ends an experiment, unless its admin has set another maxHold, after"
	if spec.Deadline != nil && spec.Deadline.Duration.Duration <= limit {
		limit, what = spec.Deadline.Duration.Duration, "spec.deadline is"
	}
	var first []design.Slot
	for _, slot := range slots {
		if slot.Repetition <= spec.Repetitions {
			first = append(first, slot)
		}
	}
	all := estimateRuns(first)
	takes := all.on(storage)
	if takes <= limit {
		return ""
	}
	return fmt.Sprintf("its runs take about %s, and %s %s: if they have not ended by then, the verdict is Inconclusive "+
		"(DeadlineExceeded)", roughly(takes), what, brief(limit))
}

// endsEarlier reports whether a run has a phase that lasts as long as its operation. The estimate uses the longest time of such a phase.
func endsEarlier(slot design.Slot) bool {
	return slices.ContainsFunc(slot.Phases, func(phase v1alpha1.Phase) bool { return workload.EndsWithOperation(&phase) })
}

// fillsPool reports whether a run fills a share of its pool. The size of a pool is unknown.
func fillsPool(slot design.Slot) bool {
	return volumeBytes(&slot) == 0 && slices.ContainsFunc(slot.Phases, func(phase v1alpha1.Phase) bool {
		return phase.Fill != nil && phase.Fill.Size == nil
	})
}

// volumeBytes returns the size of the volume of a run, or 0 if the volume is as large as its pool, whose size depends on the disks.
func volumeBytes(slot *design.Slot) int64 {
	if class := slot.Target.StorageClass; class != nil {
		return class.Size.Value()
	}
	if dataset := slot.Target.ZFS.Dataset; dataset != nil && dataset.Size != nil {
		return dataset.Size.Value()
	}
	return 0
}

func estimateRuns(slots []design.Slot) (all spent) {
	for i := range slots {
		all.add(estimateRun(&slots[i]))
	}
	return all
}

func estimateRun(slot *design.Slot) spent {
	var all spent
	size := volumeBytes(slot)
	filled := size
	if slot.Target.ZFS != nil {
		all.requested += poolsOverhead + observationOverhead*time.Duration(len(slot.Phases))
	}
	for _, phase := range slot.Phases {
		all.requested += phaseOverhead
		if slot.NodeCount() > 1 { // all nodes work at the same time, but wait for each other
			all.requested += runs.StartAllowance
		}
		switch {
		case phase.Fill != nil:
			filled = fillBytes(phase.Fill, size)
			all.bytes = stats.Plus(all.bytes, filled)
		case phase.Fragment != nil:
			all.bytes = stats.Plus(all.bytes, stats.Times(int64(fragmentRounds(phase.Fragment)), filled))
		case phase.Free != nil:
			filled -= shareOf(phase.Free.Share, filled)
		case phase.Measure != nil:
			all.add(estimateMeasure(&phase, filled))
		}
	}
	return all
}

func fillBytes(fill *v1alpha1.FillPhase, size int64) int64 {
	if fill.Size != nil {
		return fill.Size.Value()
	}
	return shareOf(fill.To, size)
}

func shareOf(given v1alpha1.Share, bytes int64) int64 {
	percent, err := given.Percent()
	if err != nil || percent >= 100 {
		return bytes
	}
	return int64(float64(bytes) * percent / 100)
}

func fragmentRounds(fragment *v1alpha1.FragmentPhase) int32 {
	if fragment.Rounds != nil {
		return *fragment.Rounds
	}
	return min(assumedRounds, max(1, fragment.MaxRounds))
}

// estimateMeasure returns the time that the workload of a phase requests, and the bytes that it moves. Several workloads take as long as
// the longest one. With steadyState, a phase has at least as many rounds as its window.
func estimateMeasure(phase *v1alpha1.Phase, filled int64) spent {
	traits, _ := workload.PhaseTraits(phase)
	rounds := 1
	if rule := phase.Measure.SteadyState; rule != nil {
		rounds = max(1, int(rule.WindowRounds))
	}
	all := spent{requested: traits.Setup + time.Duration(rounds)*(traits.RampUp+traits.Duration+traits.Guess)}
	if traits.Moves != nil {
		all.bytes = stats.Times(int64(rounds), traits.Moves(filled))
	}
	return all
}

// longestEstimate is the longest estimate that is written as a number.
const longestEstimate = 100 * 365 * 24 * time.Hour

// roughly rounds a duration to at most two units, because the estimate is no more precise than that.
func roughly(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return brief(d.Round(10 * time.Second))
	case d < time.Hour:
		return brief(d.Round(time.Minute))
	case d < 48*time.Hour:
		return brief(d.Round(10 * time.Minute))
	}
	if d > longestEstimate {
		return "100 years or more"
	}
	return fmt.Sprintf("%d days", int(d.Round(24*time.Hour)/(24*time.Hour)))
}

// brief formats a duration with at most two units, for example 45s, 3m10s or 2h05m.
func brief(d time.Duration) string {
	d = max(d, 0).Round(time.Second)
	hours, minutes, seconds := int(d/time.Hour), int(d/time.Minute)%60, int(d/time.Second)%60
	switch {
	case hours > 0 && minutes > 0:
		return fmt.Sprintf("%dh%02dm", hours, minutes)
	case hours > 0:
		return fmt.Sprintf("%dh", hours)
	case minutes > 0 && seconds > 0:
		return fmt.Sprintf("%dm%02ds", minutes, seconds)
	case minutes > 0:
		return fmt.Sprintf("%dm", minutes)
	}
	return fmt.Sprintf("%ds", seconds)
}
