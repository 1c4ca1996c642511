package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/workload"
)

// Assumptions of the estimate, because the storage is unknown. Only the requested durations are certain.
const (
	assumedBytesPerSecond = 100 << 20
	assumedRounds         = 8
	phaseOverhead         = 10 * time.Second
	poolsOverhead         = 30 * time.Second // of a run, to create its pools, and to destroy them
)

// spent is a duration in its two parts.
type spent struct {
	asked, moving time.Duration
}

func (s *spent) add(other spent) {
	s.asked += other.asked
	s.moving += other.moving
}

// estimate is a sentence on the duration of the runs.
func estimate(slots []experiment.Slot) string {
	all := estimateRuns(slots)
	text := ""
	for i := range slots {
		if volumeBytes(&slots[i]) == 0 {
			text = ", plus the phases that depend on the size of the pool"
		}
	}
	if all.moving > 0 {
		text = " on storage that moves 100 MiB/s" + text
	}
	if slices.ContainsFunc(slots, endsEarlier) {
		text += ", less if operations end before the longest time of their phases"
	}
	return "about " + roughly(all.asked+all.moving) + text
}

// overdue says that the runs take longer than the experiment has. Empty if they do not. Repetitions that adaptive adds are left out: it
// adds none that does not fit.
func overdue(spec *v1alpha1.StorageBenchmarkSpec, slots []experiment.Slot) string {
	if spec.Deadline == nil {
		return ""
	}
	var first []experiment.Slot
	for _, slot := range slots {
		if slot.Repetition <= spec.Repetitions {
			first = append(first, slot)
		}
	}
	all := estimateRuns(first)
	if all.asked+all.moving <= spec.Deadline.Duration.Duration {
		return ""
	}
	return fmt.Sprintf("its runs take about %s, and spec.deadline is %s: if they have not ended by then, the verdict is Inconclusive "+
		"(DeadlineExceeded)", roughly(all.asked+all.moving), brief(spec.Deadline.Duration.Duration))
}

// endsEarlier says whether a run has a phase that lasts as long as its operation, and counts with its longest time.
func endsEarlier(slot experiment.Slot) bool {
	return slices.ContainsFunc(slot.Phases, func(phase v1alpha1.Phase) bool { return workload.EndsWithOperation(&phase) })
}

// volumeBytes is the size of the volume of a run. 0 if it is the size of a pool, which depends on its disks.
func volumeBytes(slot *experiment.Slot) int64 {
	if class := slot.Target.StorageClass; class != nil {
		return class.Size.Value()
	}
	if dataset := slot.Target.ZFS.Dataset; dataset != nil && dataset.Size != nil {
		return dataset.Size.Value()
	}
	return 0
}

func estimateRuns(slots []experiment.Slot) (all spent) {
	for i := range slots {
		all.add(estimateRun(&slots[i]))
	}
	return all
}

func estimateRun(slot *experiment.Slot) spent {
	var all spent
	size := volumeBytes(slot)
	filled := size
	if slot.Target.ZFS != nil {
		all.asked += poolsOverhead
	}
	for _, phase := range slot.Phases {
		all.asked += phaseOverhead
		if slot.NodeCount() > 1 { // all nodes work at the same time, but wait for each other
			all.asked += runs.StartAllowance
		}
		switch {
		case phase.Fill != nil:
			filled = fillBytes(phase.Fill, size)
			all.moving += moving(filled)
		case phase.Fragment != nil:
			all.moving += moving(filled) * time.Duration(fragmentRounds(phase.Fragment))
		case phase.Free != nil:
			filled -= shareOf(phase.Free.Share, filled)
		case phase.Measure != nil:
			once := estimateMeasure(&phase, filled)
			rounds := time.Duration(1)
			if rule := phase.Measure.SteadyState; rule != nil {
				rounds = time.Duration(max(1, rule.WindowRounds))
			}
			all.add(spent{once.asked * rounds, once.moving * rounds})
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
	if err != nil {
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

// estimateMeasure is the time that a workload asks for, or needs for the data. Several together are as long as the longest of them.
func estimateMeasure(phase *v1alpha1.Phase, filled int64) spent {
	traits, _ := workload.PhaseTraits(phase)
	all := spent{asked: traits.Duration + traits.RampUp + traits.Guess}
	if traits.Moves != nil {
		all.moving = moving(traits.Moves(filled))
	}
	return all
}

func moving(bytes int64) time.Duration {
	return time.Duration(float64(bytes) / assumedBytesPerSecond * float64(time.Second))
}

// roughly writes two units at most, rounded as coarsely as the guess is.
func roughly(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return brief(d.Round(10 * time.Second))
	case d < time.Hour:
		return brief(d.Round(time.Minute))
	case d < 48*time.Hour:
		return brief(d.Round(10 * time.Minute))
	}
	return fmt.Sprintf("%d days", int(d.Round(24*time.Hour)/(24*time.Hour)))
}

// brief is 45s, 3m10s, 2h05m: the two largest units that matter.
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
