package faults

import (
	"fmt"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestWritesPerRun counts what a run costs the API server: at most 12 writes and 4 per phase.
func TestWritesPerRun(t *testing.T) {
	m, err := newMachine(t.Context(), config, "writes")
	if err != nil {
		t.Fatal(err)
	}
	defer m.cluster.Close()
	fmt.Println("writes per run (from 2 to 6 repetitions), against the limit of 12 + 4 per phase:")
	for phases := 1; phases <= 4; phases++ {
		few, many := m.countWrites(t, 2, phases), m.countWrites(t, 6, phases)
		perRun, limit := float64(many-few)/4, 12+4*phases
		fmt.Printf("writes: %d phases: %5.2f per run, limit %d (a benchmark of 6 runs: %d, of which %d are its own)\n",
			phases, perRun, limit, many, many-int(6*perRun))
		if perRun > float64(limit) {
			t.Errorf("%d phases: %.2f writes per run, the limit is %d", phases, perRun, limit)
		}
	}
}

// countWrites runs an experiment from creation to verdict, without its deletion.
func (m *machine) countWrites(t *testing.T, repetitions int32, phases int) int {
	t.Helper()
	m.writes.Store(0)
	m.journal, m.died, m.deleted = nil, "", false
	m.cluster.SetBehaviour(nil)
	wanted := parse(t, m.namespace)
	wanted.Spec.Repetitions, wanted.Spec.Variants, wanted.Spec.Gates = repetitions, nil, nil
	fill := wanted.Spec.Phases[0]
	wanted.Spec.Phases = nil
	for i := range phases {
		phase := *fill.DeepCopy()
		phase.Name = v1alpha1.PhaseName(fmt.Sprintf("fill-%d", i))
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
