package runs_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// TestRunOnKeptPools covers how a run waits for kept pools, takes them over and leaves them for the next run.
func TestRunOnKeptPools(t *testing.T) {
	earlier := func(handsOn bool) runs.Pools {
		return runs.Pools{Needed: true, Kept: true, Earlier: &runs.EarlierPool{Name: "sb-1-data", RunName: "r1", RunUID: "u1",
			HandsOn: handsOn}}
	}
	taken := runs.Pools{Needed: true, Kept: true, Exist: true, Some: true, Ready: true,
		KeptFrom: map[string]results.RunIdentity{"data": {Name: "r1"}}}
	differs, unready, going, fresh := taken, taken, earlier(true), taken
	differs.Ready, differs.Broken, differs.Reason, differs.Message = false, true, "Drifted", "atime"
	unready.Ready, unready.Reason, unready.Message = false, "PoolNotReady", "not reset yet"
	going.Deleting = true
	fresh.KeptFrom, fresh.Ready, fresh.Broken, fresh.Reason = nil, false, true, "DeviceRefused"
	bare := []runChange{jobless(false), volumeGone}
	longAgo := func(s *runs.State) { s.Run.Status.StartedAt = runstest.Stamp(-10 * time.Minute) }
	ended := func(s *runs.State) { runstest.Record(s.Run, runstest.ValidEnding, false) }
	deleted := func(s *runs.State) { s.Run.DeletionTimestamp = &metav1.Time{Time: runstest.Noon} }
	for _, test := range []struct {
		name    string
		pools   runs.Pools
		changes []runChange
		actions []string
		reason  string
		ending  string
		says    string
		wake    time.Duration
	}{
		{"it is taken over", earlier(true), bare, []string{"TakePools"}, "PreparingVolume", "", "reusing BenchmarkPool sb-1-data of run r1",
			10 * time.Minute},
		{"it is not handed on", earlier(false), bare, nil, "PreparingVolume", "", "does not pass it on", runs.ForeignRecheck},
		{"it is going", going, bare, nil, "PreparingVolume", "", "waiting for the deletion", runs.ForeignRecheck},
		{"it is not reset yet", unready, bare, nil, "PreparingVolume", "", "not reset yet", 10 * time.Minute},
		{"it never is: another attempt gets a new one", unready, append(bare, longAgo), nil, "PoolNotReady", "retry", "not reset yet", 0},
		{"it differs", differs, bare, []string{"DeletePools"}, "PreparingVolume", "", "recreated: Drifted: atime", runs.ForeignRecheck},
		{"a new one that is refused stays", fresh, bare, nil, "PreparingVolume", "", "DeviceRefused", 10 * time.Minute},
		{"it differs once a volume is there", differs, []runChange{jobless(false)}, nil, "PoolNotReady", "retry", "Drifted: atime", 0},
		{"it is ready", taken, bare, []string{"CreateVolumes", "StartPhase 0"}, "PhaseRunning", "", "", 0},
		{"at the end it stays", taken, append(bare, ended), nil, "Measured", "valid", "measured", 0},
		{"after its volume", taken, []runChange{jobless(false), ended}, []string{"DeleteVolumes"}, "TearingDown", "valid", "", 0},
		{"with a deleted run it goes", taken, append(bare, deleted), []string{"DeletePools"}, "TearingDown", "", "", 0},
	} {
		onPools := func(s *runs.State) { s.Pools = test.pools }
		t.Run(test.name, runCase{changes: append([]runChange{onPools}, test.changes...), actions: test.actions, reason: test.reason,
			ending: test.ending, says: test.says, wake: test.wake}.check)
	}
}
