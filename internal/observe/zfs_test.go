package observe

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestPoolState(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, kstats, "tank")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "state"), []byte("DEGRADED\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for pool, want := range map[string]string{"tank": "DEGRADED", "other": "", "": ""} {
		o := &Observer{system: system{root: root}, zfs: &zfsVolume{pool: pool}}
		if got := o.PoolState(); got != want {
			t.Errorf("pool %q: %q, want %q", pool, got, want)
		}
	}
	if got := (&Observer{}).PoolState(); got != "" {
		t.Errorf("on no pool: %q", got)
	}
}

// TestCommits: with sync=disabled, a dataset counts no sync. OpenZFS before 2.2 counts none for a dataset.
func TestCommits(t *testing.T) {
	at := func(counted map[string]uint64) Snapshot {
		dataset := newGroup()
		dataset.counters = counted
		return Snapshot{at: time.Unix(0, 0), groups: map[string]group{"zfs.dataset": dataset}}
	}
	const count = "zil_commit_count"
	for name, c := range map[string]struct {
		before, after map[string]uint64
		want          int64
	}{
		"syncs":        {map[string]uint64{count: 5, "writes": 1}, map[string]uint64{count: 8, "writes": 9}, 3},
		"disabled":     {map[string]uint64{count: 5, "writes": 1}, map[string]uint64{count: 5, "writes": 9}, 0},
		"not counted":  {map[string]uint64{"writes": 1}, map[string]uint64{"writes": 9}, 0},
		"not a volume": {nil, nil, 0},
	} {
		if got := (&Observer{devices: &deviceTree{}}).Between(at(c.before), at(c.after)).Commits; got != c.want {
			t.Errorf("%s: %d commits, want %d", name, got, c.want)
		}
	}
}
