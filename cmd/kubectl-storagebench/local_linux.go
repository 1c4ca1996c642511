package main

import (
	"github.com/storagebench/storagebench/internal/cli"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/workload/engine"
)

// local returns the parts that run --local needs: the executor that the runner uses in a pod, and the agent's check of disks.
func local() cli.Local {
	return cli.Local{Executor: engine.Executor{}, Disks: cli.Disks{Node: host.NewNode("/")}}
}
