package guard

import (
	"context"
	"fmt"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

// ProveDataset proves, from the current state of ZFS, that a dataset of a kept pool is the one that was observed, that this BenchmarkPool
// created it, and that it does not belong to the current run. It proves the pool first, and reads the marks last.
func ProveDataset(ctx context.Context, host *zfs.Client, pool *v1alpha1.BenchmarkPool, poolGUID, name, guid string) error {
	if err := Prove(ctx, host, pool, poolGUID); err != nil {
		return err
	}
	datasets, err := host.Datasets(ctx, name)
	if err != nil {
		return fmt.Errorf("confirm which dataset %s is: %w", name, err)
	}
	if len(datasets) != 1 || datasets[0].Name != name || datasets[0].GUID != guid {
		return fmt.Errorf("dataset %s is not unique, or not the observed one with guid %s: %w", name, guid, ErrNotOurs)
	}
	marks, err := host.DatasetProperties(ctx, []string{naming.PropertyUID, naming.PropertyRun}, name)
	if err != nil {
		return fmt.Errorf("confirm whose dataset %s is: %w", name, err)
	}
	state := pools.State{Pool: pool, Live: &pools.LivePool{PoolSummary: zfs.PoolSummary{Name: naming.PoolName(pool)}, Datasets: datasets,
		DatasetProperties: marks}}
	if outdated := state.OutdatedDataset(); outdated == nil || outdated.Name != name {
		return fmt.Errorf("dataset %s does not carry %s=%s and the %s of an earlier run: %w", name, naming.PropertyUID, pool.UID,
			naming.PropertyRun, ErrNotOurs)
	}
	return nil
}
