package operations

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/zfs"
)

// TestEveryActionHasAKind: an action of the API that no file plans would do nothing, or the wrong thing.
func TestEveryActionHasAKind(t *testing.T) {
	all := operate.All()
	for _, action := range all {
		if kind, known := kinds[operate.Name(action)]; !known || kind.begin == nil || kind.stage == nil {
			t.Errorf("%s has no kind", operate.Name(action))
		}
	}
	if len(kinds) != len(all) || len(kinds) == 0 {
		t.Errorf("%d kinds for %d actions", len(kinds), len(all))
	}
}

// TestDurationsOfOtherAgents: an agent that did not begin an operation does not know how long it took: there may have been no agent when it
// ended. What ZFS reports itself is known.
func TestDurationsOfOtherAgents(t *testing.T) {
	finished := func(s *State) { s.Job = &Job{} }
	for name, c := range map[string]struct {
		action v1alpha1.PoolAction
		detail string
		change func(*State)
		// took is what the agent that began it reports, and others what another one reports, in seconds; -1 for nothing.
		took, others int64
	}{
		"scrub": {scrubAction, "", func(s *State) {
			s.Live.Status.Scan = scan("scrub", zfs.Finished, time.Second, 31*time.Second)
		}, 30, 30},
		"scrub without a start": {scrubAction, "", func(s *State) {
			s.Live.Status.Scan = scan("scrub", zfs.Finished, 0, 31*time.Second)
		}, 31, -1},
		"trim": {trimAction, "", trimmed(zfs.Finished, 31*time.Second), 31, -1},
		"trim of two disks": {trimAction, "", func(s *State) {
			for at, took := range []time.Duration{41 * time.Second, 31 * time.Second} {
				s.Live.Status.Vdevs[0].Children[at].Trim = scan("trim", zfs.Finished, 0, took)
			}
		}, 41, -1},
		"replace": {replaceAction, diskA + "-part1", func(s *State) { s.Live.Status.Vdevs[0].Children[0] = leaf(diskD) },
			60, -1},
		"removal": {removeAction, "mirror-7", func(*State) {}, 60, -1},
		"removal with an end": {removeAction, "mirror-7", func(s *State) {
			s.Live.Status.Removal = scan("removal", zfs.Finished, 0, 31*time.Second)
		}, 31, -1},
		"vdev added": {addAction, "", func(s *State) {
			s.Live.Status.Vdevs[0].Children = []zfs.VdevStatus{leaf(diskC), leaf(diskD)}
		}, 60, -1},
		"export":    {exportAction, "8", func(*State) {}, 60, -1},
		"dataset":   {destroyAction, "5", dataset("6", 0), 60, -1},
		"snapshot":  {forgetAction, "5", taken("6", 0), 60, -1},
		"score":     {scoreAction, "", finished, 60, -1},
		"map":       {mapAction, "", finished, 60, -1},
		"replicate": {replicateAction, "701", finished, 60, -1},
	} {
		for begun, want := range map[bool]int64{true: c.took, false: c.others} {
			state := begunBy(begun, c.action, c.detail)
			c.change(&state)
			decision, got := Plan(state), int64(-1)
			for _, one := range decision.Result.Metrics {
				if one.Name == operate.MetricDuration {
					got = one.Value
				}
				if one.Name == "" {
					t.Errorf("%s: a metric without a name: %+v", name, decision.Result.Metrics)
				}
			}
			if decision.Outcome != v1alpha1.OutcomeSucceeded || got != want {
				t.Errorf("%s, begun by this agent: %v: %s %q after %d s, want %d", name, begun, decision.Outcome, decision.Message, got, want)
			}
		}
	}
}

// TestTheEndOfFreeingIsSeen: the end is seen at most a second late if a pool frees at a constant rate, and without many more looks.
func TestTheEndOfFreeingIsSeen(t *testing.T) {
	for _, seconds := range []int64{3, 30, 300, 3000} {
		state, looks := begun(destroyAction, "5"), 0
		dataset("6", 0)(&state)
		began := state.Operation.Status.StartedAt.Time
		state.Operation.Status.Progress.TotalBytes = seconds << 30
		// The command itself takes as long.
		state.Job = &Job{EndedAt: began.Add(time.Duration(seconds) * time.Second)}
		end := state.Job.EndedAt.Add(time.Duration(seconds) * time.Second)
		for state.Now = state.Job.EndedAt; ; looks++ {
			state.Live.FreeingBytes = max(int64(end.Sub(state.Now).Seconds()*(1<<30)), 0)
			decision := Plan(state)
			if decision.Outcome != "" {
				break
			}
			state.Now = state.Now.Add(decision.Recheck)
		}
		if late := state.Now.Sub(end); late > time.Second || looks > int(seconds)/10+20 {
			t.Errorf("after %d s it is seen %s late, with %d looks", seconds, late, looks)
		}
	}
	state := begun(destroyAction, "5")
	dataset("6", 100)(&state)
	state.Job, state.Operation.Status.Progress.TotalBytes = &Job{EndedAt: state.Now.Add(-time.Minute)}, 1<<60
	for _, freeing := range []int64{1 << 60, 1<<60 - 1} {
		if state.Live.FreeingBytes = freeing; Plan(state).Recheck != state.pace() {
			t.Errorf("of %d bytes, %d are left: the next look is after %s", int64(1<<60), freeing, Plan(state).Recheck)
		}
	}
}

// TestReservedSpaceIsNotFreed: a volume uses what is reserved for it, but only its data has to be freed.
func TestReservedSpaceIsNotFreed(t *testing.T) {
	for _, c := range []struct{ used, reserved, want int64 }{{100, 0, 100}, {100, 60, 40}, {100, 100, 0}, {100, 101, 0}} {
		state := unhindered(destroyAction)
		state.Source.Name, state.Source.UsedBytes, state.Source.ReservedBytes = "bench0/data", c.used, c.reserved
		decision := Plan(state)
		if !decision.Begin || decision.Progress == nil || decision.Progress.TotalBytes != c.want {
			t.Errorf("%d bytes used, %d of them reserved: %+v, want %d to free", c.used, c.reserved, decision, c.want)
		}
	}
}

// TestWhatATrimReports: the text status of OpenZFS before 2.3 has percentages, and neither bytes nor errors.
func TestWhatATrimReports(t *testing.T) {
	for name, c := range map[string]struct {
		trim    zfs.Progress
		metrics map[string]int64
		message string
	}{
		"2.2": {zfs.Progress{DoneBytes: 100, TotalBytes: 100}, map[string]int64{"trimmedDisks": 1}, "trimmed 1 disk of pool bench0"},
		"2.3": {zfs.Progress{DoneBytes: 4096, TotalBytes: 4096, Errors: 2},
			map[string]int64{"trimmedDisks": 1, "trimmedBytes": 4096, "errorsFound": 2}, "trimmed 1 disk of pool bench0, with 2 errors"},
	} {
		state := begunBy(false, trimAction, "")
		c.trim.Function, c.trim.State, c.trim.End = "trim", zfs.Finished, operationStart.Add(30*time.Second)
		state.Live.Status.Vdevs[0].Children[0].Trim = &c.trim
		decision, got := Plan(state), map[string]int64{}
		for _, one := range decision.Result.Metrics {
			got[one.Name] = one.Value
		}
		if diff := cmp.Diff(c.metrics, got); diff != "" || decision.Message != c.message {
			t.Errorf("%s: %q: %s", name, decision.Message, diff)
		}
	}
}

// begunBy is begun, with the agent that began the operation.
func begunBy(us bool, action v1alpha1.PoolAction, detail string) State {
	state := begun(action, detail)
	state.Begun = us
	return state
}
