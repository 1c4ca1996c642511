package main

import (
	"github.com/storagebench/storagebench/internal/cli"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/workload/engine"
)

// local holds what run --local needs: the runner's code from the pod, and the agent's check of disks.
func local() cli.Local {
	return cli.Local{Executor: engine.Executor{}, Disks: cli.Disks{Node: host.NewNode("/")}}
}
