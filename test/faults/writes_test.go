package faults

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestWritesPerRun counts what a run costs the API server: at most 12 writes and 4 per phase.
func TestWritesPerRun(t *testing.T) {
	const most = 4
	lines := make([]string, most)
	t.Run("phases", func(t *testing.T) {
		for phases := 1; phases <= most; phases++ {
			t.Run(strconv.Itoa(phases), func(t *testing.T) {
				t.Parallel()
				lines[phases-1] = writesPerRun(t, phases)
			})
		}
	})
	fmt.Printf("writes per run (from 2 to 4 repetitions), against the limit of 12 + 4 per phase:\n%s", strings.Join(lines, ""))
}

func writesPerRun(t *testing.T, phases int) string {
	t.Helper()
	m, err := newMachine(t.Context(), config, fmt.Sprintf("writes-%d", phases), experiments[0])
	if err != nil {
		t.Fatal(err)
	}
	defer m.cluster.Close()
	few, many := m.countWrites(t, 2, phases), m.countWrites(t, 4, phases)
	perRun, limit := float64(many-few)/2, 12+4*phases
	if perRun > float64(limit) || perRun < float64(4+phases) { // a run that never began costs nothing
		t.Errorf("%d phases: %.2f writes per run, want from %d to %d", phases, perRun, 4+phases, limit)
	}
	return fmt.Sprintf("writes: %d phases: %5.2f per run, limit %d (a benchmark of 4 runs: %d, %d its own)\n",
		phases, perRun, limit, many, many-int(4*perRun))
}

// countWrites runs an experiment from creation to verdict, without its deletion.
func (m *machine) countWrites(t *testing.T, repetitions int32, phases int) int {
	t.Helper()
	m.writes.Store(0)
	m.journal, m.died, m.deleted = nil, "", false
	m.cluster.SetBehaviour(nil)
	wanted := m.parse(t)
	wanted.Spec.Repetitions, wanted.Spec.Variants, wanted.Spec.Gates = repetitions, nil, nil
	fill := wanted.Spec.Phases[0]
	wanted.Spec.Phases = nil
	for i := range phases {
		phase := *fill.DeepCopy()
		phase.Name = v1alpha1.PhaseName(fmt.Sprintf("fill-%d", i))
		phase.Fill.To = v1alpha1.Share(fmt.Sprintf("%d%%", 10*(i+1))) // a fill that adds nothing is refused
		wanted.Spec.Phases = append(wanted.Spec.Phases, phase)
	}
	if err := m.live.Create(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	m.drive(t, moment{}, 0)
	count := int(m.writes.Load())
	m.deleted, m.deleting = true, true
	if err := m.live.Delete(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	m.drive(t, moment{}, 0)
	m.deleting = false
	return count
}
