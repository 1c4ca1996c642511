package observe

import (
	"os"
	"path/filepath"
	"testing"
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
