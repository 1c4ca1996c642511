package runs_test

import (
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// TestRunBindsFirst covers the waits of a run between the creation of its claims and its first pod, and between the deletion of its claims
// and of its pools.
func TestRunBindsFirst(t *testing.T) {
	made := func(change func(*runs.Pools)) runChange {
		return func(s *runs.State) {
			s.Pools = runs.Pools{Needed: true, Exist: true, Some: true, Ready: true}
			if change != nil {
				change(&s.Pools)
			}
		}
	}
	claims := func(state runs.Claims) runChange {
		return func(s *runs.State) { state.BindFirst = true; s.Claims = state }
	}
	bound, late := runs.Claims{Exists: true, Bound: true}, func(s *runs.State) {
		s.Run.Status.StartedAt = runstest.Stamp(-10 * time.Minute)
	}
	deleted := func(s *runs.State) { s.Run.DeletionTimestamp = runstest.Stamp(0) }
	unread := func(asked bool) func(*runs.Pools) {
		return func(p *runs.Pools) {
			p.Unread = []string{"sb-1-data/parent/pvc-1"}
			if !asked {
				p.Unasked = map[string]v1alpha1.DatasetPath{"data": "parent/pvc-1"}
			}
		}
	}
	differing := func(p *runs.Pools) { p.Differing = []string{"sync of sb-1-data/parent/pvc-1 is standard"} }
	for _, test := range []runCase{
		{"claims come before the Job", []runChange{made(nil), jobless(false), claims(runs.Claims{})}, []string{"CreateVolumes"},
			"PreparingVolume", "", "creating", 10 * time.Minute},
		{"one of two is there", []runChange{made(nil), jobless(false), claims(runs.Claims{Some: true})}, []string{"CreateVolumes"},
			"PreparingVolume", "", "", 10 * time.Minute},
		{"they are waited for", []runChange{made(nil), jobless(false), claims(runs.Claims{Exists: true})}, nil, "PreparingVolume", "",
			"is not bound", 10 * time.Minute},
		{"with what is in the way",
			[]runChange{made(nil), jobless(false), claims(runs.Claims{Exists: true, Problem: "ProvisioningFailed"})}, nil, "VolumeNotBound",
			"", "ProvisioningFailed", 10 * time.Minute},
		{"but not for ever", []runChange{made(nil), jobless(false), claims(runs.Claims{Exists: true, Problem: "ProvisioningFailed"}),
			late}, nil, "VolumeNotBound", "final", "ProvisioningFailed", 0},
		{"not even to be made", []runChange{made(nil), jobless(false), claims(runs.Claims{}), late}, nil, "VolumeNotBound", "final", "",
			0},
		{"the agent is asked", []runChange{made(unread(false)), jobless(false), claims(bound)}, []string{"ReportDatasets"}, "PreparingVolume", "",
			"has not read", 10 * time.Minute},
		{"and waited for", []runChange{made(unread(true)), jobless(false), claims(bound)}, nil, "PreparingVolume", "", "has not read",
			10 * time.Minute},
		{"not for ever either", []runChange{made(unread(true)), jobless(false), claims(bound), late}, nil, "PoolNotReady", "final",
			"has not read", 0},
		{"it is not as asked", []runChange{made(differing), jobless(false), claims(bound)}, nil, "PropertiesDiffer", "final",
			"nothing was written: the volume is not as requested: sync", 0},
		{"it is as asked", []runChange{made(nil), jobless(false), claims(bound)}, []string{"StartPhase 0"}, "PhaseRunning", "", "", 0},
		{"the name is taken", []runChange{made(nil), jobless(false), claims(runs.Claims{Foreign: true})}, nil, "NameTaken", "", "",
			runs.ForeignRecheck},
		{"claims go", []runChange{made(nil), jobless(false), claims(bound), deleted}, []string{"DeleteVolumes"}, "TearingDown", "", "", 0},
		{"then what the driver has",
			[]runChange{made(nil), jobless(false), claims(runs.Claims{Some: true, Deleting: true, Unwatched: "ZFSVolume openebs/pvc-1"}),
				deleted}, nil, "TearingDown", "", "waiting for the driver to destroy ZFSVolume openebs/pvc-1", runs.UnwatchedRecheck},
		{"then the class", []runChange{made(nil), jobless(false), claims(runs.Claims{Some: true}), deleted}, []string{"DeleteVolumes"},
			"TearingDown", "", "", 0},
		{"then the pools", []runChange{made(nil), jobless(false), claims(runs.Claims{}), deleted}, []string{"DeletePools"}, "TearingDown",
			"", "", 0},
	} {
		t.Run(test.name, test.check)
	}
}
