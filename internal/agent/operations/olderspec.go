package operations

import (
	"cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
)

// marked returns the pool as functions of package pools need it that look at its marks.
func (p *Pool) marked() *pools.LivePool {
	return &pools.LivePool{PoolSummary: p.PoolSummary, DatasetProperties: p.Marks}
}

// olderSpec returns why nothing is changed on one of the pools of the action: its spec is older than the pool. It returns "" if none is.
func (s State) olderSpec() string {
	return cmp.Or(olderSpec(s.Pool, s.Live), olderSpec(s.ToPool, s.ToLive))
}

func olderSpec(pool *v1alpha1.BenchmarkPool, live *Pool) string {
	if pool == nil || live == nil {
		return ""
	}
	if why := pools.OlderSpec(pool, live.marked()); why != "" {
		return "waiting for BenchmarkPool " + pool.Name + ": " + why
	}
	return ""
}
