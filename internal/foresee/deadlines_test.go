package foresee

import (
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// TestDeadlinesOfWorkloads: a phase that its own deadline ends in each attempt is refused before anything runs.
func TestDeadlinesOfWorkloads(t *testing.T) {
	type spec = v1alpha1.StorageBenchmarkSpec
	measuring := func(lasting, ramp, deadline time.Duration) func(*spec) {
		return func(s *spec) {
			s.Phases[1].Measure.Workload = v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{Duration: runstest.Lasting(lasting),
				RampUp: runstest.Lasting(ramp)}}
			if deadline > 0 {
				s.Phases[1].Deadline = runstest.Lasting(deadline)
			}
		}
	}
	jobs := func(text string) func(*spec) {
		return func(s *spec) {
			s.Phases[1].Measure.Workload = v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{JobFile: text}}
			s.Phases[1].Deadline = runstest.Lasting(time.Minute)
		}
	}
	foresee(t, map[string]foreseen{
		"in time": {measuring(5*time.Minute, 0, 6*time.Minute), ""},
		"too late": {measuring(5*time.Minute, 0, time.Minute),
			"spec.phases[1].deadline: its workload alone takes 5m0s, and its deadline is 1m0s: write a longer deadline"},
		"no time for anything else": {measuring(5*time.Minute, 0, 5*time.Minute), "spec.phases[1].deadline: "},
		"with its ramp":             {measuring(time.Minute, time.Minute, 90*time.Second), "spec.phases[1].deadline: takes 2m0s"},
		"the default":               {measuring(7*time.Hour, 0, 0), "spec.phases[1].deadline: takes 7h0m0s, and its deadline is 6h0m0s"},
		"its rounds": {func(s *spec) {
			measuring(time.Minute, 0, 4*time.Minute)(s)
			s.Phases[1].Measure.SteadyState = &v1alpha1.SteadyState{WindowRounds: 5}
		}, "spec.phases[1].deadline: takes 5m0s"},
		"by the matrix": {func(s *spec) {
			measuring(time.Minute, 0, 2*time.Minute)(s)
			s.Matrix = v1alpha1.Matrix{"phases.scan.duration": {"30s", "5m"}}
		}, "spec.phases[1].deadline: takes 5m0s"},
		"until its operation ends": {func(s *spec) {
			measuring(5*time.Minute, 0, 3*time.Minute)(s)
			s.Phases[1].Measure.Operate = &v1alpha1.PoolAction{Scrub: &v1alpha1.ScrubAction{}}
			s.Phases[1].Measure.OperateAfter, s.Phases[1].Measure.Until = runstest.Lasting(time.Minute), v1alpha1.UntilOperationEnds
		}, ""},
		"jobs that are too late": {jobs("[a]\nrw=write\nsize=1m\nruntime=30\ntime_based\n[b]\nrw=write\nsize=1m\nruntime=40\ntime_based\nstonewall"),
			"spec.phases[1].deadline: takes 1m10s"},
		"jobs that may end early": {jobs("[a]\nrw=write\nsize=1m\nruntime=30\n[b]\nrw=write\nsize=1m\nruntime=40\ntime_based\n"), ""},
		"a scan":                  {func(s *spec) { s.Phases[1].Deadline = runstest.Lasting(time.Minute) }, ""},
	})
}
